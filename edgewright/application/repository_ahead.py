"""What a repository that is ahead of a restored database has lost, and the database does not know.

A move to new hardware took secrets away: the list of what has to be entered again is in the database alone. One that
was put back to a moment before the move does not have it, and the step that takes secrets away finds nothing left to
take: the repository tells.

What was listed when the backup was made may have been entered since: the repository has it, and who reads the list
would enter it once more.

A deletion took every workload and secret away: put back to a moment before it, the database wants the cluster as it
was, and nothing that is rendered brings back what people have written.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from uuid import UUID

from edgewright.application.committed_requests import names_a_request
from edgewright.domain.kubernetes_names import SecretPlace, SecretReference, StoredPlace
from edgewright.domain.rendering import SECRETS_FOLDER
from edgewright.domain.rendering.secret_drivers import sealed_files
from edgewright.errors import Stalled
from edgewright.ports.git_server import CommitId, CommitSummary, GitServer
from edgewright.sealing import read_values

TAKEN_TRAILER = "Edgewright-Taken-Away"
"""Says of a commit how many values it takes away that were sealed for the old hardware."""
_TAKES = re.compile(
    rf"^{TAKEN_TRAILER}: \d+$"
    r"|\ATake away \d+ secret values sealed for the old hardware$(?=[\s\S]*^Edgewright-Fence: )",  # up to 0.3.0
    re.MULTILINE,
)
_GENERATION = re.compile(r"^Edgewright-Fence: (\d+)/\d+$", re.MULTILINE)
REMOVAL_TRAILER = "Edgewright-Removal"
"""Says of a commit that it is a removal commit, and what it removes: the workloads."""
PUT_BACK_TRAILER = "Edgewright-Put-Back"
"""Names the removal commit that a restore has undone."""
_REMOVES = re.compile(
    rf"^{REMOVAL_TRAILER}: workloads$"
    r"|\ARemove the workloads of (?=[\s\S]*^Edgewright-Fence: )",  # up to 0.3.0
    re.MULTILINE,
)
_PUTS_BACK = re.compile(rf"^{PUT_BACK_TRAILER}: [0-9a-f]{{40}}$", re.MULTILINE)
_FIRST_LOOK, _LONGEST_LOOK = 20, 1_000_000
"""Commits: most repositories are not ahead, and show that with their newest commit."""


def taken_away(git: GitServer, cluster: UUID, *, after: int) -> set[SecretPlace]:
    """Values that moves took away and that nobody has entered since.

    Args:
        after: the generation that the database knows to be commissioned; what was taken away then is in its list.

    Raises:
        NotFound: there is no such repository.
    """
    taken: set[SecretPlace] = set()
    entered: set[SecretPlace] = set()
    log, ahead = _log(git, cluster, after)
    for number, commit in enumerate(log[:ahead]):
        there = _keys(git, cluster, commit.commit)
        entered |= there
        if _TAKES.search(commit.message) and number + 1 < len(log):
            taken |= _keys(git, cluster, log[number + 1].commit) - entered
    return taken


def entered_since(
    git: GitServer, cluster: UUID, listed: Collection[StoredPlace], *, last_known: CommitId
) -> set[SecretPlace]:
    """Values that requests have put there since, and that no move has taken away again.

    Args:
        listed: places that it is asked of; other values of the same Secrets may be among the answer.
        last_known: the newest commit of secrets that the database knows; empty: none.

    Raises:
        NotFound: there is no such repository.
    """

    def is_last(commit: CommitSummary) -> bool:
        return commit.commit == last_known or _TAKES.search(commit.message) is not None

    log = git.log(cluster, limit=_LONGEST_LOOK, until=is_last)
    if not log or not is_last(log[-1]):
        return set()  # nobody knows since when
    secrets = {place.secret for place in listed if isinstance(place, SecretPlace)}
    entered: set[tuple[SecretPlace, str]] = set()
    for commit, before in pairwise(log):
        if names_a_request(commit):
            entered |= _sealed(git, cluster, commit.commit, secrets) - _sealed(git, cluster, before.commit, secrets)
    return {place for place, _ in entered}


def removal_undone(git: GitServer, cluster: UUID) -> tuple[CommitId, Mapping[str, bytes | None]] | None:
    """The removal commit of a deletion that nothing has followed, and what puts back all that it has changed.

    What somebody has changed since stays as it is. After a removal nothing is rendered or sealed any more: where
    either came later, a restore has gone by already.

    Returns:
        None if there is no such commit.

    Raises:
        NotFound: there is no such repository.
    """
    log = git.log(cluster, limit=_FIRST_LOOK)
    number = _decisive(log)
    if number + 1 >= _FIRST_LOOK:
        log = git.log(cluster, limit=_LONGEST_LOOK)
        number = _decisive(log)
    if number + 1 >= len(log) or not _is_removal(log[number].message):
        return None
    head, removal, before = (log[which].commit for which in (0, number, number + 1))
    paths = {path for commit in (removal, before) for path in git.list(cluster, "", at=commit)}
    changes: dict[str, bytes | None] = {}
    for path in paths:
        was, became = (git.read(cluster, path, at=commit) for commit in (before, removal))
        if was != became and git.read(cluster, path, at=head) == became:
            changes[path] = was
    return removal, changes


def _is_removal(message: str) -> bool:
    """Whether a commit of the centre's removes the workloads; one made by hand of a removal and its end does not."""
    return _REMOVES.search(message) is not None and not _PUTS_BACK.search(message)


