"""A crowd of connections that one address opens at once: its own wait, those of others do not."""

from contextlib import ExitStack, closing

import pytest
from bounded_gateway import BoundedGateway
from raw_client import RawClient
from supervised import eventually

from api.connections.entrance import Entrance

ASKED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
AT_ONCE = 3
HOUR = 3600.0


@pytest.fixture(autouse=True)
def _slow_entrance(live: BoundedGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets three in at once, and then none for an hour."""
    monkeypatch.setattr(live.centre.app.state.live.places, "entrance", Entrance(at_once=AT_ONCE, every=HOUR))


def connect(live: BoundedGateway, source: str) -> RawClient:
    """A connection that has asked for something; nobody waits for its handshake."""
    client = RawClient(live.url, source=source, secured=False)
    client.send(ASKED)
    return client


def test_an_address_that_opens_many_waits_and_nobody_else(live: BoundedGateway) -> None:
    with ExitStack() as opened:
        for _ in range(AT_ONCE):
            taken = opened.enter_context(closing(RawClient(live.url, source="127.0.0.2")))
            taken.send(ASKED)
            assert b" 200 OK" in taken.read_answer()
        waiting = opened.enter_context(closing(connect(live, "127.0.0.2")))
        other = opened.enter_context(closing(RawClient(live.url, source="127.0.0.3")))
        other.send(ASKED)
        assert b" 200 OK" in other.read_answer()
        assert not waiting.is_closed
        waiting.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            waiting.socket.recv(1)


def test_what_waits_at_the_entrance_has_its_deadline(live: BoundedGateway) -> None:
    before = live.refused("silent") + live.refused("handshake_deadline")
    with live.deadlines(head_seconds=0.5, handshake_seconds=0.5), ExitStack() as opened:
        for _ in range(AT_ONCE):
            opened.enter_context(closing(connect(live, "127.0.0.2")))
        assert connect(live, "127.0.0.2").read_until_closed() == b""
        eventually(lambda: live.refused("silent") + live.refused("handshake_deadline") > before)


def test_what_a_waiting_connection_has_sent_is_answered_at_its_turn(
    live: BoundedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live.centre.app.state.live.places, "entrance", Entrance(at_once=1, every=0.05))
    with ExitStack() as opened:
        clients = [opened.enter_context(closing(RawClient(live.url, source="127.0.0.2"))) for _ in range(8)]
        for client in clients:
            client.send(ASKED)
        for client in clients:
            assert b" 200 OK" in client.read_answer()
