"""What is special about a push: its limits, its rules, and word of what it did."""

import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from edgewright.adapters.git.hooks import hook_environment
from edgewright.adapters.git.http_exchange import Exchange
from edgewright.adapters.git.http_protocol import last_word, packet
from edgewright.adapters.git.memory_limit import MIB, PUSH_MEMORY, ran_out_of_memory
from edgewright.adapters.git.refs import MAIN
from edgewright.domain.own_objects import NOTHING, OwnObjects
from edgewright.errors import TooLarge
from edgewright.ports.git_server import CommitId

BY_HAND = "by-hand"
"""The folder of a driving repository that pushes may change."""
ANY_PATH = ""
"""In the place of a folder: pushes may change everything."""
_CLEARING = 3.0
_MOST_COMPLAINTS = 64 * 1024
_UNPACK = re.compile(rb"[0-9a-f]{4}unpack [^\n]*\n")
_MEMORY_SENTENCE = (
    b"The push needs more memory to unpack than the centre gives to it (%d MiB): "
    b"push less at a time, and keep large files elsewhere." % (PUSH_MEMORY // MIB)
)


@dataclass(frozen=True)
class Pushed:
    """A push that moved ``main``. ``old``: zeros only, if it was the first one."""

    old: CommitId
    new: CommitId


@dataclass(frozen=True)
class PushContext:
    """A push that somebody may do.

    Args:
        on_pushed: awaited when ``main`` has moved, before the client hears of it, even if the client is gone
            by then; never for a refused push. What it raises breaks the answer off.
        limit: bytes that the push may have.
        folder: the only one that the push may change, or ``ANY_PATH``: then it may also be the first one.
        own: objects that bootstrap has brought to the edge; with those that the repository itself has generated, no
            push to a folder may bring them.
    """

    on_pushed: Callable[[Pushed], Awaitable[None]]
    limit: int = 32 * MIB
    folder: str = BY_HAND
    own: OwnObjects = NOTHING


@dataclass(frozen=True)
class PushReceipt:
    """The file in which the ``post-receive`` hook says what has moved.

    Args:
        hooks: the folder of the hooks.
        path: not there until a push is through.
    """

    hooks: Path
    path: Path

    @classmethod
    def blank(cls, hooks: Path) -> "PushReceipt":
        """A receipt for one push."""
        return cls(hooks, hooks / f"receipt-{secrets.token_hex(8)}")

    def environment(self, push: PushContext) -> Mapping[str, str]:
        """What the hooks have to know."""
        return hook_environment(self.path, push.folder, push.own)

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


def explain_memory_limit(answer: bytes, complaints: IO[bytes]) -> bytes | None:
    """The answer to a push for which git got no more memory, with a sentence that says so; None for any other one.

    Args:
        answer: git's own. Whoever asked for the side band finds git's complaints in it, and reads the sentence as
            one more of those; others read it as the reason why the pack was not unpacked.
        complaints: what git has written to standard error.
    """
    if b"unpack ok" in answer:
        return None
    complaints.seek(0)
    if ran_out_of_memory(complaints.read(_MOST_COMPLAINTS)):
        reason = packet(b"unpack " + _MEMORY_SENTENCE + b"\n")
        return _UNPACK.sub(lambda _: reason, answer, count=1) if _UNPACK.search(answer) else reason + b"0000"
    if ran_out_of_memory(answer):
        return packet(b"\x02" + _MEMORY_SENTENCE + b"\n") + answer
    return None


async def settle_push(exchange: Exchange, receipt: PushReceipt, push: PushContext, *, grace: float) -> int:
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
