"""Which programs an agent sees on its edge, and whose Flux that is."""

from collections.abc import Mapping
from typing import Any

import pytest
from scripted_centre import QuickClock
from structlog.testing import capture_logs

from edgewright import __version__
from edgewright.agent.programs import FLUX_SECONDS, GIT_REPOSITORIES, KUBERNETES_SECONDS, EdgePrograms
from edgewright.errors import EdgewrightError, Forbidden, Unauthenticated, Waiting

CLUSTER = "7d6a4c1e-5b0f-4f57-9a43-0f6a2d1c9b8e"
IMAGE = "registry.example.com/edgewright:1"
OURS = {
    "app.kubernetes.io/version": "v2.7.3",
    "edgewright.dev/part-of": "bootstrap",
    "edgewright.dev/cluster": CLUSTER,
}
OWN = {"agent": __version__, "agent-image": IMAGE, "kubernetes": "v1.33.1"}
REFUSED = Forbidden("No.", code="kubernetes_forbidden")


class VersionedCluster:
    """An edge with a Flux. ``trouble``: what comes in the place of an answer about it."""

    def __init__(self, found: Mapping[str, Any] | None) -> None:
        self.found = found
        self.trouble: EdgewrightError | None = None
        self.asked: list[str] = []

    async def version(self) -> str:
        self.asked.append("version")
        return "v1.33.1"

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None:
        assert "PartialObjectMetadata" in accept, "the schema of the kind is large, and says nothing here"
        self.asked.append(path)
        if self.trouble is not None:
            raise self.trouble
        return self.found


def labelled(labels: object) -> dict[str, Any]:
    return {"metadata": {"name": "gitrepositories.source.toolkit.fluxcd.io", "labels": labels}}


def programs_of(edge: VersionedCluster, clock: QuickClock, image: str | None = IMAGE) -> EdgePrograms:
    return EdgePrograms(edge, cluster=CLUSTER, image=image, clock=clock)


@pytest.mark.parametrize(
    ("found", "flux", "is_ours"),
    [
        (labelled(OURS), {"flux": "v2.7.3"}, True),
        (labelled({**OURS, "edgewright.dev/cluster": "another"}), {"flux": "v2.7.3"}, False),
        (labelled({**OURS, "edgewright.dev/part-of": "something"}), {"flux": "v2.7.3"}, False),
        (labelled({"app.kubernetes.io/version": "v2.6.0"}), {"flux": "v2.6.0"}, False),
        (labelled(None), {}, False),
        (labelled({"app.kubernetes.io/version": 7}), {}, False),
        ({"metadata": []}, {}, False),
        (None, {}, None),
    ],
)
async def test_flux_is_known_by_the_labels_of_its_definition(
    found: Mapping[str, Any] | None, flux: dict[str, str], is_ours: bool | None
) -> None:
    programs = programs_of(VersionedCluster(found), QuickClock(0))
    assert (programs.versions, programs.flux_is_ours) == (None, None)
    await programs.look()
    assert (programs.versions, programs.flux_is_ours) == ({**OWN, **flux}, is_ours)


async def test_an_agent_that_nobody_has_told_its_image_reports_none() -> None:
    programs = programs_of(VersionedCluster(None), QuickClock(0), image=None)
    await programs.look()
    assert programs.versions == {"agent": __version__, "kubernetes": "v1.33.1"}


@pytest.mark.parametrize(
    "refusal", [REFUSED, Unauthenticated("Who?", code="kubernetes_unauthenticated")], ids=["403", "401"]
)
async def test_without_the_right_nothing_is_said_of_flux_and_one_line_logged(refusal: EdgewrightError) -> None:
    """An earlier version has installed no such right."""
    edge = VersionedCluster(labelled(OURS))
    edge.trouble = refusal
    programs = programs_of(edge, QuickClock(0))
    with capture_logs() as logged:
        for _ in range(5):
            await programs.look()
    assert (programs.versions, programs.flux_is_ours) == (OWN, None)
    assert [line["state"] for line in logged if line["event"] == "flux_version"] == ["unseen"]
    assert edge.asked.count(GIT_REPOSITORIES) == 2, "then once a minute"


async def test_what_cannot_be_seen_stays_as_it_was_and_a_right_that_is_taken_away_ends_that() -> None:
    clock, edge = QuickClock(10 * FLUX_SECONDS), VersionedCluster(labelled(OURS))
    programs = programs_of(edge, clock)
    await programs.look()
    seen = {**OWN, "flux": "v2.7.3"}
    for trouble in (Waiting("Away.", code="kubernetes_away"), REFUSED):
        edge.trouble = trouble
        await clock.sleep(FLUX_SECONDS)
        await programs.look()
        assert (programs.versions, programs.flux_is_ours) == (seen, True), "an API server that starts refuses, too"
    await programs.look()
    assert (programs.versions, programs.flux_is_ours) == (OWN, None)
    edge.trouble = None
    await clock.sleep(FLUX_SECONDS)
    await programs.look()
    assert (programs.versions, programs.flux_is_ours) == (seen, True)


async def test_an_upgrade_of_flux_is_seen_within_a_minute_and_kubernetes_is_asked_rarely() -> None:
    clock, edge = QuickClock(2 * KUBERNETES_SECONDS), VersionedCluster(labelled(OURS))
    programs = programs_of(edge, clock)
    for _ in range(240):
        await programs.look()
        await clock.sleep(15)
    assert edge.asked.count("version") == 1
    assert edge.asked.count(GIT_REPOSITORIES) == 60
    edge.found = labelled({**OURS, "app.kubernetes.io/version": "v2.8.0"})
    await programs.look()
    assert (programs.versions or {})["flux"] == "v2.8.0"
