"""What Flux has applied and no list of the agent's shows is asked for by itself, a few at a time, and told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from edgewright.agent.applied import AT_ONCE, KINDS, METADATA, AppliedObject, Unlisted, applied_of
from edgewright.agent.lacks import Unknown
from edgewright.errors import EdgewrightError, Forbidden, Unauthenticated, Waiting

CONFIG = AppliedObject("ConfigMap", "settings", "line-1", "", "v1")
WIDGET = AppliedObject("Widget", "w", "", "example.com", "v1beta1")
ROLE = AppliedObject("ClusterRole", "a:b", "", "rbac.authorization.k8s.io", "v1")
LISTS = {
    "/api/v1": [
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
        {"name": "pods/exec", "kind": "PodExecOptions", "namespaced": True},
    ],
    "/apis/example.com/v1beta1": [
        {"name": "widgets/status", "kind": "Widget", "namespaced": False},
        {"name": "widgets", "kind": "Widget", "namespaced": False},
    ],
    "/apis/rbac.authorization.k8s.io/v1": [{"name": "clusterroles", "kind": "ClusterRole", "namespaced": False}],
}
PATHS = {
    CONFIG: "/api/v1/namespaces/line-1/configmaps/settings",
    WIDGET: "/apis/example.com/v1beta1/widgets/w",
    ROLE: "/apis/rbac.authorization.k8s.io/v1/clusterroles/a:b",
}


@dataclass
class Edge:
    """One on which all of it is there, until a test takes it away."""

    gone: set[str] = field(default_factory=set)
    fails: dict[str, EdgewrightError] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None:
        if path in self.fails:
            raise self.fails[path]
        if accept == KINDS:
            return None if path in self.gone else {"resources": LISTS[path]}
        assert accept == METADATA
        self.asked.append(path)
        return None if path in self.gone else {}


def told(unlisted: Unlisted) -> tuple[tuple[str, ...], tuple[Unknown, ...]]:
    """What is missing, and what cannot be known."""
    return unlisted.missing, unlisted.unknown


async def looks(unlisted: Unlisted, number: int, *wanted: AppliedObject) -> None:
    for _ in range(number):
        await unlisted.look(wanted)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"id": "line-1_settings__ConfigMap", "v": "v1"}, CONFIG),
        ({"id": "_w_example.com_Widget", "v": "v1beta1"}, WIDGET),
        ({"id": "_a__b_rbac.authorization.k8s.io_ClusterRole", "v": "v1"}, ROLE),
        ({"id": "line-1_settings__ConfigMap"}, None),
        ({"id": "line-1_.._x_ConfigMap", "v": "v1"}, None),
        ({"id": "../x_settings__ConfigMap", "v": "v1"}, None),
        ({"id": "line-1_settings?x=y__ConfigMap", "v": "v1"}, None),
        ({"id": 5, "v": []}, None),
        ({}, None),
    ],
)
def test_an_entry_is_read_as_flux_writes_it(entry: dict[str, Any], found: AppliedObject | None) -> None:
    assert applied_of(entry) == found


@pytest.mark.parametrize("wanted", PATHS, ids=str)
async def test_what_is_gone_is_told_after_two_looks_until_it_is_back(wanted: AppliedObject) -> None:
    edge = Edge()
    unlisted = Unlisted(edge)
    await looks(unlisted, 3, wanted)
    assert told(unlisted) == ((), ())
    assert set(edge.asked) == {PATHS[wanted]}
    edge.gone = {PATHS[wanted]}
    await looks(unlisted, 1, wanted)
    assert told(unlisted) == ((), ())
    await looks(unlisted, 1, wanted)
    assert told(unlisted) == ((str(wanted),), ())
    edge.gone = set()
    await looks(unlisted, 1, wanted)
    assert told(unlisted) == ((), ())


async def test_with_its_kind_an_object_is_gone() -> None:
    unlisted = Unlisted(Edge(gone={WIDGET.api}))
    await looks(unlisted, 2, WIDGET)
    assert unlisted.missing == ("Widget w",)


@pytest.mark.parametrize(
    ("wanted", "what"),
    [(CONFIG, "configmaps in line-1"), (WIDGET, "widgets.example.com")],
    ids=str,
)
@pytest.mark.parametrize("trouble", [Forbidden("No.", code="no"), Unauthenticated("No.", code="no")])
async def test_what_may_not_be_asked_for_is_unknown_with_the_right_that_is_missing(
    wanted: AppliedObject, what: str, trouble: EdgewrightError
) -> None:
    edge = Edge(fails={PATHS[wanted]: trouble})
    unlisted = Unlisted(edge)
    await looks(unlisted, 1, wanted)
    assert told(unlisted) == ((), ())
    await looks(unlisted, 1, wanted)
    assert told(unlisted) == ((), (Unknown(what, f"get on {what}"),))
    edge.fails = {}
    await looks(unlisted, 1, wanted)
    assert unlisted.unknown == ()


async def test_an_api_server_that_is_away_changes_nothing() -> None:
    edge = Edge(gone={PATHS[CONFIG]})
    unlisted = Unlisted(edge)
    await looks(unlisted, 2, CONFIG)
    edge.fails = {PATHS[CONFIG]: Waiting("Away.", code="away")}
    await looks(unlisted, 3, CONFIG)
    assert (unlisted.missing, unlisted.unknown) == (("ConfigMap settings in line-1",), ())


async def test_what_flux_does_not_hold_any_more_is_missed_by_nobody() -> None:
    unlisted = Unlisted(Edge(gone={PATHS[CONFIG]}, fails={PATHS[WIDGET]: Forbidden("No.", code="no")}))
    await looks(unlisted, 2, CONFIG, WIDGET)
    assert unlisted.missing and unlisted.unknown
    await looks(unlisted, 1)
    assert (unlisted.missing, unlisted.unknown) == ((), ())


async def test_many_are_asked_for_a_few_at_a_time_and_all_in_turn() -> None:
    many = [AppliedObject("ConfigMap", f"c{n:03}", "line-1", "", "v1") for n in range(3 * AT_ONCE - 5)]
    paths = [f"/api/v1/namespaces/line-1/configmaps/{each.name}" for each in many]
    edge = Edge(gone={paths[-1]}, fails={path: Forbidden("No.", code="no") for path in paths[:20]})
    unlisted = Unlisted(edge)
    for _ in range(5):
        before = len(edge.asked)
        await looks(unlisted, 1, *many)
        assert len(edge.asked) - before <= AT_ONCE
    await looks(unlisted, 1, *many)
    assert unlisted.missing == (str(many[-1]),)
    assert unlisted.unknown == (Unknown("configmaps in line-1", "get on configmaps in line-1"),), "each resource once"


async def test_one_that_cannot_be_asked_for_ends_a_look_and_the_next_one_goes_on_behind_it() -> None:
    """When an API server hangs, a look waits for one request, not for each in turn."""
    edge = Edge(fails={PATHS[ROLE]: Waiting("It hangs.", code="kubernetes_unavailable")}, gone={PATHS[CONFIG]})
    unlisted = Unlisted(edge)
    first, *others = sorted((ROLE, CONFIG, WIDGET))
    assert first == ROLE
    await looks(unlisted, 1, ROLE, *others)
    assert edge.asked == []
    await looks(unlisted, 3, ROLE, *others)
    assert unlisted.missing == (str(CONFIG),)
    assert edge.asked.count(PATHS[WIDGET]) == edge.asked.count(PATHS[CONFIG]) >= 2