def _decisive(log: Sequence[CommitSummary]) -> int:
    """How many commits are newer than the newest one that tells whether a removal is in force.

    It is the removal, or undoes it, or comes of a life that went on. Pushes do not tell, nor does the end of a move
    that a removal overtook.
    """
    for number, commit in enumerate(log):
        if _GENERATION.search(commit.message) and not _TAKES.search(commit.message):
            return number
    return len(log)


def _log(git: GitServer, cluster: UUID, after: int) -> tuple[Sequence[CommitSummary], int]:
    """The newest commits, and how many of them are of later generations."""
    log = git.log(cluster, limit=_FIRST_LOOK)
    ahead = _ahead(log, after)
    if ahead == _FIRST_LOOK:
        log = git.log(cluster, limit=_LONGEST_LOOK)
        ahead = _ahead(log, after)
    return log, ahead


def _ahead(log: Sequence[CommitSummary], after: int) -> int:
    """How many commits are newer than the newest one of a generation that is known; pushes bear none.

    A commit that puts back what was removed bears the generation of the restored database.
    """
    for number, commit in enumerate(log):
        generation = _GENERATION.search(commit.message)
        if generation is not None and int(generation[1]) <= after and not _PUTS_BACK.search(commit.message):
            return number
    return len(log)


def _keys(git: GitServer, cluster: UUID, at: CommitId) -> set[SecretPlace]:
    return {place for place, _ in _sealed(git, cluster, at)}


def _sealed(
    git: GitServer, cluster: UUID, at: CommitId, secrets: Collection[SecretReference] | None = None
) -> set[tuple[SecretPlace, str]]:
    """Each value's place and ciphertext; a file that cannot be read counts as a whole, without a key.

    Args:
        secrets: those that are read; None: all.
    """
    sealed: set[tuple[SecretPlace, str]] = set()
    for path, secret in sealed_files(git.list(cluster, SECRETS_FOLDER.rstrip("/"), at=at)):
        if secrets is not None and secret not in secrets:
            continue
        try:
            values = read_values(git.read(cluster, path, at=at) or b"", where=path)
            sealed |= {(secret.at(key), value.ciphertext) for key, value in values.items()}
        except Stalled:
            sealed.add((secret, ""))
    return sealed
