"""Git's smart HTTP protocol over bare repositories, for any web framework.

It runs ``git upload-pack`` and ``git receive-pack`` in their stateless form and speaks protocol versions 0,
1 and 2. Who may do what is decided before: a request that arrives here is allowed. What may be pushed is
decided by the hooks (``pre_receive``). The dumb protocol is not served.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO
from uuid import UUID

import structlog

from edgewright.adapters.git.advertisements import Advertisements
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.commands import git_environment
from edgewright.adapters.git.failures import storage_errors, unavailable
from edgewright.adapters.git.hooks import install_hooks
from edgewright.adapters.git.http_exchange import Exchange
from edgewright.adapters.git.http_protocol import (
    Service,
    banner,
    command,
    content_type,
    decoded,
    headers,
    parse_service,
    visible_protocol,
)
from edgewright.adapters.git.http_push import (
    PushContext,
    PushReceipt,
    explain_memory_limit,
    push_settings,
    refuse_as_too_large,
    settle_push,
)
from edgewright.adapters.git.http_relay import PACE_SECONDS, ClientTooSlow, Relay
from edgewright.adapters.git.kept_bytes import KeptBytes
from edgewright.adapters.git.memory_limit import FETCH_MEMORY, MIB, PUSH_MEMORY, ran_out_of_memory
from edgewright.adapters.git.turns import GitTurns, Guest, KeepLimits, Room
from edgewright.errors import Forbidden, Refused, TooLarge

FETCH_LIMIT = 16 * MIB
"""Bytes that a fetch's request may have, unpacked; it lists commits that the client has."""

_GRACE = 10.0
# Of the filters of partial clones only the one that costs nothing to apply: others make git look at each object.
_FETCH_SETTINGS = (
    *("-c", "pack.threads=1"),
    *("-c", "pack.windowMemory=64m"),
    *("-c", "core.deltaBaseCacheLimit=32m"),
    *("-c", "uploadpack.allowFilter=true"),
    *("-c", "uploadpackfilter.allow=false"),
    *("-c", "uploadpackfilter.blob:none.allow=true"),
)
_KEEP = KeepLimits()
_log = structlog.get_logger("edgewright.git")
_NO_PIECES: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class GitAnswer:
    """What to send back with status 200.

    Args:
        headers: response headers, ``Content-Type`` among them.
        body: pieces of bytes; to be read once and to the end, or dropped when the client goes away.
    """

    headers: Mapping[str, str]
    body: AsyncIterator[bytes]


@dataclass(frozen=True)
class Advertisement:
    """What a repository has to offer, to be sent back with status 200."""

    headers: Mapping[str, str]
    body: bytes


