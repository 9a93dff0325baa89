"""Re-sealing as the centre sees it: what is stale or unopened in a repository, what to make of an edge's answers.

The centre cannot open anything. It sees that a new ciphertext has the form of an envelope for the certificate in use,
and the length of the value that it is to replace; whether it opens, and to what, only the edge knows.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import sha256
from uuid import UUID

from edgewright.domain.absence import UnopenedValue
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.rendering.layout import SECRETS_FOLDER
from edgewright.domain.rendering.secret_drivers import sealed_files
from edgewright.errors import Invalid, NotFound, Stalled
from edgewright.ports.git_server import CommitId, GitServer
from edgewright.ports.resealing import ResealedValue, Verdict
from edgewright.sealing.certificate import SealingCertificate
from edgewright.sealing.envelope import plaintext_size, wrapped_key_size
from edgewright.sealing.sealed_secret import put_values, read_scope, read_values
from edgewright.sealing.sealed_value import SealedValue

ABSENT = "The edge does not have it yet."
BEHIND = "The edge has another value of {keys} than the driving repository."
MALFORMED = "What the edge sent for {keys} is no value that is sealed for this cluster."
UNUSABLE = "Its file in the driving repository cannot be used."


@dataclass(frozen=True)
class ResealingAnswer:
    """What an edge says of one Secret.

    Args:
        values: key -> what its controller made of which ciphertext.
        unreadable: key -> SHA-256 of the ciphertext that no key of the controller opens.
        absent: it has no such SealedSecret.
    """

    secret: SecretReference
    values: Mapping[str, ResealedValue] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    absent: bool = False


def ciphertext_digest(ciphertext: str) -> str:
    """SHA-256 of a ciphertext as it stands in the file, base64; hexadecimal."""
    return sha256(ciphertext.encode()).hexdigest()


def stale_secrets(git: GitServer, repository: UUID, fingerprint: str) -> list[SecretReference]:
    """Secrets with a value that another certificate has sealed. Blocks: run it in a thread.

    A file that is no SealedSecret is passed over: nobody can re-seal it.

    Raises:
        NotFound: code ``repository_unknown``.
    """
    head = git.head(repository)
    if head is None:
        return []
    files = sealed_files(git.list(repository, SECRETS_FOLDER.rstrip("/"), at=head))
    return [secret for path, secret in files if _stale(git.read(repository, path, at=head), fingerprint)]


def still_unopened(git: GitServer, repository: UUID, claimed: Sequence[UnopenedValue]) -> list[UnopenedValue]:
    """Those of the values that no key of an edge opens any more that the repository still holds.

    What was entered again since, or never was there, is not lost. Blocks: run it in a thread.

    Raises:
        Waiting: the repository cannot be read now.
    """
    try:
        head = git.head(repository)
    except NotFound:
        return []
    return [each for each in claimed if head and _holds(git, repository, head, each)]


def judge_answers(
    git: GitServer, repository: UUID, certificate: SealingCertificate, answers: Sequence[ResealingAnswer]
) -> list[Verdict]:
    """What to make of answers, in the light of what the repository holds now. Blocks: run it in a thread.

    Raises:
        Invalid: a namespace or name that Kubernetes would refuse.
        NotFound: code ``repository_unknown``.
    """
    head = git.head(repository)
    return [_judge(git, repository, head, certificate, answer) for answer in answers]


def _judge(
    git: GitServer, repository: UUID, head: CommitId | None, certificate: SealingCertificate, answer: ResealingAnswer
) -> Verdict:
    path = answer.secret.path
    document = git.read(repository, path, at=head) if head else None
    if document is None:
        return Verdict(answer.secret)
    try:
        values = read_values(document, where=path)
    except Stalled:
        return Verdict(answer.secret, waits_for=UNUSABLE)
    return judge(values, certificate, answer)


def judge(values: Mapping[str, SealedValue], certificate: SealingCertificate, answer: ResealingAnswer) -> Verdict:
    """What to make of an answer.

    Args:
        values: what the repository holds. Of what is current in it, and of other keys, an answer says nothing.
    """
    taken: dict[str, ResealedValue] = {}
    unreadable, behind, malformed = [], [], []
    for key, value in values.items():
        if value.fingerprint == certificate.fingerprint:
            continue
        digest, resealed = ciphertext_digest(value.ciphertext), answer.values.get(key)
        if answer.unreadable.get(key) == digest:
            unreadable.append(key)
        elif resealed is None or resealed.old_sha256 != digest:
            behind.append(key)
        elif not _fits(resealed.ciphertext, value.ciphertext, certificate):
            malformed.append(key)
        else:
            taken[key] = resealed
    if malformed:
        return Verdict(answer.secret, waits_for=MALFORMED.format(keys=", ".join(malformed)))
    if behind:
        waits_for = ABSENT if answer.absent else BEHIND.format(keys=", ".join(behind))
        return Verdict(answer.secret, waits_for=waits_for)
    return Verdict(answer.secret, values=taken, unreadable=unreadable)


def replace_values(
    document: bytes | None, secret: SecretReference, replacements: Mapping[str, tuple[str, SealedValue]]
) -> tuple[bytes | None, AbstractSet[str]]:
    """A file with values put in the place of those that they replace, and of no others.

    Args:
        replacements: key -> digest of the ciphertext to replace, and the new value.

    Returns:
        The file, and the keys of which it holds something else. A value that is in its place already counts as put.

    Raises:
        Stalled, TooLarge: as ``put_values``.
    """
    path = secret.path
    there = {} if document is None else read_values(document, where=path)
    fitting = {
        key: new
        for key, (digest, new) in replacements.items()
        if key in there and digest == ciphertext_digest(there[key].ciphertext)
    }
    placed = {
        key for key, (_, new) in replacements.items() if key in there and there[key].ciphertext == new.ciphertext
    }
    if document is not None and fitting:
        document = put_values(document, secret, fitting, read_scope(document, where=path))
    return document, replacements.keys() - fitting.keys() - placed


def _stale(document: bytes | None, fingerprint: str) -> bool:
    try:
        values = read_values(document or b"")
    except Stalled:
        return False
    return any(value.fingerprint != fingerprint for value in values.values())


def _holds(git: GitServer, repository: UUID, head: CommitId, claimed: UnopenedValue) -> bool:
    try:
        path = claimed.place.secret.path
        document = git.read(repository, path, at=head)
        value = None if document is None else read_values(document, where=path).get(claimed.place.key)
    except (Invalid, Stalled):
        return False
    return value is not None and ciphertext_digest(value.ciphertext) == claimed.sha256


def _fits(new: str, old: str, certificate: SealingCertificate) -> bool:
    """Whether a ciphertext has the form of the old value, sealed with the certificate."""
    try:
        right_size = wrapped_key_size(new) == (certificate.public_key.key_size + 7) // 8
        return right_size and plaintext_size(new) == plaintext_size(old)
    except Invalid:
        return False
