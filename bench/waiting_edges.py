"""Edges that only wait: each has a connection on which it sends one heartbeat after the other."""

import asyncio
import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from bench.edge_identities import secret_of
from edgewright.domain.cluster import Role

WAIT = 50.0
OPENED_AT_ONCE = 20
PATIENCE = 600.0


@dataclass
class WaitingEdge:
    """One that waits, on one connection, until the measurement ends."""

    cluster: str
    url: str
    tls: ssl.SSLContext | None = None
    known: dict[str, Any] = field(default_factory=dict)
    knows: asyncio.Event = field(default_factory=asyncio.Event)
    waits: bool = False
    told_at: float = 0.0
    answered: int = 0

    async def live(self, turn: asyncio.Semaphore) -> None:
        async with turn:
            reader, writer = await self._open()
            await self._beat(reader, writer)
        while True:
            self.waits = True
            await self._beat(reader, writer)

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Comes again, as the agent does, where the machine is too slow for a handshake in time."""
        address = urlsplit(self.url)
        while True:
            try:
                return await asyncio.open_connection(address.hostname, address.port, ssl=self.tls)
            except OSError:
                await asyncio.sleep(1)

    async def _beat(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        word = base64.b64encode(f"{self.cluster}:{secret_of(UUID(self.cluster), Role.AGENT)}".encode()).decode()
        body = json.dumps({"wait": WAIT, **self.known}).encode()
        writer.write(
            f"POST /v1/agent/heartbeat HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {word}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        [length] = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        answer = await reader.readexactly(length)
        if head.startswith(b"HTTP/1.1 503 ") and b"close" not in head.lower():  # it comes again, as the agent does
            await asyncio.sleep(1)
            return
        assert head.startswith(b"HTTP/1.1 200 "), head + answer
        self.answered += 1
        told = json.loads(answer)
        known = {"wants_digest": told["wants_digest"], "revisions": told["revisions"]}
        if known != self.known:
            self.known, self.told_at = known, time.monotonic()
            self.knows.set()


@asynccontextmanager
async def waiting(
    url: str, clusters: Sequence[str], tls: ssl.SSLContext | None = None
) -> AsyncIterator[list[WaitingEdge]]:
    """The edges, from when all of them wait to the end of the context.

    Args:
        tls: what the gateway's certificate is verified with; None: it serves plain http.
    """
    edges = [WaitingEdge(cluster, url, tls) for cluster in clusters]
    turn = asyncio.Semaphore(OPENED_AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        living = [tasks.create_task(edge.live(turn)) for edge in edges]
        async with asyncio.timeout(PATIENCE):
            while not all(edge.waits for edge in edges):  # noqa: ASYNC110 - counted, whoever comes
                await asyncio.sleep(0.1)
        yield edges
        for task in living:
            task.cancel()
