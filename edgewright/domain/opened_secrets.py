"""What happened on an edge to the secrets that the centre sealed for it. Read from its status, which has no values.

A status names each sealing on the edge by a digest, and its template by another. So a report about a Secret is about
exactly what the repository holds now, in whatever order Flux applies its files.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from edgewright.domain.edge_status import EdgeStatus, RefusedSealing, SealingsReport
from edgewright.domain.health import About, Finding
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.secret_template import SecretTemplate
from edgewright.errors import Invalid

SECRETS_FIELD = "secrets"
"""Field of the *Edge cluster status*."""
LONGEST_SENTENCE = 300
"""Most characters of a message from the edge's controller."""
REFUSED = "SecretRefused"
"""Reason of the condition *Healthy*."""
_DIGEST_BYTES, _DIGEST_LENGTH = 6, 8
_TEMPLATE_BYTES, _TEMPLATE_LENGTH = 3, 4
_MOST_COUNTED = 10**6
_NAMED = 3
"""How many are named in a sentence; the rest are counted."""


class EdgeState(StrEnum):
    """How far a Secret is on its edge; ``docs/glossary.md`` explains each state."""

    SEALED = "sealed"
    APPLIED = "applied"
    OPENED = "opened"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RefusedSecret:
    """A Secret that the edge's controller refuses. ``sentence``: its message in one line; may be empty."""

    secret: SecretReference
    digest: str
    sentence: str

    @property
    def place(self) -> str:
        """``namespace/name``."""
        return str(self.secret)


@dataclass(frozen=True, slots=True)
class OpenedSecrets:
    """The secrets in a status.

    Args:
        opened, applied: digests of sealings that the controller has opened, or not processed yet.
        refused: the first refused Secrets, by place; ``refused_too``: digests of the others.
        refused_count: number of refused Secrets, as the edge counts them.
        templates: digest of a sealing -> digest of its template, as far as the agent reports it.
        is_complete: whether this covers everything that the edge holds.
    """

    opened: frozenset[str]
    applied: frozenset[str]
    refused: tuple[RefusedSecret, ...]
    refused_too: frozenset[str]
    refused_count: int
    templates: Mapping[str, str]
    is_complete: bool

    @property
    def names_all(self) -> bool:
        """Whether it names all refused Secrets."""
        return self.refused_count == len(self.refused)

    def state_of(self, digest: str, template: str) -> tuple[EdgeState, str]:
        """Returns the state of one sealing, and the controller's message if it is refused.

        Args:
            template: digest of its template; ignored if the agent does not report which one the edge has.
        """
        if self.templates.get(digest, template) != template:
            return EdgeState.SEALED, ""
        return self._of_values(digest)

    def state_with_template(self, digest: str, template: str) -> EdgeState:
        """Returns the state of one sealing; unknown unless the report is about exactly this template."""
        state, _ = self.state_of(digest, template)
        is_told = state is EdgeState.SEALED or digest in self.templates
        return state if is_told else EdgeState.UNKNOWN

    def _of_values(self, digest: str) -> tuple[EdgeState, str]:
        for each in self.refused:
            if each.digest == digest:
                return EdgeState.REFUSED, each.sentence
        if digest in self.refused_too:
            return EdgeState.REFUSED, ""
        if digest in self.applied:
            return EdgeState.APPLIED, ""
        if digest in self.opened:
            return EdgeState.OPENED, ""
        return (EdgeState.SEALED if self.is_complete else EdgeState.UNKNOWN), ""


def sealing_digest(secret: SecretReference, values: Mapping[str, str]) -> str:
    """Returns the digest of one sealing of a Secret, eight characters, as ``edgewright.agent.opening`` does.

    Args:
        values: key -> ciphertext, base64.
    """
    text = json.dumps([secret.namespace, secret.name, sorted(values.items())], separators=(",", ":"))
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]).decode()


