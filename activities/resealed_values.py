"""Re-sealed values on their way into a repository: compare-and-set, value by value."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.errors import Refused, Stalled
from edgewright.ports.git_server import CommitId, GitServer
from edgewright.ports.secret_staging import StagedChange
from edgewright.sealing import SealedValue, replace_values

Requests = Mapping[UUID, Sequence[StagedChange]]


def together(requests: Requests) -> tuple[Requests, bool]:
    """The requests that are committed now, and whether these are of re-sealed values.

    What people have written goes first, and never into one commit with what an edge has sent: that is to be reverted
    by itself.
    """
    resealed = {request: changes for request, changes in requests.items() if changes[0].replaces is not None}
    written = {request: changes for request, changes in requests.items() if request not in resealed}
    return (written, False) if written else (resealed, True)


def put_in_place(
    git: GitServer, repository: UUID, head: CommitId, changes: Sequence[StagedChange]
) -> tuple[dict[str, bytes | None], list[StagedChange]]:
    """The files that result, and the changes that find something else in the place of what they replace. Blocks."""
    files: dict[str, bytes | None] = {}
    outdated: list[StagedChange] = []
    for secret, of_secret in _by_secret(changes).items():
        path = secret.path
        document = git.read(repository, path, at=head)
        replacements = {
            key: (change.replaces or "", SealedValue(change.ciphertext, change.fingerprint, change.sealed_at))
            for key, change in of_secret
            if change.ciphertext is not None
        }
        try:
            changed, gone = replace_values(document, secret, replacements)
        except (Refused, Stalled):
            changed, gone = document, replacements.keys()  # the file was changed into something that holds no value
        outdated += [change for key, change in of_secret if key in gone]
        if changed != document:
            files[path] = changed
    return files, outdated


def _by_secret(changes: Sequence[StagedChange]) -> dict[SecretReference, list[tuple[str, StagedChange]]]:
    """Key and change; a re-sealed value always has a key."""
    grouped: dict[SecretReference, list[tuple[str, StagedChange]]] = {}
    for change in changes:
        if isinstance(change.place, SecretKey):
            grouped.setdefault(change.place.secret, []).append((change.place.key, change))
    return grouped
