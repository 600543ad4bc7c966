"""``headway usage``."""

import json
from pathlib import Path

from gateway.core.clock import SystemClock
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from tests.support.calls import an_intent, an_outcome
from tests.support.serve import headway_command


async def test_an_empty_bill_is_a_bill(tmp_path: Path, store_url: str) -> None:
    """As JSON and as a table."""
    env = {"HEADWAY_REDIS_URL": store_url}
    where = ["--data-dir", str(tmp_path)]
    bill = json.loads(headway_command(["usage", "--json", *where], env).stdout)
    assert bill["lanes"]["batch"]["requests"] == 0
    assert "lane" in headway_command(["usage", *where], env).stdout


async def test_records_are_lines_of_json(tmp_path: Path) -> None:
    """Each call of the wanted hours and tenant, without any store at hand."""
    now = SystemClock().now()
    journal = Journal(tmp_path / "journal")
    ledger = JournalLedger(journal)
    for call, ended in (("req_new", now), ("req_old", now - 7200)):
        ledger.open(an_intent(call)).close(an_outcome(ended_at=ended))
    journal.close()
    where = ["usage", "--records", "--hours", "1", "--data-dir", str(tmp_path)]
    lines = headway_command(where).stdout.splitlines()
    assert [json.loads(line)["close"] for line in lines] == ["req_new"]
    assert headway_command([*where, "--tenant", "other"]).stdout == ""
