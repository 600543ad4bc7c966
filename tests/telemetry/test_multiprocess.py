"""Several processes, one page of metrics."""

import os
from pathlib import Path

import orjson

from gateway.telemetry.metrics import Metrics
from gateway.telemetry.multiprocess import MultiprocessMetrics

LABELS = ("interactive", "up", "m", "ok")


def _process(folder: Path, name: str, running: float = 0) -> tuple[Metrics, MultiprocessMetrics]:
    metrics = Metrics(["m"])
    metrics.gauge("headway_calls_running", "Calls at a target.", lambda: [(LABELS, running)])
    return metrics, MultiprocessMetrics(metrics, folder, name)


def _value(page: str, name: str) -> float:
    found = [line for line in page.splitlines() if line.startswith(f"{name}{{")]
    assert len(found) == 1, found
    return float(found[0].rpartition(" ")[2])


def test_whoever_is_asked_tells_of_all(tmp_path: Path) -> None:
    """Counters, histograms and gauges are sums, on either page."""
    one, first = _process(tmp_path, "0", running=2)
    two, second = _process(tmp_path, "1", running=3)
    one.requests.add(LABELS, 5)
    two.requests.add(LABELS, 7)
    one.ttft.add(LABELS, 0.02)
    two.ttft.add(LABELS, 0.2)
    first.write()
    second.write()
    for page in (first.text(), second.text()):
        assert _value(page, "headway_requests_total") == 12
        assert _value(page, "headway_time_to_first_token_seconds_count") == 2
        assert round(_value(page, "headway_time_to_first_token_seconds_sum"), 6) == 0.22
        assert _value(page, "headway_calls_running") == 5
    one.requests.add(LABELS)
    assert _value(first.text(), "headway_requests_total") == 13  # its own are never old


def test_a_sum_never_falls(tmp_path: Path) -> None:
    """A process that is started again goes on; what the dead one had running is gone."""
    one, first = _process(tmp_path, "0", running=4)
    one.requests.add(LABELS, 5)
    first.write()
    file = tmp_path / "0.json"
    file.write_bytes(orjson.dumps({**orjson.loads(file.read_bytes()), "pid": 2**22 + 1}))
    _, second = _process(tmp_path, "1", running=1)
    assert _value(second.text(), "headway_requests_total") == 5
    assert _value(second.text(), "headway_calls_running") == 1
    again, restarted = _process(tmp_path, "0")
    again.requests.add(LABELS, 2)
    restarted.write()
    assert _value(second.text(), "headway_requests_total") == 7
    assert orjson.loads(file.read_bytes())["pid"] == os.getpid()


def test_a_torn_or_absent_snapshot_is_passed_over(tmp_path: Path) -> None:
    """The page is never an error."""
    one, first = _process(tmp_path / "gone", "0")
    one.requests.add(LABELS)
    first.write()
    assert _value(first.text(), "headway_requests_total") == 1
    (tmp_path / "1.json").write_bytes(b'{"counters"')
    assert "headway_requests_total" in _process(tmp_path, "0")[1].text()
