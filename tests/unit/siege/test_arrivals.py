"""No attack counts that has hit nothing: each is played against an address where no centre is."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from bench.siege import crowds
from bench.siege.arrivals import ARRIVES, CERTIFICATES, MANY_STREAMS, PATTERNS, STATUSES, SUCCEEDS
from bench.siege.attackers import ATTACKS, pusher
from bench.siege.field import PERMISSIONS
from bench.siege.target import Target

SECONDS = 0.5
PATIENCE = 30.0


def said(status: str, body: str = "", *, ends: bool = True) -> bytes:
    length = len(body) if ends else 10_000
    closes = "Connection: close\r\n" if ends else ""
    return f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{closes}\r\n{body}".encode()


@dataclass
class Proxy:
    """Answers without a centre.

    Args:
        answers: in this order, the last of them for ever.
        ends: whether an answer ends.
    """

    answers: list[bytes] = field(default_factory=lambda: [said("503 Service Unavailable")])
    ends: bool = True
    port: int = 0
    asked: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError):
            self.asked += (line := await reader.readline()) != b""
            while line not in {b"\r\n", b""}:
                line = await reader.readline()
            writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
            await writer.drain()
            if not self.ends:
                await reader.read()
        writer.close()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """One whose centre is away, unless told otherwise."""
    proxy = Proxy()
    server = await asyncio.start_server(proxy.answer, "127.0.0.1", 0)
    async with server:
        proxy.port = server.sockets[0].getsockname()[1]
        yield proxy


async def until(holds: Callable[[], bool], *, seconds: float = PATIENCE) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def under_way(name: str, hit: Target) -> AsyncIterator[None]:
    """An attack that does not end of itself."""
    attack = asyncio.ensure_future(ATTACKS[name](hit))
    try:
        yield
        await asyncio.wait({attack}, timeout=SECONDS)
        assert not attack.done()
    finally:
        attack.cancel()
        await asyncio.wait({attack})


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


def test_something_has_to_come_of_each_attack() -> None:
    assert list(ARRIVES) == list(ATTACKS)
    assert all(ARRIVES.values())
    assert SUCCEEDS.keys() <= ATTACKS.keys()


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_on_nobody_does_not_arrive(name: str, unused_tcp_port: int) -> None:
    async with under_way(name, hit := target(unused_tcp_port)):
        pass
    assert [what for what in ARRIVES[name] if hit.met[what]] == []


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_that_reaches_a_proxy_without_a_centre_does_not_arrive(name: str, proxy: Proxy) -> None:
    async with under_way(name, hit := target(proxy.port)):
        await until(lambda: proxy.asked > 0)
    assert [what for what in ARRIVES[name] if hit.met[what]] == []


async def test_an_answer_to_a_status_that_is_no_json_does_not_end_the_attack(proxy: Proxy) -> None:
    proxy.answers = [said("200 OK", "fine")]
    async with under_way("edge", hit := target(proxy.port)):
        await until(lambda: hit.met[STATUSES] > 1)
    assert not hit.met[CERTIFICATES]


@pytest.mark.parametrize("body", ["", "[]", "no", "{}"])
async def test_a_refused_entry_that_names_no_place_shows_no_pattern(body: str, proxy: Proxy) -> None:
    proxy.answers = [said("201 Created"), said("200 OK"), said("422 Unprocessable Content", body)]
    async with under_way("clusters-token", hit := target(proxy.port)):
        await until(lambda: proxy.asked > 9)
    assert not hit.met[PATTERNS]


async def test_a_refused_stream_counts_before_its_connection_ends(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowds, "HOLD_SECONDS", 2 * PATIENCE)
    proxy.answers, proxy.ends = [said("429 Too Many Requests", '{"code": "event_streams_busy"}', ends=False)], False
    async with under_way("read-token", hit := target(proxy.port)):
        await until(lambda: hit.met[MANY_STREAMS] > 0)


async def test_nothing_goes_on_of_a_push_that_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = tmp_path / "helper"
    (tmp_path / "git").write_text(f"#!/bin/sh\nsleep 600 &\necho $! >{helper}.new\nmv {helper}.new {helper}\nwait\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    push = asyncio.create_task(pusher(target(1)))
    await until(helper.exists)
    process = psutil.Process(int(helper.read_text()))
    push.cancel()
    await asyncio.wait({push}, timeout=PATIENCE)
    await until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
