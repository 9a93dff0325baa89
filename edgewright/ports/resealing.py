"""Re-sealings: which Secrets an edge is asked to re-seal, and what it answered."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from edgewright.domain.cluster import Resealing
from edgewright.domain.kubernetes_names import SecretReference, StoredPlace
from edgewright.errors import Conflict
from edgewright.ports.git_server import CommitId


@dataclass(frozen=True)
class ResealedValue:
    """A new ``ciphertext``, and the SHA-256 of the ciphertext that it replaces (base64, as in the file)."""

    old_sha256: str
    ciphertext: str


@dataclass(frozen=True)
class Verdict:
    """The centre's verdict on the answer for one Secret.

    Args:
        values: key -> the re-sealed value.
        unreadable: keys whose value no key of the edge opens any more.
        waits_for: why the edge will be asked again, as a sentence; empty: it has answered.
    """

    secret: SecretReference
    values: Mapping[str, ResealedValue] = field(default_factory=dict)
    unreadable: Sequence[str] = ()
    waits_for: str = ""


def nothing_to_reseal(name: str) -> Conflict:
    """Returns the refusal of an answer that was not requested."""
    return Conflict(f"The centre has not asked {name} to re-seal anything.", code="nothing_to_reseal")


class Resealings(Protocol):
    """A cluster has at most one re-sealing under way. New hardware ends it, and drops the values gathered so far."""

    async def begin(
        self, cluster: UUID, generation: int, secrets: Collection[SecretReference], *, actor: str, reason: str
    ) -> Resealing | None:
        """Requests the re-sealing of Secrets; new ones join the re-sealing under way. None: there are no Secrets, and
        none is under way. In any case, the cluster is no longer due.

        Raises ``Conflict`` (``removed``, ``deleting``), ``NotFound``, and ``Superseded`` for another generation.
        """

    async def wanted(self, cluster: UUID, *, limit: int) -> Sequence[StoredPlace]:
        """Returns the Secrets that the edge is to re-seal now; those never tried come first."""

    async def take(
        self,
        cluster: UUID,
        generation: int,
        fingerprint: str,
        verdicts: Sequence[Verdict],
        *,
        secrets_commit: CommitId | None = None,
    ) -> Resealing:
        """Records answers in one transaction: gathers values, lists unreadable ones to be entered again, and stages
        the gathered values as one request once every Secret was tried, or there are enough for a commit.

        Args:
            fingerprint: fingerprint of the certificate that sealed the values.
            secrets_commit: from the cluster's row before the answers were judged. If another one is recorded by now,
                Secrets with unreadable values are asked for again: somebody may have entered them.

        Raises ``Conflict`` (``nothing_to_reseal``: no re-sealing is under way; ``certificate_differs``: another
        certificate is in use by now; ``removed``, ``deleting``), and ``Superseded`` for another generation.
        """

    async def due(self) -> Sequence[UUID]:
        """Returns all clusters that replaced a key of over 90 days, and whose values nobody has asked to re-seal
        since, in any order."""
