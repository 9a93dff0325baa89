"""One request and its answer through one git process: body in, answer out, a few pieces kept at a time."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Self

from edgewright.adapters.git.failures import storage_errors
from edgewright.adapters.git.memory_limit import bound_memory
from edgewright.errors import Refused, TooLarge

_PIECE = 64 * 1024
_EARLY_LIMIT = 4 * 1024 * 1024
_TERM_GRACE = 2.0
BEHIND = 10
"""Niceness of git that works for an operator: edges, and whoever waits for the centre itself, go before it."""
_BEHIND = ("nice", "-n", str(BEHIND))
"""From its first moment: a process that git is just starting would not be found by who sets that later."""


class Exchange:
    """A running git process with its own process group; whoever starts it calls ``end``.

    The answer is held back until the request has been read to its end. Git may begin to answer earlier, but
    servers differ in what they do then: Starlette's streaming response, while it watches for the client to
    go away, would swallow the rest of the request.

    Attributes:
        fed: whether git has got the whole request.
        answered: whether git has given its whole answer.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._early: list[bytes] = []
        self._deadline: asyncio.TimerHandle | None = None
        self.fed = False
        self.answered = False

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        env: Mapping[str, str],
        *,
        memory: int,
        deadline: float,
        behind: bool,
        complaints: IO[bytes] | None = None,
    ) -> Self:
        """Starts git.

        Args:
            memory: bytes that it, and each process that it starts, may allocate.
            deadline: seconds after which it is ended, whatever it does.
            behind: it gets what the processor has left when others have had theirs.
            complaints: file for what it writes to standard error; None: nobody reads that.
        """
        with storage_errors():
            process = await asyncio.create_subprocess_exec(
                *(_BEHIND if behind else ()),
                "git",
                *arguments,
                env=env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL if complaints is None else complaints,
                start_new_session=True,
            )
        bound_memory(process.pid, memory)
        exchange = cls(process)
        exchange._deadline = asyncio.get_running_loop().call_later(deadline, exchange._terminate)
        return exchange

    async def feed(self, body: AsyncIterator[bytes], *, limit: int) -> None:
        """Gives git the request and keeps what it answers meanwhile.

        Args:
            limit: bytes that the request may have.

        Raises:
            TooLarge: it has more; git has not got its end.
            Refused: code ``git_request_invalid``: the answer to half the request was megabytes.
        """
        early = asyncio.create_task(self._collect_early())
        try:
            await self._feed(body, limit)
        finally:
            early.cancel()
            await asyncio.wait({early})
        if sum(map(len, self._early)) > _EARLY_LIMIT:
            raise Refused("The request asks for too much at once.", code="git_request_invalid")

    async def answer(self) -> AsyncIterator[bytes]:
        """What git answers, in pieces."""
        while self._early:
            yield self._early.pop(0)
        while not self.answered:
            piece = await self._read()
            if piece:
                yield piece

    async def end(self, *, grace: float) -> int:
        """Waits for the process's end, forces it, reaps it.

        Args:
            grace: seconds that it may take to finish by itself.

        Returns:
            Its exit code.
        """
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                return await self._finished()
        self._terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(_TERM_GRACE):
                return await self._finished()
        self._signal(signal.SIGKILL)
        return await self._finished()

    async def _feed(self, body: AsyncIterator[bytes], limit: int) -> None:
        git = self._process.stdin
        taken = 0
        async for piece in body:
            taken += len(piece)
            if taken > limit:
                raise TooLarge(f"The request is larger than {limit} bytes.")
            # A git that has heard enough closes its ear. The rest is still read: many clients listen to
            # the answer only after they have sent everything.
            if git is not None and not git.is_closing():
                git.write(piece)
                with suppress(ConnectionError):
                    await git.drain()
        self.fed = True
        if git is not None:
            git.close()

    async def _collect_early(self) -> None:
        size = 0
        while size <= _EARLY_LIMIT and not self.answered:
            piece = await self._read()
            if piece:
                size += len(piece)
                self._early.append(piece)
        if not self.answered:
            self._terminate()

    async def _read(self) -> bytes:
        out = self._process.stdout
        piece = await out.read(_PIECE) if out is not None else b""
        self.answered = not piece
        return piece

    async def _finished(self) -> int:
        while not self.answered:
            await self._read()
        code = await self._process.wait()
        if self._deadline is not None:
            self._deadline.cancel()
        return code

    def _terminate(self) -> None:
        """Asks the whole group to end; git removes its locks then."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
