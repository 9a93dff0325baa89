"""What an edge reports about Flux: why a commit does not arrive, and which other objects of Flux fail.

Sentences are for operators: they name the file or object first, and no internal folders of a controller.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from edgewright.domain.cluster import DeliveryProblem
from edgewright.domain.edge_status import EdgeStatus, FluxObject, FluxReport, SaidCondition
from edgewright.domain.health import About, Finding

OWN_SOURCE = "self-link"
"""Flux's source for the cluster's own driving repository."""
SUSPENDED, PROGRESSING = "FluxSuspended", "Progressing"
WAITS_FOR_OTHERS = frozenset({"SourceNotReady", "DependencyNotReady"})
"""Why a release is not ready while its dependencies are on their way. A failing dependency has its own finding."""
_LONGEST_NAME = 100
LONGEST_MESSAGE = 500
"""Most characters of a message from Flux, because each reading holds it."""

_WORKING_COPY = re.compile(r"/(?:[^/\s'\":()]+/)*?kustomization-\d+/" r"|/(?:[^/\s'\":()]+/)*?tmp/[^/\s'\":()]+/")
"""Where a controller unpacks the repository; the path in the repository follows."""
_UNREADABLE_FILE = re.compile(r"(?:kustomize build failed: )?failed to decode Kubernetes YAML from ([^\s:]+): (.*)")
_FILE_OF_KUSTOMIZATION = re.compile(r"kustomize build failed: .*'([^'\s]+)': (MalformedYAMLError: .*?)(?:': |$)")
_YAML_ERROR = re.compile(r"(?:MalformedYAMLError: |error converting YAML to JSON: |yaml: )+")
_OBJECT = re.compile(r"([A-Z]\w*)/(\S+) (?:dry-run|apply) failed(?: \(\w+\))?: (.*)")
_HELM = re.compile(r"Helm \w+ failed for release \S+?(?: with chart (\S+))?: (.*)")
_CHART_SENTENCE = re.compile(r"execution error at \(([^():]+)[^()]*\): (.*)")


def delivery_problem(status: EdgeStatus) -> DeliveryProblem | None:
    """Returns what keeps an edge from fetching, applying or installing what the centre has rendered for it.

    Returns:
        The first failure on the way of a commit: fetching it, applying it, or releasing the cluster's chart; or else
        the part that is not ready yet. Other sources of Flux do not hold back commits of this repository. None: the
        edge reports no problem.
    """
    flux = status.flux or FluxReport()
    sources = [said for said in flux.sources if said.name == OWN_SOURCE]
    parts = [said for said in flux.kustomizations if said.source == OWN_SOURCE]
    releases = flux.releases
    failing = next(_own_findings(sources, parts, releases), None)
    if failing is not None:
        return DeliveryProblem(reason=failing.reason, message=failing.sentence)
    unfinished = next(chain(_unapplied(parts), _uninstalled(releases)), None)
    return None if unfinished is None else DeliveryProblem(reason=PROGRESSING, message=unfinished)


def flux_findings(status: EdgeStatus) -> list[Finding] | None:
    """Returns all failing objects of Flux on this edge, including the operator's own.

    Returns:
        None: the edge reports nothing about Flux to judge by.
    """
    flux = status.flux
    if flux is None:
        return None
    own = _own_findings(flux.sources, flux.kustomizations, flux.releases)
    return [*own, *_findings_of_others(flux.others)]


def state_of(said: FluxObject) -> str:
    """Returns Flux's message about an object, in one line."""
    ready = _ready(said)
    if said.suspended:
        return "suspended"
    return "nothing yet" if ready is None else _said_by(ready)


def _own_findings(
    sources: Iterable[FluxObject], kustomizations: Iterable[FluxObject], releases: Iterable[FluxObject]
) -> Iterator[Finding]:
    """Yields findings in the order in which a commit passes them."""
    for said in sources:
        yield from _finding(said, About.SOURCE)
    for said in kustomizations:
        yield from _finding(said, About.KUSTOMIZATION)
    for said in releases:
        yield from _finding(said, About.RELEASE)


def _findings_of_others(others: Iterable[FluxObject]) -> Iterator[Finding]:
    for said in others:
        about = About.RELEASE if said.kind == "HelmRelease" else About.KUSTOMIZATION
        if _refusal(said) is not None:
            yield from _finding(said, about, own=False)


