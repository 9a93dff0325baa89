"""What drives the edge and is gone, and what the agent may not see, is told after two looks, and while it is so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from scripted_centre import START, QuickClock

from edgewright.agent.absence import RIGHTS_SECONDS, YOUNG
from edgewright.agent.attachment import CLUSTER_LABEL
from edgewright.agent.observation import Fetched, Host, Kustomized, Released
from edgewright.agent.opening import Opening
from edgewright.agent.passwords import HeldSecret
from edgewright.agent.programs import GIT_REPOSITORIES
from edgewright.agent.silence import SILENT_LOOKS
from edgewright.agent.watch import OPENINGS_SECONDS, Watch
from edgewright.errors import EdgewrightError, Forbidden, Unauthenticated, Waiting

CLUSTER = "7d6a4c1e-5b0f-4f57-9a43-0f6a2d1c9b8e"
FORBIDDEN = Forbidden("No.", code="kubernetes_forbidden")
REVISION = "main@sha1:a"


@dataclass
class Edge:
    """One on which everything is there, until a test takes it away. ``age``: of its Secrets."""

    age: timedelta = timedelta(days=1)
    gone: set[str] = field(default_factory=set)
    fails: dict[str, EdgewrightError] = field(default_factory=dict)
    cluster: str = CLUSTER
    drives: frozenset[str] = frozenset({"Kustomization flux-system", "GitRepository helm-charts"})
    unlabelled: frozenset[str] = frozenset()
    asked: str | None = None
    anchor: str | None = None

    async def hosts(self) -> list[Host]:
        self._may_fail("nodes")
        return [Host("a", True, True)]

    async def sources(self, namespace: str, cluster: str) -> list[Fetched]:
        self._may_fail("gitrepositories")
        there = [name for name in ("self-link", "helm-charts") if f"GitRepository {name}" not in self.gone]
        return [Fetched(name, fetched=REVISION, own=name not in self.unlabelled, asked=self.asked) for name in there]

    async def kustomizations(self, namespace: str, cluster: str) -> list[Kustomized]:
        self._may_fail("kustomizations")
        found = [
            Kustomized("self-link", "self-link", applied=REVISION, drivers=self.drives),
            Kustomized("flux-system", "helm-charts"),
        ]
        return [each for each in found if f"Kustomization {each.name}" not in self.gone]

    async def releases(self, namespace: str, cluster: str) -> list[Released]:
        self._may_fail("helmreleases")
        return [Released("edge-cluster")]

    async def namespaces(self, *, most: int) -> list[str]:
        return ["default"][:most]

    async def openings(self) -> list[Opening]:
        self._may_fail("sealedsecrets")
        return []

    async def version(self) -> str:
        return "v1.33.1"

    async def certificate(self) -> str:
        return "PEM"

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None:
        self._may_fail(f"secrets/{name}")
        if f"Secret {name}" in self.gone:
            return None
        owner = self.anchor if name == "edgewright-agent" else "of the other Secret"
        return HeldSecret({}, {CLUSTER_LABEL: self.cluster}, "1", START - self.age, owner)

    async def may_change_secret(self, namespace: str, name: str) -> bool:
        return f"patch {name}" not in self.gone

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None:
        if path == GIT_REPOSITORIES:
            return None
        raise AssertionError("All that is applied here is in a list.")

    def _may_fail(self, what: str) -> None:
        if what in self.fails:
            raise self.fails[what]


def watch_of(edge: Edge, clock: QuickClock | None = None) -> Watch:
    return Watch(
        edge,
        edge.certificate,
        namespace="edgewright",
        cluster=CLUSTER,
        look_seconds=15,
        clock=clock or QuickClock(0),
        chance=Random(1),
    )


async def looks(watch: Watch, number: int = 1) -> dict[str, Any]:
    """The status after so many."""
    for _ in range(number):
        await watch.look()
    return watch.seen.to_json()


async def test_an_edge_that_lacks_nothing_says_nothing() -> None:
    said = await looks(watch_of(Edge()), 3)
    assert not said.keys() & {"missing", "unknown", "unopened"}


@pytest.mark.parametrize(
    "gone",
    [
        "GitRepository self-link",
        "Kustomization self-link",
        "Kustomization flux-system",
        "GitRepository helm-charts",
        "Secret flux-secrets",
        "Secret edgewright-agent",
    ],
)
async def test_what_is_gone_is_told_after_two_looks_until_it_is_back(gone: str) -> None:
    edge = Edge()
    watch = watch_of(edge)
    await looks(watch)
    edge.gone = {gone}
    assert "missing" not in await looks(watch)
    watch.news.clear()
    assert (await looks(watch))["missing"] == [gone]
    assert watch.news.is_set()
    edge.gone = set()
    assert "missing" not in await looks(watch)


async def test_flux_that_does_not_answer_is_told_until_it_does() -> None:
    edge, clock = Edge(asked="11:00"), QuickClock(1e9)
    watch = watch_of(edge, clock)
    for _ in range(SILENT_LOOKS):
        assert "silent" not in await looks(watch)
        await clock.sleep(15)
    watch.news.clear()
    assert (await looks(watch))["silent"] == ["source-controller"]
    assert watch.news.is_set()
    edge.asked = None
    assert "silent" not in await looks(watch)


async def test_what_was_gone_before_the_agent_began_is_missed_on_an_edge_that_is_no_new_one() -> None:
    old, young = Edge(gone={"GitRepository self-link"}), Edge(timedelta(0), gone={"GitRepository self-link"})
    assert (await looks(watch_of(old), 2))["missing"] == ["GitRepository self-link"]
    clock = QuickClock(1e9)
    watch = watch_of(young, clock)
    assert "missing" not in await looks(watch, 5), "bootstrap has yet to bring it"
    await clock.sleep(YOUNG.total_seconds())
    assert (await looks(watch))["missing"] == ["GitRepository self-link"]


async def test_what_was_applied_is_missed_by_an_agent_that_has_never_seen_it() -> None:
    """Flux's inventory says that it was there; also on an edge whose Secret is young."""
    for age in (timedelta(0), timedelta(days=1)):
        edge = Edge(
            age,
            drives=frozenset({"GitRepository helm-charts", "HelmRelease gone"}),
            gone={"GitRepository helm-charts"},
        )
        watch = watch_of(edge)
        assert "missing" not in await looks(watch)
        assert (await looks(watch))["missing"] == ["GitRepository helm-charts", "HelmRelease gone"]


