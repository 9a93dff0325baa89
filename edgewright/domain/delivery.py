"""Why a commit does not arrive on an edge, as far as the edge can say: what Flux says of its work there."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from edgewright.domain.cluster import DeliveryProblem
from edgewright.domain.json import Json

OWN_SOURCE = "self-link"
"""Flux's source that is the cluster's own driving repository."""
LONGEST_MESSAGE = 500
"""Characters of what Flux says: it is kept in each reading while it lasts."""


def delivery_problem(status: Mapping[str, Any]) -> DeliveryProblem | None:
    """What keeps this edge from fetching or applying its repository.

    Args:
        status: an *Edge cluster status*, as an edge sent it: nothing in it is trusted to have any shape.

    Returns:
        What fails first on the way of a commit: its fetching, or its application. What Flux does with other
        sources keeps no commit of this repository back. None: the edge tells of nothing.
    """
    flux = status.get("flux")
    if not isinstance(flux, Mapping):
        return None
    sources = (said for said in _objects(flux.get("sources")) if said.get("name") == OWN_SOURCE)
    kustomizations = (said for said in _objects(flux.get("kustomizations")) if said.get("source") == OWN_SOURCE)
    problems = chain(
        (_problem(said, "FetchFailed", "fetch") for said in sources),
        (_problem(said, "ApplyFailed", "apply") for said in kustomizations),
    )
    return next((problem for problem in problems if problem is not None), None)


def _problem(said: Mapping[str, Json], reason: str, verb: str) -> DeliveryProblem | None:
    name = _line(said.get("name"))[:100] or "something without a name"
    if said.get("suspended") is True:
        return DeliveryProblem(reason="FluxSuspended", message=f"Flux does not {verb} {name}: it is suspended there.")
    refusal = _refusal(said)
    return (
        None if refusal is None else DeliveryProblem(reason=reason, message=f"Flux cannot {verb} {name}: {refusal}")
    )


def _refusal(said: Mapping[str, Json]) -> str | None:
    """What Flux says of an object that is not ready; None if it is, or Flux is still at work."""
    for condition in _objects(said.get("conditions")):
        if condition.get("type") == "Ready" and condition.get("status") == "False":
            return _line(condition.get("message")) or _line(condition.get("reason")) or "it does not say why."
    return None


def _line(text: object) -> str:
    """One line without control characters."""
    if not isinstance(text, str):
        return ""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST_MESSAGE])
    return " ".join(shown.split())[:LONGEST_MESSAGE]


def _objects(values: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(values, list):
        yield from (each for each in values if isinstance(each, Mapping))
