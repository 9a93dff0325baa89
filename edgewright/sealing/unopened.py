"""Which values no key of an edge opens any more, in the light of what its repository holds now."""

from collections.abc import Sequence
from uuid import UUID

from edgewright.domain.absence import UnopenedValue
from edgewright.errors import Invalid, NotFound, Stalled
from edgewright.ports.git_server import CommitId, GitServer
from edgewright.sealing.resealed import ciphertext_digest
from edgewright.sealing.sealed_secret import read_values


def still_unopened(git: GitServer, repository: UUID, claimed: Sequence[UnopenedValue]) -> list[UnopenedValue]:
    """Those that the repository still holds: what was entered again since, or never was there, is not lost.

    Blocks: run it in a thread.

    Raises:
        Waiting: the repository cannot be read now.
    """
    try:
        head = git.head(repository)
    except NotFound:
        return []
    return [each for each in claimed if head and _holds(git, repository, head, each)]


def _holds(git: GitServer, repository: UUID, head: CommitId, claimed: UnopenedValue) -> bool:
    try:
        path = claimed.place.secret.path
        document = git.read(repository, path, at=head)
        value = None if document is None else read_values(document, where=path).get(claimed.place.key)
    except (Invalid, Stalled):
        return False
    return value is not None and ciphertext_digest(value.ciphertext) == claimed.sha256