async def test_what_lacks_the_label_of_the_cluster_is_there_all_the_same() -> None:
    """A template need not write it. Another cluster's own source is none of this one."""
    edge = Edge(unlabelled=frozenset({"helm-charts"}))
    watch = watch_of(edge)
    said = await looks(watch, 5)
    assert "missing" not in said
    assert [each["name"] for each in said["flux"]["sources"]] == ["self-link"], "nor is it reported as ours"
    edge.unlabelled = frozenset({"self-link"})
    assert (await looks(watch, 2))["missing"] == ["GitRepository self-link"]


async def test_releases_that_may_not_be_seen_are_not_missing() -> None:
    edge = Edge(drives=frozenset({"HelmRelease gone"}), fails={"helmreleases": FORBIDDEN})
    said = await looks(watch_of(edge), 3)
    assert "missing" not in said
    assert said["unknown"] == [{"what": "helmreleases", "right": "list on helmreleases in edgewright"}]


async def test_a_secret_of_another_cluster_is_none_of_ours() -> None:
    edge = Edge()
    watch = watch_of(edge)
    await looks(watch)
    edge.cluster = "another"
    assert (await looks(watch, 2))["missing"] == ["Secret edgewright-agent", "Secret flux-secrets"]


async def test_the_anchor_is_what_owns_the_agents_own_secret_as_it_was_seen_last() -> None:
    edge = Edge()
    watch = watch_of(edge)
    assert "anchor" not in await looks(watch), "somebody has put that Secret there by hand"
    edge.anchor = "first"
    assert (await looks(watch))["anchor"] == "first"
    edge.fails = {"secrets/edgewright-agent": Waiting("Away.", code="kubernetes_away")}
    edge.anchor = "second"
    assert (await looks(watch))["anchor"] == "first"
    edge.fails = {}
    assert (await looks(watch))["anchor"] == "second", "a fresh line has made another one"


async def test_what_the_repository_does_not_drive_any_more_is_missed_by_nobody() -> None:
    edge = Edge()
    watch = watch_of(edge)
    await looks(watch)
    edge.gone = {"Kustomization flux-system"}
    await looks(watch, 2)
    edge.drives = frozenset()
    assert "missing" not in await looks(watch)


@pytest.mark.parametrize("trouble", [Waiting("Away.", code="kubernetes_away"), FORBIDDEN])
async def test_what_cannot_be_seen_is_not_missing(trouble: EdgewrightError) -> None:
    edge = Edge(fails=dict.fromkeys(("gitrepositories", "kustomizations", "secrets/flux-secrets"), trouble))
    assert "missing" not in await looks(watch_of(edge), 5)