class GitHttp:
    """The engine behind the Git routes.

    Args:
        server: whose repositories are served.
        processes: git processes at a time; requests beyond wait for their turn.
        patience: seconds that a request waits for its turn before it is ``git_busy``.
        deadline: seconds that git may take for one exchange.
        keep: how much is kept for clients that are slower than git.
        pace_seconds: see ``http_relay.PACE_BYTES``.
        on_memory_limit: called with ``fetch`` or ``push`` when git got no more memory.
    """

    def __init__(
        self,
        server: BareGitServer,
        *,
        processes: int = 32,
        patience: float = 20.0,
        deadline: float = 600.0,
        keep: KeepLimits = _KEEP,
        pace_seconds: float = PACE_SECONDS,
        on_memory_limit: Callable[[str], None] = lambda _operation: None,
    ) -> None:
        self._server = server
        self._turns = GitTurns(processes, patience=patience)
        self.room = Room(keep)
        self._deadline = deadline
        self._pace_seconds = pace_seconds
        self._on_memory_limit = on_memory_limit
        self._advertisements = Advertisements(partial(self._advertise, Guest(None, is_edge=True)))
        self._settling: set[asyncio.Task[int]] = set()

    async def info_refs(
        self, repository: UUID, service: str | None, *, guest: Guest, git_protocol: str | None = None
    ) -> Advertisement:
        """Answers ``GET …/info/refs?service=…``.

        Git is seldom asked; see ``advertisements``.

        Args:
            guest: who asks.
            git_protocol: the ``Git-Protocol`` header.

        Raises:
            Forbidden: see ``parse_service``.
            edgewright.errors.NotFound: code ``repository_unknown``.
            Waiting: code ``git_unavailable`` or ``git_busy``.
        """
        name = parse_service(service)
        folder = self._server.folder(repository)
        protocol = visible_protocol(name, git_protocol)
        ask = partial(self._advertise, guest)
        told = await self._advertisements.of(repository, folder, name, protocol, ask=ask)
        return Advertisement(headers(name, "advertisement"), told)

    async def rpc(
        self,
        repository: UUID,
        service: str,
        body: AsyncIterator[bytes],
        *,
        guest: Guest,
        media_type: str | None,
        content_encoding: str | None = None,
        git_protocol: str | None = None,
        push: PushContext | None = None,
    ) -> GitAnswer:
        """Answers ``POST …/git-upload-pack`` and ``POST …/git-receive-pack``.

        Args:
            service: the last part of the path.
            body: the request's body as it comes in; it may raise when the client goes away.
            guest: who asks.
            media_type: the ``Content-Type`` header.
            content_encoding, git_protocol: the headers of these names.
            push: needed for ``git-receive-pack``.

        Returns:
            The answer; the request has been read to its end, before git was started. Git is ended when the answer is
            dropped, and when the client is too slow for an answer that is too large to be kept.

        Raises:
            Forbidden: code ``service_unknown``; ``push_forbidden`` if ``push`` is missing.
            Refused: code ``content_type_unsupported``, ``body_encoding_invalid`` or ``git_request_invalid``.
            TooLarge: a fetch whose request is larger than ``FETCH_LIMIT``. A push that is too large is
                answered in Git's own way, so that the client shows the sentence.
            edgewright.errors.NotFound: code ``repository_unknown``.
            Waiting: code ``git_unavailable`` or ``git_busy``.
        """
        name = parse_service(service)
        expected = content_type(name, "request")
        if media_type != expected:
            raise Refused(f"A request to {name} is of type {expected}.", code="content_type_unsupported")
        if name == "git-receive-pack" and push is None:
            raise Forbidden("Pushing is not allowed here.", code="push_forbidden")
        folder = self._server.folder(repository)
        protocol = visible_protocol(name, git_protocol)
        request = decoded(body, content_encoding)
        push = push if name == "git-receive-pack" else None
        limit = FETCH_LIMIT if push is None else push.limit
        try:
            whole = await KeptBytes.whole(request, self._server.root, self.room, guest, limit=limit)
        except TooLarge:
            if push is None:
                raise
            refusal = await refuse_as_too_large(request, limit)
            return GitAnswer(headers(name, "result"), _Primed(refusal, _nothing()))
        relay = Relay(
            KeptBytes(self._server.root, self.room, guest),
            limit=self.room.limits.of_one_answer,
            pace_seconds=self._pace_seconds,
        )
        if push is None:
            work = self._fetch(folder, protocol, whole, relay, guest)
        else:
            work = self._push(folder, protocol, whole, relay, guest=guest, push=push)
        pieces = _relayed(relay, work)
        return GitAnswer(headers(name, "result"), _Primed(await anext(pieces, None), pieces))

    async def _advertise(self, guest: Guest, folder: Path, name: Service, protocol: str) -> bytes:
        arguments = [*_FETCH_SETTINGS, *command(name), "--advertise-refs", str(folder)]
        async with self._turns.turn(guest):
            exchange = await Exchange.start(
                arguments,
                _environment(protocol),
                memory=FETCH_MEMORY,
                deadline=self._deadline,
                behind=not guest.is_edge,
            )
            try:
                await exchange.feed(_nothing(), limit=0)
                pieces = [piece async for piece in exchange.answer()]
            finally:
                code = await self._to_the_end(exchange.end(grace=_GRACE if exchange.answered else 0))
        if code != 0:
            raise unavailable(f"{name.replace('-', ' ', 1)} ended with code {code}")
        return banner(name, protocol) + b"".join(pieces)

    async def _fetch(self, folder: Path, protocol: str, request: KeptBytes, relay: Relay, guest: Guest) -> None:
        arguments = [*_FETCH_SETTINGS, *command("git-upload-pack"), str(folder)]
        last: bytes | None = None
        try:
            async with self._turns.turn(guest):
                exchange = await Exchange.start(
                    arguments,
                    _environment(protocol),
                    memory=FETCH_MEMORY,
                    deadline=self._deadline,
                    behind=not guest.is_edge,
                )
                try:
                    await exchange.feed(request.pieces(), limit=FETCH_LIMIT)
                    request.give_back()
                    async for piece in exchange.answer():
                        last = piece
                        await relay.put(piece)
                except ClientTooSlow:
                    _log.info("fetch aborted: client too slow", payer=str(guest.payer))
                finally:
                    code = await self._to_the_end(exchange.end(grace=_GRACE if exchange.answered else 0))
        finally:
            request.give_back()
        if code != 0 and ran_out_of_memory(last or b""):
            self._on_memory_limit("fetch")
        if last is None and code != 0:
            raise _not_understood("git-upload-pack")

    async def _push(
        self, folder: Path, protocol: str, request: KeptBytes, relay: Relay, *, guest: Guest, push: PushContext
    ) -> None:
        receipt = PushReceipt.blank(install_hooks(self._server.root))
        arguments = [*push_settings(receipt.hooks, push.limit), *command("git-receive-pack"), str(folder)]
        env = {**_environment(protocol), **receipt.environment(push)}
        answer = b""
        try:
            with _complaints(self._server.root) as complaints:
                async with self._turns.turn(guest):
                    exchange = await Exchange.start(
                        arguments,
                        env,
                        memory=PUSH_MEMORY,
                        deadline=self._deadline,
                        behind=not guest.is_edge,
                        complaints=complaints,
                    )
                    try:
                        await exchange.feed(request.pieces(), limit=push.limit)
                        answer = b"".join([piece async for piece in exchange.answer()])
                    finally:
                        code = await self._to_the_end(settle_push(exchange, receipt, push, grace=_GRACE))
                explained = explain_memory_limit(answer, complaints)
        finally:
            request.give_back()
        if explained is not None:
            self._on_memory_limit("push")
        elif not answer and code != 0:
            raise _not_understood("git-receive-pack")
        await relay.put(explained or answer)

    async def _to_the_end(self, ending: Coroutine[object, object, int]) -> int:
        """Sees to it that an exchange is ended even when the request that caused it is cancelled."""
        task = asyncio.create_task(ending)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        return await asyncio.shield(task)


