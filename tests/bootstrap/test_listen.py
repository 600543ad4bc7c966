"""The address is taken first, and a taken one is told in one sentence."""

import pytest

from gateway.bootstrap.listen import listen, listen_together, url_of
from gateway.core.errors import PortInUse, StartError


def test_port_zero_picks_one() -> None:
    """The URL shows the port that was picked."""
    with listen("127.0.0.1", 0) as listener:
        assert url_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def test_all_addresses_are_reached_by_loopback() -> None:
    """0.0.0.0 is no address to call."""
    with listen("0.0.0.0", 0) as listener:
        assert url_of(listener).startswith("http://127.0.0.1:")


def test_a_taken_port_is_named() -> None:
    """Exit code 69, and what to do."""
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PortInUse, match=f"127.0.0.1:{port} is in use") as caught:
            listen("127.0.0.1", port)
    assert caught.value.exit_code == 69


def test_a_foreign_address_is_refused() -> None:
    """An address of another machine cannot be listened on."""
    with pytest.raises(StartError, match=r"192\.0\.2\.1"):
        listen("192.0.2.1", 8000)


def test_a_group_shares_one_port_and_no_other_joins_it() -> None:
    """Several sockets on one port; whoever asks for it later is told that it is taken."""
    group = listen_together("127.0.0.1", 0, 3)
    try:
        ports = {listener.getsockname()[1] for listener in group}
        assert len(ports) == 1
        for _ in range(2):
            with pytest.raises(PortInUse):
                listen_together("127.0.0.1", min(ports), 2)
        with pytest.raises(PortInUse):
            listen("127.0.0.1", min(ports))
    finally:
        for listener in group:
            listener.close()