@pytest.mark.parametrize(
    ("what", "right"),
    [
        ("nodes", "list on nodes"),
        ("gitrepositories", "list on gitrepositories in edgewright"),
        ("kustomizations", "list on kustomizations in edgewright"),
        ("helmreleases", "list on helmreleases in edgewright"),
        ("secrets/flux-secrets", "get on secrets/flux-secrets in edgewright"),
        ("secrets/edgewright-agent", "get on secrets/edgewright-agent in edgewright"),
    ],
)
async def test_a_right_that_is_gone_is_named_after_two_looks_until_it_is_back(what: str, right: str) -> None:
    edge = Edge()
    watch = watch_of(edge)
    await looks(watch)
    edge.fails = {what: FORBIDDEN}
    assert "unknown" not in await looks(watch)
    assert (await looks(watch))["unknown"] == [{"what": what, "right": right}]
    edge.fails = {}
    assert "unknown" not in await looks(watch)


async def test_what_may_not_be_seen_is_not_told_as_it_was_seen_last() -> None:
    edge = Edge()
    watch = watch_of(edge)
    before = await looks(watch)
    assert before["observed_revision"] == REVISION
    edge.fails = dict.fromkeys(("kustomizations", "gitrepositories", "helmreleases"), FORBIDDEN)
    said = await looks(watch, 2)
    assert "observed_revision" not in said and watch.seen.known_revision is None
    assert said["flux"] == {"sources": [], "kustomizations": []}
    edge.fails = {}
    back = await looks(watch)
    assert (back["observed_revision"], back["flux"]) == (REVISION, before["flux"])


async def test_secrets_that_may_not_be_seen_any_more_are_not_told_as_they_were_seen_last() -> None:
    edge, clock = Edge(), QuickClock(10)
    watch = watch_of(edge, clock)
    assert "secrets" in await looks(watch)
    edge.fails = {"sealedsecrets": FORBIDDEN}
    await clock.sleep(OPENINGS_SECONDS)
    said = await looks(watch, 2)
    assert said["unknown"] == [{"what": "sealedsecrets", "right": "list on sealedsecrets"}]
    assert "secrets" not in said
    edge.fails = {}
    assert "secrets" in await looks(watch)


async def test_an_agent_that_may_see_nothing_has_seen_all_it_can() -> None:
    edge = Edge(fails=dict.fromkeys(("nodes", "gitrepositories", "kustomizations"), FORBIDDEN))
    watch = watch_of(edge)
    await looks(watch)
    assert not watch.seen.is_whole
    await looks(watch)
    assert watch.seen.is_whole


async def test_a_token_that_is_not_taken_is_a_right_that_is_missing() -> None:
    edge = Edge(fails={"kustomizations": Unauthenticated("No.", code="kubernetes_unauthenticated")})
    [said] = (await looks(watch_of(edge), 2))["unknown"]
    assert said == {"what": "kustomizations", "right": "a service account's token that Kubernetes takes"}


async def test_an_api_server_that_is_away_takes_no_right() -> None:
    edge = Edge(fails={"kustomizations": Waiting("Away.", code="kubernetes_away")})
    assert "unknown" not in await looks(watch_of(edge), 5)


@pytest.mark.parametrize("secret", ["flux-secrets", "edgewright-agent"])
async def test_a_secret_that_may_be_read_and_not_written_is_told(secret: str) -> None:
    edge, clock = Edge(), QuickClock(1e9)
    watch = watch_of(edge, clock)
    await looks(watch)
    edge.gone = {f"patch {secret}"}
    assert "unknown" not in await looks(watch, 2), "that is asked for once a minute"
    await clock.sleep(RIGHTS_SECONDS)
    said = await looks(watch, 2)
    assert said["unknown"] == [{"what": f"secrets/{secret}", "right": f"patch on secrets/{secret} in edgewright"}]
    edge.gone = set()
    assert "unknown" not in await looks(watch)


async def test_an_api_server_that_does_not_say_what_is_allowed_is_believed_to_allow_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nobody_knows(*_: object) -> bool:
        raise FORBIDDEN

    monkeypatch.setattr(Edge, "may_change_secret", nobody_knows)
    edge = Edge(fails={"secrets/flux-secrets": FORBIDDEN})
    watch = watch_of(edge)
    assert len((await looks(watch, 2))["unknown"]) == 1
    edge.fails = {}
    assert "unknown" not in await looks(watch, 2)
