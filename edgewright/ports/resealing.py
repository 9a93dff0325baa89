"""Re-sealings: which Secrets an edge is asked to seal anew, and what it has answered."""

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
    """``old_sha256``: of the ciphertext (base64, as it stands in the file) that ``ciphertext`` is to replace."""

    old_sha256: str
    ciphertext: str


@dataclass(frozen=True)
class Verdict:
    """What the centre makes of the answer for one Secret.

    Args:
        values: key -> what is to be put in the place of what.
        unreadable: keys whose value no key of the edge opens any more.
        waits_for: why the edge will be asked again, a sentence; empty: it has answered.
    """

    secret: SecretReference
    values: Mapping[str, ResealedValue] = field(default_factory=dict)
    unreadable: Sequence[str] = ()
    waits_for: str = ""


def nothing_to_reseal(name: str) -> Conflict:
    """The refusal of an answer that nobody has asked for."""
    return Conflict(f"The centre has not asked {name} to re-seal anything.", code="nothing_to_reseal")


class Resealings(Protocol):
    """At most one per cluster is under way. The hardware changes: it is over, whatever was gathered is dropped."""

    async def begin(
        self, cluster: UUID, generation: int, secrets: Collection[SecretReference], *, actor: str, reason: str
    ) -> Resealing | None:
        """Asks for Secrets to be re-sealed; those that are not asked for yet join what is under
        way. None: there are none, and nothing is under way. Nothing is due any more in any case.

        Raises ``Conflict`` (``removed``, ``deleting``), ``NotFound``, and ``Superseded`` for another generation.
        """

    async def wanted(self, cluster: UUID, *, limit: int) -> Sequence[StoredPlace]:
        """Secrets that the edge is to re-seal now; those never tried first."""

    async def take(
        self,
        cluster: UUID,
        generation: int,
        fingerprint: str,
        verdicts: Sequence[Verdict],
        *,
        secrets_commit: CommitId | None = None,
    ) -> Resealing:
        """Records answers in one transaction: gathers values, notes what is unreadable (it must be entered again),
        and stages what is gathered, as one request, when every Secret was tried or it is enough for a commit.

        Args:
            fingerprint: of the certificate that the values are sealed with.
            secrets_commit: of the cluster's row before the answers were judged. If another one is recorded by now,
                Secrets with unreadable values are asked for again: somebody may have entered these.

        Raises ``Conflict`` (``nothing_to_reseal``: no re-sealing is under way; ``certificate_differs``: another
        certificate is in use by now; ``removed``, ``deleting``), and ``Superseded`` for another generation.
        """

    async def due(self) -> Sequence[UUID]:
        """Clusters with a superseded key of over 90 days whose values nobody has asked to re-seal since, all of them
        in any order."""
