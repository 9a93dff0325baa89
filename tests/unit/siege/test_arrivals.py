"""No attack counts that has hit nothing: each is played against an address where no centre is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from uuid import uuid4

import pytest

from bench.siege.arrivals import ARRIVES, SUCCEEDS
from bench.siege.attackers import ATTACKS
from bench.siege.field import PERMISSIONS
from bench.siege.target import Target

SECONDS = 0.5
AWAY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.fixture
async def away() -> AsyncIterator[int]:
    """The port of a proxy whose centre is away: it answers each request alike."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError):
            while await reader.readline() not in {b"\r\n", b""}:
                pass
            writer.write(AWAY)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def target(port: int) -> Target:
    return Target(
        url=f"http://127.0.0.1:{port}",
        temporal=f"127.0.0.1:{port}",
        cluster=uuid4(),
        neighbour=uuid4(),
        agent_password="x",
        spent_token="x",
        tokens=dict.fromkeys(PERMISSIONS, "x"),
        ports=[port],
        certificates=("one", "two"),
    )


async def played(name: str, port: int) -> Target:
    hit = target(port)
    with suppress(TimeoutError, RuntimeError):  # Temporal's client says at once that nobody is there
        await asyncio.wait_for(ATTACKS[name](hit), SECONDS)
    return hit


def test_something_has_to_come_of_each_attack() -> None:
    assert list(ARRIVES) == list(ATTACKS)
    assert all(ARRIVES.values())
    assert SUCCEEDS.keys() <= ATTACKS.keys()


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_on_nobody_does_not_arrive(name: str, unused_tcp_port: int) -> None:
    hit = await played(name, unused_tcp_port)
    assert [what for what in ARRIVES[name] if hit.met[what]] == []


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_that_reaches_a_proxy_without_a_centre_does_not_arrive(name: str, away: int) -> None:
    hit = await played(name, away)
    assert [what for what in ARRIVES[name] if hit.met[what]] == []
