"""What an edge reports as missing: objects that drive it, rights of its agent, answers from Flux, sealing keys.

Everything here is read from an ``EdgeStatus``.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from edgewright.domain.cluster import DeliveryProblem, Role
from edgewright.domain.edge_status import ClosedValue, EdgeStatus
from edgewright.domain.health import CANNOT_BE_KNOWN, DRIVER_MISSING, FLUX_SILENT, About, Finding
from edgewright.domain.kubernetes_names import SecretKey, SecretReference, secret_place
from edgewright.domain.own_objects import AGENT_SECRET, FLUX_SECRET

FRESH_LINE = "Run a fresh bootstrap line on the edge."
FLUX_MENDS = (
    "Flux puts it back at its next interval, within ten minutes. If not, Kustomization self-link on the edge says "
    "why: it is suspended or fails, or something takes the object away again."
)
FLUX_RETURNS = (
    "Where Edgewright has installed Flux, a fresh bootstrap line brings back what was deleted or scaled to 0. If it "
    "still does not answer, look at its pod: kubectl get pods --all-namespaces --selector app={controller}."
)
GRANT = "Grant it to the service account edgewright-agent there, or its absence goes unnoticed."
AGENT_SECRET_MISSING = (
    f"The Secret {AGENT_SECRET} is missing on the edge; a restart of the agent would lose the edge. {FRESH_LINE}"
)
MOST_VALUES = 100_000
"""No edge has more; larger numbers are not trusted."""
_OF_DELIVERY = frozenset({"gitrepositories", "kustomizations"})
_GRANTED = _OF_DELIVERY | {"nodes", "namespaces", "helmreleases", "sealedsecrets"}
"""What a bootstrap line lets the agent see, besides its Secrets. Templates can add objects of any other kind."""
_SECRET_OF = {Role.FLUX: FLUX_SECRET, Role.AGENT: AGENT_SECRET}
_OWN_SECRET = f"Secret {AGENT_SECRET}"
_BY_THE_LINE = frozenset(
    {"GitRepository self-link", "Kustomization self-link", *map("Secret {}".format, _SECRET_OF.values())}
)
"""What Flux does not get from the repository, or cannot restore without it."""
_CONTROLLERS = ("source-controller", "kustomize-controller")
_LONGEST = 200
_LONGEST_PLACE = 600
_NAMED = 3
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Lacking:
    """A right that the agent lacks.

    Args:
        what: the resource, as RBAC calls it; for one object, followed by a slash and its name.
        right: the missing right, in words.
    """

    what: str
    right: str


@dataclass(frozen=True, slots=True)
class UnopenedValue:
    """A value that no key of the edge opens, as the edge reports.

    Args:
        sha256: SHA-256 of its ciphertext as in the file, hexadecimal.
    """

    place: SecretKey
    sha256: str


def missing_of(status: EdgeStatus) -> list[str]:
    """Returns missing objects that drive the edge, as ``KIND NAME``."""
    return [text for each in status.missing if (text := _line(each))]


def lacking_of(status: EdgeStatus) -> list[Lacking]:
    """Returns the rights that the agent lacks."""
    found = (Lacking(_line(each.what), _line(each.right)) for each in status.unknown)
    return [each for each in found if each.what and each.right]


def silent_of(status: EdgeStatus) -> list[str]:
    """Returns Flux's idle controllers that have work to do. Ignores unknown names, as commands contain them."""
    return [each for each in _CONTROLLERS if each in status.silent]


def unopened_of(status: EdgeStatus) -> tuple[list[UnopenedValue], int]:
    """Returns the first values that no key of the edge opens, and how many there are in total."""
    values = [value for each in status.unopened if (value := _unopened(each)) is not None]
    return values, max(len(values), min(status.unopened_count, MOST_VALUES)) if values else 0


