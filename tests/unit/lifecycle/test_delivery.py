"""What an edge says of Flux becomes one sentence, whatever the edge sends."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.domain.delivery import LONGEST_MESSAGE, delivery_problem, flux_findings
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.health import edge_health


def said(
    name: str, *, status: str = "True", message: str = "", suspended: bool = False, source: str = "self-link"
) -> dict[str, Any]:
    condition = {"type": "Ready", "status": status, "reason": "BuildFailed", "message": message}
    return {"name": name, "source": source, "suspended": suspended, "conditions": [condition]}


def flux(sources: list[Any], kustomizations: list[Any]) -> dict[str, Any]:
    return {"flux": {"sources": sources, "kustomizations": kustomizations}}


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (
            flux([said("self-link", status="False", message="no\nroute")], [said("by-hand", status="False")]),
            "FetchFailed",
            "Flux cannot fetch self-link: no route",
        ),
        (
            flux(
                [said("helm-charts", status="False", message="gone")], [said("by-hand", status="False", message="x")]
            ),
            "ApplyFailed",
            "Flux cannot apply by-hand: x",
        ),
        (
            flux([said("self-link")], [said("self-link", status="False")]),
            "ApplyFailed",
            "Flux cannot apply self-link: BuildFailed",
        ),
        (
            flux([said("self-link", suspended=True)], []),
            "FluxSuspended",
            "Flux does not fetch self-link: it is suspended there.",
        ),
        (
            flux([said("self-link")], [said("self-link"), said("by-hand", suspended=True)]),
            "FluxSuspended",
            "Flux does not apply by-hand: it is suspended there.",
        ),
    ],
)
def test_the_first_layer_that_fails_is_named(status: dict[str, Any], reason: str, message: str) -> None:
    problem = delivery_problem(read_edge_status(status))
    assert problem is not None
    assert (problem.reason, problem.message) == (reason, message)


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"hosts": []},
        flux([], []),
        flux([said("self-link")], [said("self-link")]),
        flux([said("helm-charts", status="False")], [said("flux-system", status="False", source="helm-charts")]),
        flux([said("self-link", status="Unknown", message="fetching")], [said("self-link")]),
    ],
)
def test_no_trouble_is_none(status: dict[str, Any]) -> None:
    assert delivery_problem(read_edge_status(status)) is None


def test_what_flux_says_is_bounded() -> None:
    problem = delivery_problem(read_edge_status(flux([said("self-link", status="False", message="m" * 100_000)], [])))
    assert problem is not None and len(problem.message) < LONGEST_MESSAGE + 200


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("flux", "sources", "kustomizations", "releases", "others", "kind", "chart", "conditions"),
                    *("name", "source", "type", "status", "reason", "message"),
                ]
            ),
            inner | st.sampled_from(["Ready", "Released", "False", "Unknown", "self-link", "HelmRelease"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["flux", "hosts"]), ANYTHING, max_size=2))
def test_a_status_of_any_shape_breaks_nothing(status: dict[str, Any]) -> None:
    problem, health = (
        delivery_problem(read_edge_status(status)),
        edge_health(flux_findings(read_edge_status(status)) or ()),
    )
    assert problem is None or problem.message.isprintable()
    assert health.message.isprintable()
