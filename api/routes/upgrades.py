"""Upgrades of what bootstrap has installed on an edge: Flux and the agent."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import JSONResponse, Response

from api.auth import ClusterOperator, Reader, actor_of
from api.bodies import JsonBody
from api.dependencies import EdgeOffer, TheOffer
from api.idempotency import as_json
from api.known_names import KnownCluster
from api.nudges import Nudges
from api.schemas.upgrades import AgentImageBody, UpgradeBody, UpgradeList, WantedUpgrade
from edgewright import __version__
from edgewright.application.lookup import open_cluster
from edgewright.application.upgrades import UpgradeDoor, UpgradeOffer, UpgradeRequest, no_agent_image
from edgewright.domain.upgrades import AgentTarget, Component, Upgrade, UpgradeState
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.upgrades import UpgradeFilter, Upgrades

router = APIRouter(tags=["upgrades"])
_BEGUN: dict[int | str, dict[str, Any]] = {
    200: {"description": "Nothing to do: it is under way, or the edge has it.", "model": UpgradeBody}
}


@dataclass(frozen=True)
class UpgradeRoom:
    """What the routes of upgrades work with."""

    directory: ClusterDirectory
    upgrades: Upgrades
    door: UpgradeDoor
    nudges: Nudges


async def upgrade_room_of(request: Request) -> UpgradeRoom:
    """That of the application that serves this request. Not a plain function: those run in threads."""
    room: UpgradeRoom = request.app.state.upgrade_room
    return room


TheUpgradeRoom = Annotated[UpgradeRoom, Depends(upgrade_room_of)]


@router.post(
    "/v1/cluster/{uuid}/upgrade",
    status_code=202,
    summary="Upgrade Flux or the agent of a cluster",
    response_model=UpgradeBody,
    responses=_BEGUN,
)
async def upgrade_cluster(
    *,
    operator: ClusterOperator,
    uuid: KnownCluster,
    wish: Annotated[WantedUpgrade, Depends(JsonBody(WantedUpgrade))],
    room: TheUpgradeRoom,
    offer: TheOffer,
) -> Response:
    """A commit to its driving repository brings the version; it is proven once the edge says that it runs it.

    An agent that does not prove itself within a quarter of an hour goes back to the image before, and the one before
    goes on calling meanwhile. 409: `upgrade_limit_reached`, `upgrade_under_way`, `upgrade_backwards`, `edge_silent`,
    `edge_not_attached`, `agent_too_old`, `flux_not_ours`, `cluster_bare`, `paused`.
    """
    row = await open_cluster(room, uuid)
    asked = UpgradeRequest(wish.component, wish.version, wish.at_once, wish.even_if_silent)
    upgrade, begins = await room.door.begin(row, asked, _offered(offer), actor=actor_of(operator))
    if begins:
        await room.nudges.nudge(uuid)
    return JSONResponse(as_json(_body(upgrade)), 202 if begins else 200)


@router.delete("/v1/cluster/{uuid}/upgrade", summary="Call an upgrade off")
async def cancel_upgrade(
    *,
    operator: ClusterOperator,
    uuid: KnownCluster,
    component: Annotated[
        Component | None, Query(description="Only of this one; absent: whichever is under way.")
    ] = None,
    room: TheUpgradeRoom,
) -> UpgradeBody:
    """The desired version is again what it was before, and a commit tells the edge; what it has proven stays.

    An agent goes back to the image that its edge had reported. Flux goes forward only: what the edge has begun to
    apply stays there, and the repository no longer asks for it. 409 `upgrade_not_under_way`, also the second time.
    """
    upgrade = await room.upgrades.cancel(uuid, component, actor=actor_of(operator))
    await room.nudges.nudge(uuid)
    return _body(upgrade)


@router.get("/v1/agent-image", summary="The agent that edges get")
async def show_agent_image(*, _operator: Reader, offer: TheOffer) -> AgentImageBody:
    """What a bootstrap line and an upgrade give to an edge now. 404 `agent_image_unset`."""
    pod = offer.agent_pod()
    if pod is None:
        raise no_agent_image()
    return AgentImageBody(image=pod.image, version=AgentTarget(image=pod.image).version)


@router.get("/v1/upgrade", summary="List upgrades")
async def list_upgrades(
    *,
    _operator: Reader,
    room: TheUpgradeRoom,
    component: Component | None = None,
    state: UpgradeState | None = None,
    cluster: UUID | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(description="1 to 500.")] = 100,
) -> UpgradeList:
    """The last one of each cluster and component: those under way first, then the newest."""
    page = await room.upgrades.page(UpgradeFilter(component, state, cluster, after, limit))
    return UpgradeList(items=[_body(each) for each in page.items], next=page.next)


def _offered(offer: EdgeOffer) -> UpgradeOffer:
    pod = offer.agent_pod()
    agent = None if pod is None else AgentTarget(**asdict(pod))
    return UpgradeOffer(agent, __version__ if offer.agent is None else None, offer.registry_mirror)


def _body(upgrade: Upgrade) -> UpgradeBody:
    return UpgradeBody(**asdict(upgrade))
