"""What an edge says of Flux's work there: why a commit does not arrive, and what else of Flux's fails."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from edgewright.domain import flux_words
from edgewright.domain.cluster import DeliveryProblem
from edgewright.domain.flux_words import line
from edgewright.domain.health import About, Finding
from edgewright.domain.json import Json

OWN_SOURCE = "self-link"
"""Flux's source that is the cluster's own driving repository."""
SUSPENDED, PROGRESSING = "FluxSuspended", "Progressing"
WAITS_FOR_OTHERS = frozenset({"SourceNotReady", "DependencyNotReady"})
"""Why a release is not ready while what it needs is on its way. What it needs fails by itself, if it does."""
_LONGEST_NAME = 100
_MOST_OBJECTS = 1000
"""Of one kind. A status has room for less."""

_Said = Mapping[str, Json]


def delivery_problem(status: Mapping[str, Any]) -> DeliveryProblem | None:
    """What keeps an edge from fetching, applying or installing what the centre has rendered for it.

    Args:
        status: an *Edge cluster status*, as an edge sent it: nothing in it is trusted to have any shape.

    Returns:
        What fails first on the way of a commit: its fetching, its application, or the release of the cluster's
        chart; else what of it is not ready yet. What Flux does with other sources keeps no commit of this repository
        back. None: the edge tells of nothing.
    """
    flux = _flux(status)
    sources = [said for said in objects_in(flux.get("sources")) if said.get("name") == OWN_SOURCE]
    parts = [said for said in objects_in(flux.get("kustomizations")) if said.get("source") == OWN_SOURCE]
    releases = list(objects_in(flux.get("releases")))
    failing = next(_own_findings(sources, parts, releases), None)
    if failing is not None:
        return DeliveryProblem(reason=failing.reason, message=failing.sentence)
    unfinished = next(chain(_unapplied(parts), _uninstalled(releases)), None)
    return None if unfinished is None else DeliveryProblem(reason=PROGRESSING, message=unfinished)


def flux_findings(status: Mapping[str, Any]) -> list[Finding] | None:
    """Whatever of Flux's fails on this edge, the operator's own objects included.

    Args:
        status: as ``delivery_problem`` takes it.

    Returns:
        None: the edge says nothing of Flux to judge by.
    """
    flux = _flux(status)
    if not flux:
        return None
    own = _own_findings(*(list(objects_in(flux.get(kind))) for kind in ("sources", "kustomizations", "releases")))
    return [*own, *_findings_of_others(objects_in(flux.get("others")))]


def state_of(said: _Said) -> str:
    """What Flux says of an object, in one line."""
    ready = _ready(said)
    if said.get("suspended") is True:
        return "suspended"
    return "nothing yet" if ready is None else _said_by(ready)


def _own_findings(sources: list[_Said], kustomizations: list[_Said], releases: list[_Said]) -> Iterator[Finding]:
    """In the order in which a commit passes them."""
    for said in sources:
        yield from _finding(said, About.SOURCE)
    for said in kustomizations:
        yield from _finding(said, About.KUSTOMIZATION)
    for said in releases:
        yield from _finding(said, About.RELEASE)


def _findings_of_others(others: Iterator[_Said]) -> Iterator[Finding]:
    for said in others:
        about = About.RELEASE if said.get("kind") == "HelmRelease" else About.KUSTOMIZATION
        if _refusal(said) is not None:
            yield from _finding(said, about, own=False)


def _finding(said: _Said, about: About, *, own: bool = True) -> Iterator[Finding]:
    name, refusal = _name(said), _refusal(said)
    if own and said.get("suspended") is True:
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


def _sentence(about: About, name: str, said: _Said, refusal: str) -> str:
    if about is About.KUSTOMIZATION:
        return flux_words.application(name, refusal)
    if about is About.RELEASE:
        return flux_words.release(name, _chart(said), refusal)
    return f"Flux cannot fetch {name}: {refusal}"


def _chart(release: _Said) -> str:
    chart, version = line(release.get("chart"))[:_LONGEST_NAME], line(release.get("attempted"))[:_LONGEST_NAME]
    return f"{chart}@{version}" if chart and version else chart


def _refusal(said: _Said) -> str | None:
    """What Flux says of an object that fails; None if it does not, or Flux is still at work.

    A release that is tried again after a failure is *Ready* Unknown meanwhile, and stays *Released* False.
    """
    stated = {str(each.get("type")): each for each in objects_in(said.get("conditions"))}
    ready, released = stated.get("Ready", {}), stated.get("Released", {})
    if ready.get("status") == "False" and ready.get("reason") not in WAITS_FOR_OTHERS:
        return _said_by(ready)
    tried_again = ready.get("status") == "Unknown" or ready.get("reason") in WAITS_FOR_OTHERS
    return _said_by(released) if tried_again and released.get("status") == "False" else None


def _unapplied(kustomizations: list[_Said]) -> Iterator[str]:
    for said in kustomizations:
        ready = _ready(said)
        if ready is not None and ready.get("status") != "True":
            yield f"Flux is at work on {_name(said)}: {_said_by(ready)}"


def _uninstalled(releases: list[_Said]) -> Iterator[str]:
    for said in releases:
        ready = _ready(said)
        if ready is None:
            yield f"The release {_name(said)} is not installed yet: Flux's helm-controller has not looked at it."
        elif ready.get("status") != "True":
            yield f"The release {_name(said)} is not ready yet: {_said_by(ready)}"


def _ready(said: _Said) -> _Said | None:
    return next((each for each in objects_in(said.get("conditions")) if each.get("type") == "Ready"), None)


def _said_by(condition: _Said) -> str:
    return line(condition.get("message")) or line(condition.get("reason")) or "it does not say why."


def _name(said: _Said) -> str:
    return line(said.get("name"))[:_LONGEST_NAME] or "something without a name"


def _flux(status: Mapping[str, Any]) -> _Said:
    flux = status.get("flux")
    return flux if isinstance(flux, Mapping) else {}


def objects_in(values: object) -> Iterator[_Said]:
    """What is an object in a list of an edge's; none in what is no list."""
    if isinstance(values, list):
        yield from (each for each in values[:_MOST_OBJECTS] if isinstance(each, Mapping))
