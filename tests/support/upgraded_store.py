"""Edges in a store that are upgraded: what they report, what is wanted of them, and the time that passes."""

from typing import Any
from uuid import UUID

from database_stores import ACTOR, Store
from flux_file import labelled_flux

from edgewright.application.flux_releases import keep
from edgewright.domain.cluster import Phase
from edgewright.domain.imported_flux import ImportedFlux
from edgewright.domain.upgrades import AgentTarget, FluxTarget
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.upgrades import UpgradeFilter, UpgradeWish


def flux_target(release: ImportedFlux) -> FluxTarget:
    return FluxTarget(sha256=release.sha256, labelled=release.version)


OLD, NEW = (
    AgentTarget(image="centre.example/edgewright/agent:0.3.0-aaa"),
    AgentTarget(image="centre.example/agent:0.4"),
)
RELEASE = labelled_flux("v2.7.3")
FLUX = flux_target(RELEASE)
ANCHOR = "0f9a4c1e-3b67-4b9e-9c2f-2f1d1f0e9a11"


def agents(cluster: UUID, **more: Any) -> UpgradeWish:
    return UpgradeWish(cluster=cluster, target=NEW, before=OLD.version, fallback=OLD, **more)


async def report(store: Store, cluster: UUID, **body: Any) -> None:
    await store.edge_reports.write_status(
        cluster, body, certificate=None, certificate_problem=None, generation=1, actor="agent"
    )


async def heard(store: Store, name: str = "press-shop", **body: Any) -> UUID:
    """A cluster whose edge has joined and reported."""
    cluster = await store.joined(name)
    await report(store, cluster, **{"versions": {"agent": "0.3.0", "agent-image": OLD.image}, **body})
    await committed(store, cluster)
    return cluster


async def committed(store: Store, cluster: UUID) -> None:
    """What is wanted is in the repository, and its workflow has nothing left to do."""
    fence = await store.fence(cluster)
    await store.steps.record_rendering(fence, "digest", (), commit="c" * 40)
    await store.publish(cluster, Phase.ACTIVE, ready=True)


async def pass_minutes(store: Store, minutes: float, *, beating: UUID | None = None) -> None:
    """Minutes in which a gateway listens, and perhaps an edge is heard."""
    for _ in range(int(minutes * 6)):
        store.clock.advance(seconds=10)
        await store.edge_reports.keep_listening()
        if beating is not None:
            await store.edge_reports.heartbeats([Heartbeat(beating, 1)])


async def judged(store: Store) -> list[UUID]:
    """Judges what is under way, as the sweep does; the clusters that want a nudge."""
    return [each for each in await store.upgrades.under_way() if await store.upgrades.judge(each)]


async def imported(store: Store, *releases: ImportedFlux) -> None:
    """The centre has these releases of Flux, and edges get the last one."""
    for each in releases or (RELEASE,):
        await keep(store.config, store.upgrades, each, ACTOR, even_if_older=True)


async def only(store: Store, cluster: UUID) -> Any:
    page = await store.upgrades.page(UpgradeFilter(cluster=cluster))
    [upgrade] = page.items
    return upgrade
