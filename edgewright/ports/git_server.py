"""The storage of Git repositories."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from edgewright.errors import Waiting

CommitId = str
"""40 lower-case hexadecimal digits."""


class HeadMoved(Waiting):
    """The branch no longer points to the commit that the caller started from; read again and retry."""

    code = "head_moved"


@dataclass(frozen=True)
class CommitMessage:
    """The message and author of a commit.

    Args:
        subject: one line; most tools show at most 72 characters.
        actor: who requested it, such as ``token:ci``; becomes the author's name.
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
    """Lets a repository refuse an attempt at a commit that another attempt has overtaken.

    An attempt may hang between its last check and its commit for as long as a disk stalls, and nobody can cancel a
    thread. If the head moved meanwhile, ``expected_head`` makes the repository refuse the attempt. An attempt that
    finds nothing to change does not move the head: it writes its fence into the repository instead. So do a pause and
    a central removal, which commit nothing (``GitServer.raise_fence``).

    Args:
        change: generation and change of the row that the attempt serves, as ``3/17``; kept for diagnosis.
        number: what ``fence_number`` returned before the attempt read anything that it bases its decision on.
    """

    change: str
    number: int


class GitServer(Protocol):
    """Bare repositories with one branch, ``main``, named by UUID on disk.

    All calls block on disk and processes: run them in a thread. Every call is safe to repeat. All calls except
    ``create_repository`` raise ``edgewright.errors.NotFound`` (code ``repository_unknown``) for a repository
    that does not exist. Any call may raise ``edgewright.errors.Waiting`` (code ``git_unavailable``) if the
    storage is unavailable; its message contains no credentials.
    """

    def archivals(self, repository: UUID) -> int:
        """Returns how often ``archive`` was called, even without a repository; 0 for one that never existed.

        Read this before you check that the repository is still wanted.
        """

    def create_repository(self, repository: UUID, *, archivals: int | None = None) -> None:
        """Creates an empty repository with the branch ``main``; does nothing if it exists and is complete.

        A creation that was killed half-way does not affect a later call.

        Args:
            archivals: what ``archivals`` returned. If ``archive`` was called since, the attempt is refused, because
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
        """Whether the repository exists (archived ones do not)."""

    def head(self, repository: UUID) -> CommitId | None:
        """Returns the commit of ``main``, or None if it has none yet."""

    def fence_number(self, repository: UUID) -> int:
        """Returns how many fences were written by attempts that found nothing to change; 0 in a new repository.

        Read this first, then the head, then everything else that decides what is committed.
        """

    def raise_fence(self, repository: UUID, change: str, *, once: bool = False) -> None:
        """Makes the repository refuse every attempt that read an earlier number; durable when it returns.

        For callers that commit nothing, but must be sure that no earlier attempt commits any more.

        Args:
            change: see ``WriterFence.change``.
            once: does nothing if the newest fence already has this change: attempts that began after it have read the
                present row.
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
            changes: path -> new content, or None to delete; deleting an absent path is allowed. Folders
                that become empty disappear. Other paths are untouched.
            expected_head: what ``main`` must still point to; None for the first commit.
            fence: fence of an attempt that others may overtake. If nothing would change, it is written, which makes
                the repository refuse every attempt that read an earlier number.

        Returns:
            The new commit; ``expected_head`` itself if nothing would change (no empty commits).

        Raises:
            HeadMoved: ``main`` points elsewhere, or another fence was written; nothing was changed.
            edgewright.errors.Invalid: a path could leave the repository, or is not portable
                (code ``path_invalid``).
        """

    def read(self, repository: UUID, path: str, *, at: CommitId) -> bytes | None:
        """Returns the content of one file at a commit, or None if it does not exist."""

    def list(self, repository: UUID, prefix: str, *, at: CommitId) -> Sequence[str]:
        """Returns the paths of all files below the folder ``prefix`` (``""`` for all) at a commit, sorted."""

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
        """Returns the newest commits of ``main``, newest first; empty if there are none.

        Args:
            limit: how many commits to look at.
            only: which of them to return; the messages of the others, which may be long, are not kept.
            back_to: former heads; commits that are older than all of them may be left out.
            until: called for each commit in turn; the first one for which it is true is the last one looked at.
        """

    def archive(self, repository: UUID) -> None:
        """Takes the repository out of service, keeps its bytes, and refuses earlier attempts to create it.

        If there is no repository, only refuses these attempts.
        """

    def upkeep(self, repository: UUID) -> None:
        """Repacks if it is worthwhile, and removes locks that a dead process left behind."""
