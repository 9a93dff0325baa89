"""Where driving repositories live."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from edgewright.errors import Waiting

CommitId = str
"""40 lower-case hexadecimal digits."""


class HeadMoved(Waiting):
    """The branch no longer points to the commit that the caller built upon; read again and retry."""

    code = "head_moved"


@dataclass(frozen=True)
class CommitMessage:
    """What a commit says of itself.

    Args:
        subject: one line, at most 72 characters are shown by most tools.
        actor: who asked for it, such as ``token:ci``; becomes the author's name.
        trailers: ordered ``(key, value)`` pairs; the fence is among them.
        body: free text between subject and trailers; may be empty.
    """

    subject: str
    actor: str
    trailers: Sequence[tuple[str, str]] = ()
    body: str = ""


@dataclass(frozen=True)
class CommitSummary:
    """One commit as read back.

    Args:
        at: seconds since the epoch, by the committer.
    """

    commit: CommitId
    message: str
    author: str
    at: int


@dataclass(frozen=True)
class WriterFence:
    """Lets a repository refuse an attempt at a commit that another one has overtaken.

    An attempt may sleep anywhere between its last check and its commit, for as long as a disk stalls; nobody can
    cancel a thread. Whatever moved the head meanwhile refuses it by ``expected_head``. An attempt that found nothing
    to change moves no head: it writes its fence into the repository instead. So do a pause and a central removal,
    which commit nothing (``GitServer.raise_fence``).

    Args:
        change: generation and change of the row that the attempt serves, as ``3/17``; kept for whoever looks.
        number: what ``fence_number`` returned before the attempt read anything that it decides by.
    """

    change: str
    number: int


class GitServer(Protocol):
    """Bare repositories with one branch, ``main``; named by UUID on disk.

    All calls block on disk and processes: run them in a thread. Every call is safe to repeat. Any call but
    ``create_repository`` raises ``edgewright.errors.NotFound`` (code ``repository_unknown``) for a repository
    that does not exist, and any may raise ``edgewright.errors.Waiting`` (code ``git_unavailable``) when the
    storage cannot be used; such messages carry no credentials.
    """

    def archivals(self, repository: UUID) -> int:
        """How often ``archive`` was called, also while there was no repository; 0 for one that never was.

        Read it before you make sure that the repository is still wanted.
        """

    def create_repository(self, repository: UUID, *, archivals: int | None = None) -> None:
        """Makes an empty repository whose branch is ``main``; does nothing if it is there and whole.

        A creation that was killed half-way leaves nothing that a later call trips over.

        Args:
            archivals: what ``archivals`` returned; an attempt that ``archive`` has overtaken since is refused, as
                nothing would ever take its repository out of service. None: nobody archives this one.

        Raises:
            edgewright.errors.Waiting: code ``repository_archived``.
        """

    def sole_maker(self) -> AbstractContextManager[None]:
        """Keeps out everybody else who asks for this, in any process, until the context ends or the process dies.

        Who makes and archives repositories because of entries holds this from the look at the entry to the last word
        about it, so that the one is never left without the other.

        Raises:
            edgewright.errors.Waiting: code ``repository_busy``: others held it for too long.
        """

    def exists(self, repository: UUID) -> bool:
        """Whether the repository is there (archived ones are not)."""

    def head(self, repository: UUID) -> CommitId | None:
        """The commit of ``main``, or None while it has none."""

    def fence_number(self, repository: UUID) -> int:
        """How many fences attempts have written that found nothing to change; 0 in a new repository.

        Read it, then the head, then everything else that decides what is committed.
        """

    def raise_fence(self, repository: UUID, change: str, *, once: bool = False) -> None:
        """Refuses from now on every attempt that read an earlier number; durable when it returns.

        For who commits nothing, and must be sure that nothing lands any more that was begun before.

        Args:
            change: see ``WriterFence.change``.
            once: does nothing if the newest fence is of this change already: whoever began after that has read the
                row as it is now.
        """

    def commit(
        self,
        repository: UUID,
        changes: Mapping[str, bytes | None],
        message: CommitMessage,
        *,
        expected_head: CommitId | None,
        fence: WriterFence | None = None,
    ) -> CommitId:
        """Commits all changes at once, compare-and-set on ``main``; durable when it returns.

        Args:
            changes: path -> new content, or None to delete; a path that is absent may be deleted. Folders
                that become empty vanish. Content of other paths is untouched.
            expected_head: what ``main`` must still point to; None for the first commit.
            fence: of an attempt that others may overtake. If nothing would change, it is written: from then on every
                attempt that read an earlier number is refused.

        Returns:
            The new commit; ``expected_head`` itself if nothing would change (no empty commits).

        Raises:
            HeadMoved: ``main`` points elsewhere, or another fence was written; nothing was changed.
            edgewright.errors.Invalid: a path that could leave the repository or is not portable
                (code ``path_invalid``).
        """

    def read(self, repository: UUID, path: str, *, at: CommitId) -> bytes | None:
        """The content of one file at a commit, or None if it is not there."""

    def list(self, repository: UUID, prefix: str, *, at: CommitId) -> Sequence[str]:
        """The paths of all files below the folder ``prefix`` (``""`` for all) at a commit, sorted."""

    def folder_id(self, repository: UUID, folder: str, *, at: CommitId) -> str | None:
        """Stands for everything in a folder at a commit: equal IDs, equal files, in any repository.

        Returns:
            None if there is no such folder.
        """

    def is_ancestor(self, repository: UUID, ancestor: CommitId, descendant: CommitId) -> bool:
        """Whether ``descendant`` is ``ancestor`` or descends from it; False if either is unknown."""

    def log(
        self,
        repository: UUID,
        *,
        limit: int,
        back_to: Collection[CommitId] = (),
        only: Callable[[CommitSummary], bool] | None = None,
        until: Callable[[CommitSummary], bool] | None = None,
    ) -> Sequence[CommitSummary]:
        """The newest commits of ``main``, newest first; empty while there are none.

        Args:
            limit: how many are looked at.
            only: which of them are wanted; the messages of the others, which may be long, are not kept.
            back_to: commits that were heads; what is older than all of them may be left out.
            until: asked of each commit in turn; the first one that it is true of is the last one that is looked at.
        """

    def archive(self, repository: UUID) -> None:
        """Takes the repository out of service and keeps its bytes, and refuses what began to make it before.

        Only the latter happens if it is not there.
        """

    def upkeep(self, repository: UUID) -> None:
        """Repacks when it is worth it and removes locks that a dead process left behind."""
