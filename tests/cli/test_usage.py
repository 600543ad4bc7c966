"""``headway usage``."""

import json
from pathlib import Path

from tests.support.serve import headway_command


async def test_an_empty_bill_is_a_bill(tmp_path: Path, store_url: str) -> None:
    """As JSON and as a table."""
    env = {"HEADWAY_REDIS_URL": store_url}
    where = ["--data-dir", str(tmp_path)]
    bill = json.loads(headway_command(["usage", "--json", *where], env).stdout)
    assert bill["lanes"]["batch"]["requests"] == 0
    assert "lane" in headway_command(["usage", *where], env).stdout
