"""Git's smart HTTP protocol over bare repositories, for any web framework.

It runs ``git upload-pack`` and ``git receive-pack`` in their stateless form and speaks protocol versions 0,
1 and 2. Who may do what is decided before: a request that arrives here is allowed. What may be pushed is
decided by the hooks (``pre_receive``). The dumb protocol is not served.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from edgewright.adapters.git.advertisements import Advertisements
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.commands import git_environment
from edgewright.adapters.git.failures import unavailable
from edgewright.adapters.git.hooks import install_hooks
from edgewright.adapters.git.http_body import decoded
from edgewright.adapters.git.http_exchange import Exchange
from edgewright.adapters.git.http_protocol import (
    Service,
    banner,
    command,
    content_type,
    headers,
    parse_service,
    visible_protocol,
)
from edgewright.adapters.git.http_push import (
    MIB,
    PushContext,
    Receipt,
    push_settings,
    refuse_as_too_large,
    settle_push,
)
from edgewright.errors import Forbidden, Refused, TooLarge, Waiting

FETCH_LIMIT = 16 * MIB
"""Bytes that a fetch's request may have, unpacked; it lists commits that the client has."""

FETCH_MEMORY = 1024 * MIB
PUSH_MEMORY = 256 * MIB
"""Bytes that one git process may allocate. A delta of a few kilobytes can claim gigabytes, and git believes it."""

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
        deadline: seconds that one exchange may take.
    """

    def __init__(
        self,
        server: BareGitServer,
        *,
        processes: int = 32,
        patience: float = 20.0,
        deadline: float = 600.0,
    ) -> None:
        self._server = server
        self._turns = asyncio.Semaphore(processes)
        self._patience = patience
        self._deadline = deadline
        self._advertisements = Advertisements(self._advertise)
        self._settling: set[asyncio.Task[int]] = set()

    async def info_refs(
        self, repository: UUID, service: str | None, *, git_protocol: str | None = None
    ) -> Advertisement:
        """Answers ``GET …/info/refs?service=…``.

        Git is seldom asked; see ``advertisements``.

        Args:
            git_protocol: the ``Git-Protocol`` header.

        Raises:
            Forbidden: see ``parse_service``.
            edgewright.errors.NotFound: code ``repository_unknown``.
            Waiting: code ``git_unavailable`` or ``git_busy``.
        """
        name = parse_service(service)
        folder = self._server.folder(repository)
        protocol = visible_protocol(name, git_protocol)
        return Advertisement(
            headers(name, "advertisement"), await self._advertisements.of(repository, folder, name, protocol)
        )

    async def rpc(
        self,
        repository: UUID,
        service: str,
        body: AsyncIterator[bytes],
        *,
        media_type: str | None,
        content_encoding: str | None = None,
        git_protocol: str | None = None,
        push: PushContext | None = None,
    ) -> GitAnswer:
        """Answers ``POST …/git-upload-pack`` and ``POST …/git-receive-pack``.

        Args:
            service: the last part of the path.
            body: the request's body as it comes in; it may raise when the client goes away.
            media_type: the ``Content-Type`` header.
            content_encoding, git_protocol: the headers of these names.
            push: needed for ``git-receive-pack``.

        Returns:
            The answer; the request has been read to its end. Git is ended when the answer is dropped.

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
        if name == "git-receive-pack" and push is not None:
            pieces = self._push(folder, protocol, request, push)
        else:
            pieces = self._fetch(folder, protocol, request)
        return GitAnswer(headers(name, "result"), _Primed(await anext(pieces, None), pieces))

    async def _advertise(self, folder: Path, name: Service, protocol: str) -> bytes:
        arguments = [*_FETCH_SETTINGS, *command(name), "--advertise-refs", str(folder)]
        async with self._turn():
            exchange = await Exchange.start(
                arguments, _environment(protocol), memory=FETCH_MEMORY, deadline=self._deadline
            )
            try:
                await exchange.feed(_nothing(), limit=0)
                pieces = [piece async for piece in exchange.answer()]
            finally:
                code = await self._to_the_end(exchange.end(grace=_GRACE if exchange.answered else 0))
        if code != 0:
            raise unavailable(f"{name.replace('-', ' ', 1)} ended with code {code}")
        return banner(name, protocol) + b"".join(pieces)

    async def _fetch(self, folder: Path, protocol: str, request: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        arguments = [*_FETCH_SETTINGS, *command("git-upload-pack"), str(folder)]
        async with self._turn():
            exchange = await Exchange.start(
                arguments, _environment(protocol), memory=FETCH_MEMORY, deadline=self._deadline
            )
            silent = True
            try:
                await exchange.feed(request, limit=FETCH_LIMIT)
                async for piece in exchange.answer():
                    silent = False
                    yield piece
            finally:
                code = await self._to_the_end(exchange.end(grace=_GRACE if exchange.answered else 0))
            if silent and code != 0:
                raise _not_understood("git-upload-pack")

    async def _push(
        self, folder: Path, protocol: str, request: AsyncIterator[bytes], push: PushContext
    ) -> AsyncIterator[bytes]:
        receipt = Receipt.blank(install_hooks(self._server.root))
        arguments = [*push_settings(receipt.hooks, push.limit), *command("git-receive-pack"), str(folder)]
        env = {**_environment(protocol), **receipt.environment()}
        async with self._turn():
            exchange = await Exchange.start(arguments, env, memory=PUSH_MEMORY, deadline=self._deadline)
            last = None
            try:
                await exchange.feed(request, limit=push.limit)
                async for piece in exchange.answer():
                    if last is not None:
                        yield last
                    last = piece
            except TooLarge:
                last = await refuse_as_too_large(request, push.limit)
            finally:
                code = await self._to_the_end(settle_push(exchange, receipt, push, grace=_GRACE))
            if last is None and code != 0:
                raise _not_understood("git-receive-pack")
            if last is not None:
                yield last

    async def _to_the_end(self, ending: Coroutine[object, object, int]) -> int:
        """Sees to it that an exchange is ended even when the request that caused it is cancelled."""
        task = asyncio.create_task(ending)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        return await asyncio.shield(task)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._patience):
                await self._turns.acquire()
        except TimeoutError:
            raise Waiting("Too many Git requests are being answered.", code="git_busy", retry_after=5.0) from None
        try:
            yield
        finally:
            self._turns.release()


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


def _environment(protocol: str) -> dict[str, str]:
    return git_environment({"GIT_PROTOCOL": protocol} if protocol else None)


def _not_understood(name: Service) -> Refused:
    return Refused(f"{name} did not understand the request.", code="git_request_invalid")


async def _nothing() -> AsyncIterator[bytes]:
    for piece in _NO_PIECES:
        yield piece
