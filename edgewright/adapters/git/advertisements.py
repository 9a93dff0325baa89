"""What repositories have to offer, as git tells it. Most requests are polls, and a process of git for each would be
most of what they cost.

An answer is kept for as long as the branch stays where it is. A repository that was not asked for yet, as all of them
after a start, is not asked for either if it has nothing but ``main``: git says of it what it has said of another one
with the same settings, but for the commit.
"""

import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

from edgewright.adapters.git.commits import is_commit_id
from edgewright.adapters.git.failures import storage_errors
from edgewright.adapters.git.http_protocol import Service
from edgewright.adapters.git.refs import HEADS, MAIN, read_head
from edgewright.ports.git_server import CommitId

Ask = Callable[[Path, Service, str], Awaitable[bytes]]
"""Asks git: the folder of a repository, a service, the versions of the protocol that the client knows."""

_KEPT = 20_000
_EXAMPLES = 64
"""Settings and protocol versions, of which there are some few; a client may name odd ones."""
_ON_MAIN = b"ref: refs/heads/main\n"


class Advertisements:
    """Keeps the advertisements of all repositories for one process."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._kept: OrderedDict[tuple[UUID, Service, str], tuple[object, bytes]] = OrderedDict()
        self._examples: dict[tuple[str, bytes], tuple[CommitId, bytes]] = {}

    async def of(
        self, repository: UUID, folder: Path, service: Service, protocol: str, *, ask: Ask | None = None
    ) -> bytes:
        """What to answer to ``info/refs``; raises what asking git does.

        Args:
            ask: in the name of whoever wants to know; None: in nobody's.

        Raises:
            edgewright.errors.Waiting: code ``git_unavailable``.
        """
        key, state = (repository, service, protocol), _state(folder)
        known = self._kept.get(key)
        if known is None or known[0] != state:
            known = (state, await self._made(folder, service, protocol, ask or self._ask))
            self._kept[key] = known
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return known[1]

    async def _made(self, folder: Path, service: Service, protocol: str, ask: Ask) -> bytes:
        plain = _plain(folder) if service == "git-upload-pack" else None
        if plain is None:
            return await ask(folder, service, protocol)
        head, config = plain
        example = self._examples.get((protocol, config))
        if example is not None:
            return example[1].replace(example[0].encode(), head.encode())
        told = await ask(folder, service, protocol)
        # Nothing is learned from what was told of another commit, to which the branch has moved meanwhile. Protocol
        # version 2 names no commit at all.
        is_of_it = b" refs/heads/main\n" not in told or f"{head} refs/heads/main\n".encode() in told
        if is_of_it and len(self._examples) < _EXAMPLES:
            self._examples[protocol, config] = (head, told)
        return told


def _state(folder: Path) -> object:
    """Changes whenever ``main`` does: its value, and the last change of what holds it."""
    with storage_errors():
        return read_head(folder), (folder / HEADS).stat().st_mtime_ns, _changed_at(folder / "packed-refs")


def _changed_at(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _plain(folder: Path) -> tuple[CommitId, bytes] | None:
    """The commit of ``main`` and the settings of a repository that has no other ref; None for any other one."""
    with storage_errors():
        head = read_head(folder)
        loose = {Path(place, name) for place, _, names in os.walk(folder / "refs") for name in names}
        if head is None or not loose <= {folder / MAIN} or (folder / "HEAD").read_bytes() != _ON_MAIN:
            return None
        packed = folder / "packed-refs"
        lines = packed.read_text("ascii", errors="replace").splitlines() if packed.exists() else []
        if any(not (line.startswith("#") or _names_main(line)) for line in lines):
            return None
        return head, (folder / "config").read_bytes()


def _names_main(line: str) -> bool:
    commit, _, name = line.partition(" ")
    return name == MAIN and is_commit_id(commit)
