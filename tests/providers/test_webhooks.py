"""Webhooks go where they may, and nowhere else."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp.abc
import pytest

from gateway.core.errors import UpstreamError, UpstreamFailed, UpstreamRefused, UpstreamTimeout
from gateway.providers.webhooks import PrivateAddress, PublicOnly, WebhookSender, is_public
from tests.support.scripts import answer, never
from tests.support.upstream import ScriptedUpstream

if TYPE_CHECKING:
    from aiohttp.abc import ResolveResult


@asynccontextmanager
async def _sender(*, allow_private: bool, seconds: float = 5.0) -> AsyncIterator[WebhookSender]:
    sender = WebhookSender(allow_private=allow_private, seconds=seconds)
    yield sender
    await sender.aclose()


async def test_a_body_goes_out_as_it_is(upstream: ScriptedUpstream) -> None:
    """With its headers; any 2xx is enough."""
    upstream.enqueue(answer({}, 202))
    async with _sender(allow_private=True) as sender:
        await sender.send(f"{upstream.url}/hook", {"webhook-id": "evt_1"}, b'{"a":1}')
    [call] = upstream.calls()
    assert (call.body, call.headers["webhook-id"]) == (b'{"a":1}', "evt_1")


async def test_a_redirect_is_not_followed(upstream: ScriptedUpstream) -> None:
    """It is a failure, and the other place hears nothing."""
    upstream.enqueue(answer({}, 307, headers={"location": f"{upstream.url}/other"}))
    async with _sender(allow_private=True) as sender:
        with pytest.raises(UpstreamFailed, match="307"):
            await sender.send(f"{upstream.url}/hook", {}, b"{}")
    assert len(upstream.calls()) == 1


async def test_failures(upstream: ScriptedUpstream) -> None:
    """A status, silence, nobody there, no address: each an error that names no address."""
    upstream.enqueue(answer({}, 500), never())
    said: list[str] = []
    kinds: list[tuple[str, type[UpstreamError]]] = [
        (f"{upstream.url}/hook", UpstreamFailed),
        (f"{upstream.url}/hook", UpstreamTimeout),
        ("http://127.0.0.1:1/hook", UpstreamRefused),
        ("http://[::bad/hook", UpstreamRefused),
    ]
    async with _sender(allow_private=True, seconds=0.5) as sender:
        for url, kind in kinds:
            with pytest.raises(kind) as failed:
                await sender.send(url, {}, b"{}")
            said.append(failed.value.message)
    assert not [text for text in said if "127" in text or "hook" in text]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
async def test_a_private_address_is_refused(upstream: ScriptedUpstream, host: str) -> None:
    """By number and by name; nothing is connected to."""
    async with _sender(allow_private=False) as sender:
        with pytest.raises(UpstreamRefused) as refused:
            await sender.send(f"http://{host}:{upstream.port}/hook", {}, b"{}")
    assert refused.value.code == "private_address"
    assert upstream.connections == 0


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::5db8:d822", True),
        ("2002:a00:1::", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    """None of a private, local or special range, however it is wrapped."""
    assert is_public(address) is public


class _Turning(aiohttp.abc.AbstractResolver):
    """A name server that names a private address among others, or the second time."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> "list[ResolveResult]":
        self.asked += 1
        return [
            {"hostname": host, "host": a, "port": port, "family": family, "proto": 0, "flags": 0}
            for a in self._answers.pop(0)
        ]

    async def close(self) -> None:
        pass


async def test_every_address_of_a_name_is_checked() -> None:
    """One private one is enough to refuse."""
    mixed = PublicOnly(resolver=_Turning(["93.184.216.34", "10.0.0.1"]), use_dns_cache=False)
    with pytest.raises(PrivateAddress):
        await mixed._resolve_host("x.example", 80)
    await mixed.close()


async def test_what_was_checked_is_connected_to(
    upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is asked for once: a second, other answer is of no use."""
    monkeypatch.setattr("gateway.providers.webhooks.is_public", lambda address: True)
    upstream.enqueue(answer({}))
    turning = _Turning(["127.0.0.1"], ["10.0.0.1"])
    connector = PublicOnly(resolver=turning, use_dns_cache=False)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post(f"http://x.example:{upstream.port}/hook") as got,
    ):
        assert got.status == 200
    assert turning.asked == 1
