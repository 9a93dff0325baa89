"""Hostile callers that hold connections: more than a program opens, and requests that never end."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

from bench.siege.arrivals import CUT, LONG_HEADERS, MANY_FETCHES, MANY_STREAMS, STREAMS
from bench.siege.target import ADDRESS, PAUSE, Target

IDLE_CONNECTIONS = 1_100
OPEN_STREAMS = 600
UNFINISHED = 32
CHUNK = 65_536
HOLD_SECONDS = 5.0
"""For so long a reader keeps what it has opened."""
HEADER_LINES = 9_000
HEADER_LINE = b"X-Filler: " + b"x" * 8000 + b"\r\n"
BUSY = {b"event_streams_busy": MANY_STREAMS, b"git_busy": MANY_FETCHES}
"""Code in a refusal -> what it counts as."""
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connections(target: Target) -> None:
    """Somebody who can reach the port: silent connections, half a header, and a header without an end."""
    idle: list[asyncio.StreamWriter] = []
    async with asyncio.TaskGroup() as watches:
        try:
            for number in range(IDLE_CONNECTIONS):
                with suppress(OSError):
                    reader, writer = await _opened(target)
                    idle.append(writer)
                    watches.create_task(_count_the_end(target, reader))
                    if number % 2:
                        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Half")
            while True:
                with suppress(OSError):
                    await _send_endless_header(target)
                await asyncio.sleep(PAUSE)
        finally:
            for writer in idle:
                writer.close()


async def _count_the_end(target: Target, reader: asyncio.StreamReader) -> None:
    """The gateway is who ends an idle connection before the attack is over."""
    with suppress(OSError):
        await reader.read()
    target.met[CUT] += 1


async def _send_endless_header(target: Target) -> None:
    reader, writer = await _opened(target)
    answer = asyncio.create_task(reader.readline())  # before all is sent: what is refused is not read to its end
    try:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        with suppress(OSError):
            for _ in range(HEADER_LINES):
                writer.write(HEADER_LINE)
                await writer.drain()
        target.met[LONG_HEADERS] += b" 431 " in await answer
    finally:
        answer.cancel()
        writer.close()


async def reader(target: Target) -> None:
    """A token with ``read``: event streams, and fetches that it begins and never ends."""
    bearer = f"Authorization: Bearer {target.tokens['read']}\r\n"
    fetch = (
        f"POST /uuid/{target.neighbour}/git-upload-pack HTTP/1.1\r\nHost: x\r\n{bearer}"
        "Content-Type: application/x-git-upload-pack-request\r\nContent-Length: 5000\r\n\r\n0011"
    )
    stream = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n{bearer}\r\n"
    while True:
        kept: list[asyncio.StreamWriter] = []
        async with asyncio.TaskGroup() as answers:
            try:
                for request in [fetch] * UNFINISHED + [stream] * OPEN_STREAMS:
                    with suppress(OSError):
                        line, writer = await _opened(target)
                        writer.write(request.encode())
                        kept.append(writer)
                        answers.create_task(_count_the_answer(target, line))
                await asyncio.sleep(HOLD_SECONDS)
            finally:
                for writer in kept:
                    writer.close()


async def _count_the_answer(target: Target, line: asyncio.StreamReader) -> None:
    """As soon as it says what it is. What is left open says nothing: it is what the next one is refused for."""
    with suppress(OSError):
        said = await line.readline()
        target.met[STREAMS] += b" 200 " in said
        while b" 429 " in said and (more := await line.read(CHUNK)):
            said += more
            if met := [what for code, what in BUSY.items() if code in said]:
                target.met.update(met)
                break


async def _opened(target: Target) -> Line:
    address = urlsplit(target.url)
    return await asyncio.open_connection(address.hostname, address.port, local_addr=(ADDRESS, 0))
