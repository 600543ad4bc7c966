"""Counters in the Prometheus text format."""

from gateway.telemetry.metrics import Metrics

OK = ("interactive", "up1", "m1", "ok")
SPELLED = 'lane="interactive",target="up1",model="m1",status="ok"'


def test_counters_sum_per_labels() -> None:
    """A line per set of labels, with help and type."""
    metrics = Metrics(["m1"])
    metrics.requests.add(OK)
    metrics.requests.add(OK, 2)
    text = metrics.text()
    assert "# TYPE headway_requests_total counter\n" in text
    assert f"headway_requests_total{{{SPELLED}}} 3\n" in text


def test_histograms_are_cumulative() -> None:
    """Each bucket holds all below it."""
    metrics = Metrics([])
    for value in (0.0005, 0.001, 0.02, 1000.0):
        metrics.ttft.add(OK, value)
    text = metrics.text()
    name = "headway_time_to_first_token_seconds"
    assert f'{name}_bucket{{{SPELLED},le="0.001"}} 2\n' in text
    assert f'{name}_bucket{{{SPELLED},le="0.025"}} 3\n' in text
    assert f'{name}_bucket{{{SPELLED},le="+Inf"}} 4\n' in text
    assert f"{name}_count{{{SPELLED}}} 4\n" in text


def test_gauges_are_read_when_asked() -> None:
    """Nothing is kept of them."""
    metrics = Metrics([])
    values = iter([1.0, 2.0])
    metrics.gauge("headway_in_flight", "Calls.", lambda: [(OK, next(values))])
    assert f"headway_in_flight{{{SPELLED}}} 1\n" in metrics.text()
    assert f"headway_in_flight{{{SPELLED}}} 2\n" in metrics.text()


def test_labels_are_bounded_and_escaped() -> None:
    """A model nobody serves has no label of its own; quotes cannot break a line."""
    metrics = Metrics(["m1"])
    assert metrics.model("m1") == "m1"
    assert metrics.model("made-up") == "(other)"
    metrics.requests.add(("batch", 'a"b\\c\n', "m1", "ok"))
    assert 'target="a\\"b\\\\c\\n"' in metrics.text()
