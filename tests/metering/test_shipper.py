"""From journals to totals, each record once, over crashes and outages."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.core.errors import StoreUnavailable
from gateway.core.usage import Usage
from gateway.metering.journal import Journal
from gateway.metering.ledger import JournalLedger
from gateway.metering.recovery import journal_files
from gateway.metering.shipper import Shipper
from gateway.store.client import StoreClient, connect
from gateway.store.usage import UsageTotals
from tests.support.calls import HOUR_START, an_intent, an_outcome
from tests.support.clock import ManualClock

HOUR = "2026113005"


class Node:
    """A process's share of the metering."""

    def __init__(self, folder: Path, client: StoreClient, rotate_bytes: int = 10**6) -> None:
        self.journal = Journal(folder, rotate_bytes=rotate_bytes)
        self.ledger = JournalLedger(self.journal)
        self.totals = UsageTotals(client)
        clock = ManualClock(HOUR_START)
        self.shipper = Shipper(folder, self.journal, self.totals, clock, record_days=1e6)

    def call(self, call_id: str, tenant: str = "t1", completion: int = 40) -> None:
        """One call that ended well."""
        call = self.ledger.open(an_intent(call_id, tenant=tenant))
        call.close(an_outcome(Usage(10, completion)))

    async def ship(self) -> None:
        """Write and ship."""
        self.journal.flush()
        await self.shipper.ship()

    async def counted(self, tenant: str = "t1") -> tuple[int, int]:
        """Requests and completion tokens in the store."""
        rows = await self.totals.rows(tenant, [HOUR])
        return sum(r.requests for r in rows), sum(r.completion for r in rows)


@pytest.fixture
async def node(tmp_path: Path, store: StoreClient) -> AsyncIterator[Node]:
    """One process."""
    node = Node(tmp_path, store)
    yield node
    node.journal.close()


async def test_met_07_totals_rise_by_the_call(node: Node) -> None:
    """A call of 40 tokens raises its key's total by 40, however often we ship."""
    node.call("req_1")
    for _ in range(3):
        await node.ship()
    (row,) = await node.totals.rows("t1", [HOUR])
    assert (row.key_id, row.requests, row.completion) == ("k1", 1, 40)


async def test_a_new_process_does_not_count_again(
    node: Node, tmp_path: Path, store: StoreClient
) -> None:
    """It finds the mark of what the first one shipped, and ships the rest."""
    node.call("req_1")
    node.call("req_2", tenant="t2")
    await node.ship()
    node.call("req_3")
    node.journal.close()
    second = Node(tmp_path, store)
    await second.ship()
    assert await second.counted("t1") == (2, 80)
    assert await second.counted("t2") == (1, 40)
    assert journal_files(tmp_path) == [second.journal.path]
    assert not await store.exists("gw:{t:t1}:journals")
    second.journal.close()


async def test_two_shippers_of_one_folder_count_once(tmp_path: Path, store: StoreClient) -> None:
    """Several gateways share a data directory."""
    left = Node(tmp_path, store)
    for number in range(50):
        left.call(f"req_{number}")
    left.journal.close()
    nodes = [Node(tmp_path, store), Node(tmp_path, store)]
    await asyncio.gather(*(node.ship() for node in nodes))
    assert await nodes[0].counted() == (50, 2000)
    for node in nodes:
        node.journal.close()


async def test_open_calls_of_a_dead_process_are_counted_as_interrupted(
    tmp_path: Path, store: StoreClient
) -> None:
    """The next start closes them, marked as estimate."""
    dead = Node(tmp_path, store)
    dead.ledger.open(an_intent())
    dead.journal.close()
    node = Node(tmp_path, store)
    await node.ship()
    (path,) = (tmp_path / "shipped").glob("*/*")
    assert b'"status":"interrupted"' in path.read_bytes()
    node.journal.close()


async def test_what_a_crashed_store_forgot_is_sent_again(node: Node, store: StoreClient) -> None:
    """A store that lost its last second gets it again; nothing doubles."""
    node.call("req_1")
    await node.ship()
    before = {key: await store.dump(key) for key in await store.keys("gw:{t:t1}*")}
    node.call("req_2")
    await node.ship()
    for key, value in before.items():
        assert value is not None
        await store.restore(key, 0, value, replace=True)
    node.call("req_3")
    await node.ship()
    await node.ship()
    assert await node.counted() == (3, 120)


