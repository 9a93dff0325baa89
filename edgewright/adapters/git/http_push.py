"""What is special about a push: its limits, its rules, and word of what it did."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from edgewright.adapters.git.hooks import hook_environment
from edgewright.adapters.git.http_exchange import Exchange
from edgewright.adapters.git.http_protocol import last_word
from edgewright.adapters.git.refs import MAIN
from edgewright.errors import TooLarge
from edgewright.ports.git_server import CommitId

MIB = 1024 * 1024

_CLEARING = 3.0


@dataclass(frozen=True)
class Pushed:
    """A push that moved ``main``."""

    old: CommitId
    new: CommitId


@dataclass(frozen=True)
class PushContext:
    """A push that somebody may do.

    Args:
        on_pushed: awaited when ``main`` has moved, before the client hears of it, even if the client is gone
            by then; never for a refused push. What it raises breaks the answer off.
        limit: bytes that the push may have.
    """

    on_pushed: Callable[[Pushed], Awaitable[None]]
    limit: int = 32 * MIB


@dataclass(frozen=True)
class Receipt:
    """The file in which the ``post-receive`` hook says what has moved.

    Args:
        hooks: the folder of the hooks.
        path: not there until a push is through.
    """

    hooks: Path
    path: Path

    @classmethod
    def blank(cls, hooks: Path) -> "Receipt":
        """A receipt for one push."""
        return cls(hooks, hooks / f"receipt-{secrets.token_hex(8)}")

    def environment(self) -> Mapping[str, str]:
        """What the hooks have to know."""
        return hook_environment(self.path)

    def take(self) -> Pushed | None:
        """What was pushed; None if nothing was. The file is gone afterwards."""
        try:
            lines = self.path.read_text("ascii", errors="replace").splitlines()
        except FileNotFoundError:
            return None
        self.path.unlink()
        for line in lines:
            old, new, ref = line.split(" ", 2)
            if ref == MAIN:
                return Pushed(old, new)
        return None


def push_settings(hooks: Path, limit: int) -> list[str]:
    """Options of ``git``: what holds for every push, whatever the repository's own configuration says."""
    settings = {
        "core.hooksPath": str(hooks),
        "core.fsync": "all",
        "core.deltaBaseCacheLimit": "32m",
        "pack.threads": "1",
        "core.bigFileThreshold": "16m",  # larger files are streamed to disk, not unpacked in memory
        "receive.fsckObjects": "true",
        "receive.fsck.badFilemode": "error",  # git would only warn, and other readers see another tree then
        "receive.fsck.zeroPaddedFilemode": "error",
        "receive.maxInputSize": str(limit),
        "receive.denyDeletes": "true",
        "receive.denyNonFastForwards": "true",
        "receive.autogc": "false",
    }
    return [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]


async def settle_push(exchange: Exchange, receipt: Receipt, push: PushContext, *, grace: float) -> int:
    """Ends the exchange and tells of the push if it went through; returns git's exit code.

    Args:
        grace: seconds for a push that git has got wholly; it may finish though nobody listens any more.
    """
    # A push that breaks off is refused by git, which clears away what came so far; a signal would not let it.
    code = await exchange.end(grace=grace if exchange.fed or exchange.answered else _CLEARING)
    pushed = receipt.take()
    if pushed is not None:
        await push.on_pushed(pushed)
    return code


async def refuse_as_too_large(request: AsyncIterator[bytes], limit: int) -> bytes:
    """Reads on for a while, since clients listen only after they have spoken; then the refusal.

    Raises:
        TooLarge: the request does not come to an end.
    """
    size = f"{limit / MIB:g} MiB"
    taken = 0
    async for piece in request:
        taken += len(piece)
        if taken > 4 * limit:
            raise TooLarge(f"The push is far larger than {size}.", hint="Push less at a time.")
    return last_word(f"The push is larger than {size}: push less at a time, and keep large files elsewhere.")
