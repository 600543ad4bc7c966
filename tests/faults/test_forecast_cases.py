"""A running gateway tells when a batch will be done, and warns in time."""

import json
from pathlib import Path

from tests.support.answers import Pace
from tests.support.batch import BatchClient, chat_line
from tests.support.serve import KEY, headway, headway_command, one_target, wait_for
from tests.support.upstream import ScriptedUpstream


def test_a_deadline_that_cannot_be_met(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """1000 rows at 8 a second or less in 60 s: the batch, the command line and the log say so."""
    upstream.pace = Pace(first=0.25, token=0)
    env = {"HEADWAY_MIN_WINDOW_SECONDS": "1"}
    with headway(tmp_path, one_target(upstream.url, window=2), env) as running:
        client = BatchClient(running)
        lines = [chat_line(str(n), "x") for n in range(1000)]
        batch_id = client.start(lines, completion_window="60s")["id"]
        outlook = wait_for(
            lambda: (
                (client.get(batch_id)["headway"] or {}).get("warning")
                and client.get(batch_id)["headway"]
            ),
            40,
            "a warning",
        )
        assert outlook["deadline_at_risk"]
        assert 1 < outlook["rows_per_second"] < 10
        assert outlook["eta"] > client.get(batch_id)["expires_at"]
        shown = headway_command(
            ["batch", "status", batch_id, "--data-dir", str(running.data_dir)],
            {"HEADWAY_API_KEY": KEY},
        )
        assert json.loads(shown.stdout)["headway"]["deadline_at_risk"]
        assert "warning: At" in shown.stderr
        wait_for(lambda: "deadline will be missed" in running.log.read_text(), 5, "the log")
        client.cancel(batch_id)
        assert client.ended(batch_id)["headway"] is None
