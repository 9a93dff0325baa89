"""Secrets that the repository holds no longer, and the edge perhaps does: there, they keep their type."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from uuid import UUID

from edgewright.application.committed_requests import removed_keys_of
from edgewright.domain.kubernetes_names import SecretReference, StoredPlace
from edgewright.errors import Conflict, NotFound, Stalled
from edgewright.ports.git_server import CommitId, CommitSummary, GitServer
from edgewright.sealing import read_template

LOOK_BACK = 200
"""Commits that are looked through at most, beside the one that the edge has applied."""


@dataclass(frozen=True)
class UnappliedDeletions:
    """What the edge of one cluster may not have applied yet. Blocks: use it in a thread.

    Args:
        name: of the cluster.
        observed: the commit that the edge says it has applied; None: nobody can tell what it has.
    """

    git: GitServer
    cluster: UUID
    name: str
    head: CommitId | None
    observed: CommitId | None

    def refuse_other_type(self, secret: SecretReference, secret_type: str) -> None:
        """For a Secret that the repository does not hold.

        Raises:
            Conflict: code ``secret_type_immutable``: the edge may have it with another type. Its controller would
                fail to change that, and go on with the old value.
        """
        if None in (self.head, self.observed) or self.head == self.observed:
            return
        for commit in self._with_it(secret):
            found = self._type_at(commit, secret.path)
            if found not in {None, secret_type}:
                raise Conflict(
                    f"{self.name} may still have the deleted Secret {secret}, with the type {found}, and "
                    "Kubernetes lets nobody change the type of a Secret that is there.",
                    code="secret_type_immutable",
                    hint=f"Wait until the edge has applied the deletion: edgewright cluster wait {self.name} "
                    "--for synced. Then set it again.",
                    where="type",
                )

    def _with_it(self, secret: SecretReference) -> list[CommitId]:
        """Commits that may hold the Secret: the one that the edge has applied, and each before keys were removed."""
        held = [] if self.observed is None else [self.observed]
        for (_, removed_from), (before, _) in pairwise(self._newer):
            if secret in removed_from:
                held.append(before)
        return held

    @cached_property
    def _newer(self) -> list[tuple[CommitId, frozenset[StoredPlace]]]:
        """The commits that the edge has not applied, newest first, and the one that it has; each with the Secrets
        that it has taken keys from."""

        def is_last(commit: CommitSummary) -> bool:
            return commit.commit == self.observed

        log = self.git.log(self.cluster, limit=LOOK_BACK, until=is_last)
        return [(commit.commit, removed_keys_of(commit)) for commit in log]

    def _type_at(self, commit: CommitId, path: str) -> str | None:
        try:
            document = self.git.read(self.cluster, path, at=commit)
            return None if document is None else read_template(document).type
        except (NotFound, Stalled):  # a commit of before a restore, or a file that no edge can use
            return None