def template_digest(template: SecretTemplate) -> str:
    """Returns the digest of type, labels and annotations, four characters, as ``edgewright.agent.opening`` does."""
    said = [template.type, sorted(template.labels.items()), sorted(template.annotations.items())]
    digest = hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest[:_TEMPLATE_BYTES]).decode()


def opened_secrets(status: EdgeStatus | None) -> OpenedSecrets | None:
    """Reads the secrets in a status; None: its agent does not report them, or may not see them."""
    said = None if status is None else status.secrets
    if said is None:
        return None
    opened, applied, refused_too = map(_digests, (said.opened, said.pending, said.refused_too))
    refused = tuple(_refused(said.refused))
    number = _count(said.counts.refused)
    return OpenedSecrets(
        opened=opened,
        applied=applied,
        refused=refused,
        refused_too=refused_too,
        refused_count=max(number, len(refused)),
        templates=dict(_templates(said)),
        is_complete=(_count(said.counts.opened), _count(said.counts.pending), number)
        == (len(opened), len(applied), len(refused) + len(refused_too)),
    )


def refusal_news(before: EdgeStatus | None, now: EdgeStatus) -> tuple[str, str]:
    """Returns clauses about newly refused Secrets, and about those no longer refused; empty: none.

    A status without a report on secrets changes nothing.
    """
    was, there = opened_secrets(before), opened_secrets(now)
    if there is None:
        return "", ""
    known = [each.place for each in was.refused] if was is not None else []
    left = {each.place for each in there.refused}
    # Of so many that only the first are named, nobody knows which of them are new or healed.
    fresh = [each for each in there.refused if each.place not in known] if was is None or was.names_all else []
    healed = [place for place in known if place not in left] if there.names_all else []
    return _clause([_told(each) for each in fresh]), _clause(healed)


def secret_findings(status: EdgeStatus | None) -> list[Finding]:
    """Returns findings about the first Secrets that the controller refuses; they give the total if there are more."""
    there = opened_secrets(status)
    if there is None:
        return []
    more = "" if there.names_all else f" ({there.refused_count} secrets are refused)"
    return [
        Finding(
            About.SECRET,
            each.place,
            True,
            REFUSED,
            f"The secret {each.place} is not opened on the edge: {each.sentence or 'it does not say why'}{more}",
        )
        for each in there.refused
    ]


def _told(refused: RefusedSecret) -> str:
    return f"{refused.place} ({refused.sentence})" if refused.sentence else refused.place


def _clause(texts: list[str]) -> str:
    if not texts:
        return ""
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _count(number: int) -> int:
    return min(number, _MOST_COUNTED) if number >= 0 else -1


def _digests(text: str) -> frozenset[str]:
    return frozenset(_cut(text, _DIGEST_LENGTH))


def _cut(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)]


def _templates(said: SealingsReport) -> Iterator[tuple[str, str]]:
    """Yields pairs of sealing and template; nothing if the lists do not match."""
    named = said.templates
    for digests, templates in (
        (said.opened, named.opened),
        (said.pending, named.pending),
        (said.refused_too, named.refused_too),
        *((each.digest or "", each.template or "") for each in said.refused),
    ):
        if len(digests) * _TEMPLATE_LENGTH == len(templates) * _DIGEST_LENGTH:
            yield from zip(_cut(digests, _DIGEST_LENGTH), _cut(templates, _TEMPLATE_LENGTH), strict=True)


def _refused(said: Iterable[RefusedSealing]) -> Iterator[RefusedSecret]:
    """Yields refused Secrets with valid names, and leaves out all others."""
    for each in said:
        try:
            secret = SecretReference(each.namespace or "", each.name or "").check()
        except Invalid:
            continue
        yield RefusedSecret(secret, (each.digest or "")[:_DIGEST_LENGTH], _line(each.message))


def _line(text: str | None) -> str:
    """One line without control characters."""
    if text is None:
        return ""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST_SENTENCE])
    return " ".join(shown.split())[:LONGEST_SENTENCE]