async def _relayed(relay: Relay, work: Coroutine[object, object, None]) -> AsyncIterator[bytes]:
    """What git answers; raises what its work does, and ends that when nobody listens any more."""

    async def to_the_end() -> None:
        try:
            await work
        finally:
            relay.end()

    task = asyncio.create_task(to_the_end())
    try:
        async for piece in relay.pieces():
            yield piece
        await task
    finally:
        relay.give_back()
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # raised above, or nobody is there to be told


class _Primed:
    """The pieces of an answer, the first of which is known.

    An async generator that is dropped before its first piece would never clean up; this one has begun.
    """

    def __init__(self, first: bytes | None, rest: AsyncIterator[bytes]) -> None:
        self._first = first
        self._rest = rest

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await anext(self._rest)


def _complaints(folder: Path) -> IO[bytes]:
    """A file without a name."""
    with storage_errors():
        return tempfile.TemporaryFile(dir=folder)


def _environment(protocol: str) -> dict[str, str]:
    return git_environment({"GIT_PROTOCOL": protocol} if protocol else None)


def _not_understood(name: Service) -> Refused:
    return Refused(f"{name} did not understand the request.", code="git_request_invalid")


async def _nothing() -> AsyncIterator[bytes]:
    for piece in _NO_PIECES:
        yield piece
