"""The demo's bill is the operator's own report."""

from pathlib import Path

from gateway.bench.bill import lanes_of, metered_by_lane
from gateway.bench.server import Server
from gateway.core.lanes import Lane
from gateway.core.usage import Usage
from gateway.metering.report import UsageReport, UsageRow
from tests.support.serve import KEY, headway, one_target
from tests.support.upstream import ScriptedUpstream


def test_lanes_are_read_from_the_report() -> None:
    """The JSON of ``headway usage`` as it is written."""
    row = UsageRow("interactive", "m", "default", 1, usage=Usage(3, 4))
    lanes = lanes_of(UsageReport((), (row, row)).to_json())
    assert lanes.keys() == {lane.value for lane in Lane}
    assert lanes["interactive"] == Usage(6, 8)


async def test_the_report_of_a_running_server(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    """What the upstream said is what is billed, soon after the answer."""
    with headway(tmp_path, one_target(upstream.url)) as running:
        with running.client() as client:
            body = {"model": "m", "messages": [{"role": "user", "content": "a b"}]}
            client.post("/chat/completions", json=body).raise_for_status()
        server = Server(running.base_url, upstream.url, KEY, running.data_dir)
        expected = {"interactive": Usage(*upstream.usage()), "batch": Usage()}
        metered = await metered_by_lane(server, expected)
    assert {lane: metered[lane] for lane in expected} == expected
