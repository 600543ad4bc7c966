"""The metrics page."""

from tests.support.worker import complete, tiny_worker


async def test_metrics_are_prometheus_text() -> None:
    """Every metric has help, type and a number."""
    async with tiny_worker() as (client, _):
        await complete(client, "a", max_tokens=3, ignore_eos=True)
        lines = (await client.get("/metrics")).text.splitlines()
    values = dict(line.split(" ") for line in lines if not line.startswith("#"))
    assert float(values["headway_worker_prompt_tokens_total"]) == 1
    assert float(values["headway_worker_row_steps_total"]) == 2
    assert len([line for line in lines if line.startswith("# TYPE")]) == len(values)