async def test_a_finished_file_is_checked_before_it_goes(
    tmp_path: Path, store: StoreClient
) -> None:
    """Everything forgotten is sent again even when no new record comes."""
    node = Node(tmp_path, store)
    node.call("req_1")
    await node.ship()
    await store.flushall()
    await node.shipper.close()
    assert await node.counted() == (1, 40)


async def test_totals_that_were_lost_are_made_again(tmp_path: Path, store: StoreClient) -> None:
    """After FLUSHALL all kept records are shipped once more, by whoever notices, each once."""
    ended = Node(tmp_path, store)
    ended.call("req_1")
    await ended.shipper.close()
    nodes = [Node(tmp_path, store), Node(tmp_path, store)]
    nodes[0].call("req_2")
    nodes[1].call("req_3", tenant="t2")
    for node in nodes:
        await node.ship()
    await store.flushall()
    for _ in range(2):
        await asyncio.gather(*(node.ship() for node in nodes))
    assert await nodes[0].counted() == (2, 80)
    assert await nodes[0].counted("t2") == (1, 40)
    assert await nodes[0].totals.tenants() == ["t1", "t2"]
    for node in nodes:
        node.journal.close()


async def test_lim_07_records_wait_while_the_store_is_away(
    tmp_path: Path, store: StoreClient
) -> None:
    """Calls are recorded without Redis, and counted when it is back."""
    gone = connect("redis://127.0.0.1:1")
    away = Node(tmp_path, gone)
    away.call("req_1")
    with pytest.raises(StoreUnavailable):
        await away.ship()
    await away.shipper.close()
    await gone.aclose()
    back = Node(tmp_path, store)
    await back.ship()
    assert await back.counted() == (1, 40)
    back.journal.close()


async def test_rotated_files_are_shipped_and_put_away(tmp_path: Path, store: StoreClient) -> None:
    """Only the file being written stays."""
    node = Node(tmp_path, store, rotate_bytes=1500)
    for number in range(20):
        node.call(f"req_{number}")
        node.journal.flush()
    await node.ship()
    assert await node.counted() == (20, 800)
    assert journal_files(tmp_path) == [node.journal.path]
    node.journal.close()


@pytest.mark.parametrize("torn", [10, 40_000, 600_000])
async def test_what_cannot_be_read_hides_nothing_behind_it(
    tmp_path: Path, store: StoreClient, torn: int
) -> None:
    """Nulls that a loss of power left, however many, in place of lines."""
    dead = Node(tmp_path, store)
    for number in range(2):
        dead.call(f"req_{number}")
        dead.journal.flush()
    dead.journal.close()
    first, *others = dead.journal.path.read_bytes().splitlines(keepends=True)
    dead.journal.path.write_bytes(b"".join([first, bytes(torn) + b"\n", *others]))
    node = Node(tmp_path, store)
    await node.ship()
    assert await node.counted() == (2, 80)
    assert journal_files(tmp_path) == [node.journal.path]
    node.journal.close()


async def test_the_loop_ships_by_itself(node: Node) -> None:
    """As long as it runs."""
    running = asyncio.create_task(node.shipper.run(interval=0.01))
    node.call("req_1")
    async with asyncio.timeout(5):
        while await node.counted() != (1, 40):  # noqa: ASYNC110 - a loop of its own
            await asyncio.sleep(0.01)
    running.cancel()


async def test_a_full_store_is_said_once(
    tmp_path: Path, store: StoreClient, caplog: pytest.LogCaptureFixture
) -> None:
    """One line, no traceback, however often it is tried; the records are counted later."""
    node = Node(tmp_path, store)
    node.call("req_1")
    node.journal.flush()
    await store.execute_command("CONFIG", "SET", "maxmemory", "1mb")
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await node.shipper.run(interval=0.01)
    finally:
        await store.execute_command("CONFIG", "SET", "maxmemory", "512mb")
    [said] = [record for record in caplog.records if record.name == "gateway.metering.shipper"]
    assert (said.levelname, said.exc_info) == ("WARNING", None)
    assert "full" in said.getMessage()
    await node.ship()
    assert await node.counted() == (1, 40)
    node.journal.close()