def absence_problem(status: EdgeStatus) -> DeliveryProblem | None:
    """Returns what is missing or silent, so that commits do not arrive or the centre cannot know; None: nothing."""
    blind = [each.right for each in lacking_of(status) if each.what in _OF_DELIVERY]
    if blind:
        return DeliveryProblem(
            reason=CANNOT_BE_KNOWN, message=f"The agent lacks a right there: {_and_more(blind)}. {FRESH_LINE}"
        )
    gone = [each for each in missing_of(status) if each != _OWN_SECRET]
    if gone:
        return DeliveryProblem(reason=DRIVER_MISSING, message=f"{_is_missing(gone)} {_remedy(gone)}")
    silent = silent_of(status)
    return DeliveryProblem(reason=FLUX_SILENT, message=_does_not_answer(silent)) if silent else None


def absence_findings(status: EdgeStatus, lost: Sequence[UnopenedValue]) -> list[Finding]:
    """Returns what is wrong on an edge because something is missing or does not answer.

    Args:
        lost: values that no key of the edge opens, and that nobody has entered again.
    """
    findings = [_missing_finding(each) for each in missing_of(status)]
    silent = [Finding(About.SILENT, each, True, FLUX_SILENT, _does_not_answer([each])) for each in silent_of(status)]
    findings += silent
    for each in lacking_of(status):
        is_granted = each.what in _GRANTED or each.what.startswith("secrets/")
        remedy = FRESH_LINE if is_granted else GRANT
        sentence = f"The agent of the edge lacks a right there: {each.right}. {remedy}"
        findings.append(Finding(About.RIGHT, each.what, True, "RightMissing", sentence))
    for value in lost:
        sentence = f"No key of the edge opens {value.place} any more. Enter it again."
        findings.append(Finding(About.VALUE, str(value.place), True, "Unreadable", sentence))
    return findings


def _missing_finding(name: str) -> Finding:
    if name == _OWN_SECRET:
        return Finding(About.MISSING, name, True, "AgentSecretMissing", AGENT_SECRET_MISSING)
    return Finding(About.MISSING, name, True, DRIVER_MISSING, f"{_is_missing([name])} {_remedy([name])}")


def rotation_obstacle(status: EdgeStatus, roles: Collection[Role]) -> str | None:
    """Returns why the edge cannot replace a credential, as a sentence; None: no obstacle is known."""
    missing = missing_of(status)
    lacking = {each.what: each.right for each in lacking_of(status)}
    for role in sorted(roles):
        secret = _SECRET_OF[role]
        if f"Secret {secret}" in missing:
            return f"The Secret {secret}, which holds the {role} credential, is missing on the edge."
        if f"secrets/{secret}" in lacking:
            right = lacking[f"secrets/{secret}"]
            return f"The agent cannot replace the {role} credential: it lacks a right there: {right}."
    return None


def _unopened(said: ClosedValue) -> UnopenedValue | None:
    secret, key, sha256 = said.secret, said.key, said.sha256
    if secret is None or key is None or sha256 is None:
        return None
    fits = len(secret) + len(key) <= _LONGEST_PLACE and key.isprintable() and _DIGEST.fullmatch(sha256)
    place = secret_place(secret)
    return UnopenedValue(place.at(key), sha256) if fits and isinstance(place, SecretReference) else None


def _remedy(gone: Collection[str]) -> str:
    """Returns what to do. Flux itself restores objects from the repository as long as it can fetch it."""
    return FLUX_MENDS if _BY_THE_LINE.isdisjoint(gone) else FRESH_LINE


def _is_missing(gone: list[str]) -> str:
    return f"{_and_more(gone)} {'is' if len(gone) == 1 else 'are'} missing on the edge."


def _does_not_answer(silent: list[str]) -> str:
    does = "does" if len(silent) == 1 else "do"
    remedy = FLUX_RETURNS.format(controller=silent[0])
    return f"Flux's {_and_more(silent)} {does} not answer on the edge, so no commit arrives. {remedy}"


def _and_more(named: list[str]) -> str:
    left = len(named) - _NAMED
    return f"{', '.join(named[:_NAMED])}{f' and {left} more' if left > 0 else ''}"


def _line(text: str | None) -> str:
    """Returns one line without control characters; empty for None."""
    if text is None:
        return ""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[:_LONGEST])
    return " ".join(shown.split())
