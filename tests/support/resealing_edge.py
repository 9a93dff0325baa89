"""An edge that re-seals: its controller's keys, and what it answers the centre. Shares nothing with the agent."""

import hashlib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID, uuid4

from centre import WorkflowCentre
from cryptography.hazmat.primitives.asymmetric import rsa
from sealing_keys import certificate_pem, open_envelope

from edgewright.domain.cluster import CertificateFacts, Resealing
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.ports.git_server import GitServer
from edgewright.ports.resealing import ResealedValue
from edgewright.ports.secret_staging import StagedChange
from edgewright.sealing import (
    Plaintext,
    ResealingAnswer,
    Scope,
    SealingCertificate,
    judge_answers,
    parse_certificate,
    read_values,
    seal,
    stale_secrets,
)


@cache
def key(number: int) -> rsa.RSAPrivateKey:
    """One of the keys that a controller makes in the course of time."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def certificate(number: int) -> SealingCertificate:
    now = datetime.now(UTC)
    pem = certificate_pem(key(number), not_before=now - timedelta(1), not_after=now + timedelta(3650))
    return parse_certificate(pem, now=now)


def digest(ciphertext: str) -> str:
    return hashlib.sha256(ciphertext.encode()).hexdigest()


def sealed(value: bytes, secret: str, number: int) -> str:
    """A value for one Secret, ``namespace/name``, sealed with one of the keys."""
    namespace, _, name = secret.partition("/")
    return seal(Plaintext(value), certificate(number), scope=Scope.STRICT, secret=SecretReference(namespace, name))


@dataclass
class ResealingEdge:
    """Holds what the repository of its cluster holds when it looks.

    Args:
        keys: that its controller has, the newest last.
    """

    git: GitServer
    cluster: UUID
    keys: list[int] = field(default_factory=lambda: [1, 2])

    @property
    def newest(self) -> SealingCertificate:
        return certificate(self.keys[-1])

    @property
    def fingerprint(self) -> str:
        der = ssl.PEM_cert_to_DER_cert(self.newest.pem)
        return hashlib.sha256(der).hexdigest()

    def ciphertexts(self, secret: str) -> dict[str, str]:
        """Key -> ciphertext, of one Secret in the repository."""
        head = self.git.head(self.cluster)
        assert head
        document = self.git.read(self.cluster, f"edo/secrets/{secret}.yaml", at=head)
        return {} if document is None else {k: v.ciphertext for k, v in read_values(document).items()}

    def opened(self, secret: str) -> dict[str, bytes | None]:
        """Key -> value; None for what no key opens."""
        return {k: self._open(secret, text) for k, text in self.ciphertexts(secret).items()}

    def answer(self, secret: str) -> dict[str, Any]:
        """What an honest agent says of one Secret."""
        namespace, _, name = secret.partition("/")
        held = self.ciphertexts(secret)
        values, unreadable = {}, {}
        for each, ciphertext in held.items():
            value = self._open(secret, ciphertext)
            if value is None:
                unreadable[each] = digest(ciphertext)
            else:
                again = sealed(value, secret, self.keys[-1])
                values[each] = {"old_sha256": digest(ciphertext), "ciphertext": again}
        return {
            "namespace": namespace,
            "name": name,
            "values": values,
            "unreadable": unreadable,
            "absent": not held,
        }

    def body(self, secrets: Sequence[str]) -> dict[str, Any]:
        """What it sends for several."""
        return {"fingerprint": self.fingerprint, "secrets": [self.answer(secret) for secret in secrets]}

    def _open(self, secret: str, ciphertext: str) -> bytes | None:
        for number in self.keys:
            try:
                return open_envelope(ciphertext, key(number), secret.encode())
            except ValueError:
                continue
        return None


def status(number: int) -> Mapping[str, Any]:
    """The *Edge cluster status* of an edge whose newest key is this one."""
    return {"hosts": [{"hostname": "node-1"}], "kubeseal_cert": certificate(number).pem}


# --- the same without a gateway: on the ports of a centre ----------------------------------------------------------


async def certify(centre: WorkflowCentre, cluster: UUID, number: int) -> None:
    """The edge reports a key."""
    made = certificate(number)
    facts = CertificateFacts(
        fingerprint=made.fingerprint,
        not_before=made.not_before,
        not_after=made.not_after,
        taken_at=datetime.now(UTC),
    )
    await centre.ports.edge_reports.write_status(
        cluster,
        status(number),
        certificate=(facts, made.pem),
        certificate_problem=None,
        generation=None,
        actor="agent",
    )
    await centre.fleet.nudge(cluster)


def to_put(cluster: UUID, secret: str, values: Mapping[str, bytes], number: int) -> list[StagedChange]:
    """A request that sets values, sealed with one of the keys."""
    namespace, _, name = secret.partition("/")
    request = uuid4()
    return [
        StagedChange(
            request=request,
            cluster=cluster,
            generation=1,
            place=SecretKey(namespace, name, each),
            ciphertext=sealed(value, secret, number),
            fingerprint=certificate(number).fingerprint,
            sealed_at=datetime.now(UTC),
            actor="token:test",
        )
        for each, value in values.items()
    ]


async def ask(centre: WorkflowCentre, cluster: UUID) -> Resealing:
    """What the operator's verb does."""
    row = await centre.row(cluster)
    assert row.certificate
    stale = stale_secrets(centre.ports.git, cluster, row.certificate.fingerprint)
    begun = await centre.ports.resealings.begin(cluster, row.generation, stale, actor="token:ann", reason="theft")
    await centre.fleet.nudge(cluster)
    assert begun
    return begun


async def answer(centre: WorkflowCentre, edge: ResealingEdge, *, most: int = 50) -> Resealing:
    """What the edge hands in for what is wanted."""
    wanted = await centre.ports.resealings.wanted(edge.cluster, limit=most)
    answers = [
        ResealingAnswer(
            secret=SecretReference(said["namespace"], said["name"]),
            values={each: ResealedValue(**value) for each, value in said["values"].items()},
            unreadable=said["unreadable"],
        )
        for said in (edge.answer(str(secret)) for secret in wanted)
    ]
    verdicts = judge_answers(centre.ports.git, edge.cluster, edge.newest, answers)
    taken = await centre.ports.resealings.take(edge.cluster, 1, edge.fingerprint, verdicts)
    await centre.fleet.nudge(edge.cluster)
    return taken