def _finding(said: FluxObject, about: About, *, own: bool = True) -> Iterator[Finding]:
    name, refusal = _name(said), _refusal(said)
    if own and said.suspended:
        sentence = f"Flux does not {_VERBS[about]} {name}: it is suspended there."
        yield Finding(about, name, own, SUSPENDED, sentence)
    elif refusal is not None:
        whose = "" if own else "Not of Edgewright's making: "
        yield Finding(about, name, own, _REASONS[about], f"{whose}{_sentence(about, name, said, refusal)}")


_VERBS = {About.SOURCE: "fetch", About.KUSTOMIZATION: "apply", About.RELEASE: "install"}
_REASONS = {
    About.SOURCE: "FetchFailed",
    About.KUSTOMIZATION: "ApplyFailed",
    About.RELEASE: "ReleaseFailed",
}


def _sentence(about: About, name: str, said: FluxObject, refusal: str) -> str:
    if about is About.KUSTOMIZATION:
        return _application_failure(name, refusal)
    if about is About.RELEASE:
        return _release_failure(name, _chart(said), refusal)
    return f"Flux cannot fetch {name}: {refusal}"


def _chart(release: FluxObject) -> str:
    chart, version = _line(release.chart)[:_LONGEST_NAME], _line(release.attempted)[:_LONGEST_NAME]
    return f"{chart}@{version}" if chart and version else chart


def _refusal(said: FluxObject) -> str | None:
    """Returns Flux's message about a failing object; None if it does not fail, or Flux is still working on it.

    While Flux retries a failed release, its *Ready* is Unknown, and its *Released* stays False.
    """
    stated = {each.type: each for each in said.conditions}
    ready, released = stated.get("Ready", SaidCondition()), stated.get("Released", SaidCondition())
    if ready.status == "False" and ready.reason not in WAITS_FOR_OTHERS:
        return _said_by(ready)
    tried_again = ready.status == "Unknown" or ready.reason in WAITS_FOR_OTHERS
    return _said_by(released) if tried_again and released.status == "False" else None


def _unapplied(kustomizations: Iterable[FluxObject]) -> Iterator[str]:
    for said in kustomizations:
        ready = _ready(said)
        if ready is not None and ready.status != "True":
            yield f"Flux is at work on {_name(said)}: {_said_by(ready)}"


def _uninstalled(releases: Iterable[FluxObject]) -> Iterator[str]:
    for said in releases:
        ready = _ready(said)
        if ready is None:
            yield f"The release {_name(said)} is not installed yet: Flux's helm-controller has not looked at it."
        elif ready.status != "True":
            yield f"The release {_name(said)} is not ready yet: {_said_by(ready)}"


def _ready(said: FluxObject) -> SaidCondition | None:
    return next((each for each in said.conditions if each.type == "Ready"), None)


def _said_by(condition: SaidCondition) -> str:
    return _line(condition.message) or _line(condition.reason) or "it does not say why."


def _name(said: FluxObject) -> str:
    return _line(said.name)[:_LONGEST_NAME] or "something without a name"


def _line(text: str | None) -> str:
    """Returns one line of limited length, without control characters."""
    if text is None:
        return ""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST_MESSAGE])
    return " ".join(shown.split())[:LONGEST_MESSAGE]


def _application_failure(kustomization: str, said: str) -> str:
    """Says why Flux does not apply a Kustomization, naming the file or object that causes it."""
    said = _WORKING_COPY.sub("", said)
    unreadable = _UNREADABLE_FILE.match(said) or _FILE_OF_KUSTOMIZATION.match(said)
    if unreadable is not None:
        file, error = unreadable.groups()
        return f"Flux cannot apply {kustomization}: {file} is no valid YAML: {_YAML_ERROR.sub('', error)}"
    refused = _OBJECT.match(said)
    if refused is not None:
        kind, name, error = refused.groups()
        return f"Flux cannot apply {kustomization}: {kind} {name} is refused: {error}"
    return f"Flux cannot apply {kustomization}: {said}"


def _release_failure(name: str, chart: str, said: str) -> str:
    """Says why a Helm release fails, from helm-controller's message.

    Args:
        chart: ``NAME@VERSION``, if known; a name in helm-controller's message takes precedence.
    """
    failed = _HELM.match(said)
    if failed is not None:
        named, said = failed.groups()
        chart = named or chart
    sentence = _CHART_SENTENCE.match(said)
    if sentence is not None:
        file, said = sentence.groups()
        said = f"{said} ({file})"
    return f"The release {name}{f' (Helm chart {chart})' if chart else ''} failed: {said}"
