"""``headway usage``."""

import json
from pathlib import Path

from gateway.core.clock import SystemClock
from gateway.core.usage import Usage
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from gateway.metering.shipper import Shipper
from gateway.metering.unreported import unreported
from gateway.store.client import StoreClient
from gateway.store.usage import UsageTotals
from tests.support.calls import an_intent, an_outcome
from tests.support.serve import headway_command


async def test_an_empty_bill_is_a_bill(tmp_path: Path, store_url: str) -> None:
    """As JSON and as a table."""
    env = {"HEADWAY_REDIS_URL": store_url}
    where = ["--data-dir", str(tmp_path)]
    bill = json.loads(headway_command(["usage", "--json", *where], env).stdout)
    assert bill["lanes"]["batch"]["requests"] == 0
    assert "lane" in headway_command(["usage", *where], env).stdout


async def test_the_table_shows_what_is_an_estimate(
    tmp_path: Path, store: StoreClient, store_url: str
) -> None:
    """How many of the requests, beside their tokens."""
    clock, folder = SystemClock(), tmp_path / "journal"
    journal = Journal(folder)
    ledger = JournalLedger(journal)
    for call, used in (("req_1", Usage(10, 5)), ("req_2", unreported(1240))):
        ledger.open(an_intent(call)).close(an_outcome(used, ended_at=clock.now()))
    journal.flush()
    await Shipper(folder, journal, UsageTotals(store), clock, record_days=1).ship()
    journal.close()
    env = {"HEADWAY_REDIS_URL": store_url}
    table = headway_command(["usage", "--data-dir", str(tmp_path)], env).stdout
    names, figures = (
        [cell.strip() for cell in line.split(line[0])[1:-1]]
        for line in table.splitlines()
        if "lane" in line or "t1" in line
    )
    told = dict(zip(names, figures, strict=True))
    assert (told["requests"], told["estimated"]) == ("2", "1")
    assert (told["prompt"], told["completion"]) == ("320", "5")


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
