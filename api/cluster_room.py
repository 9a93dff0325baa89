"""What the routes of clusters and of the verbs work with."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from api.nudges import Nudges
from api.presentation import LinkBases
from api.synced import SyncedNow
from edgewright.application.configurations import ClusterConfigurations
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_wishes import ClusterWishes
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.edge_access import EdgeAccess
from edgewright.ports.edge_reports import EdgeReports
from edgewright.ports.fleet import Fleet
from edgewright.ports.operators import IdempotencyKeys


@dataclass(frozen=True)
class ClusterRoom:
    """The ports of the cluster routes of one gateway. ``statuses``: where an operator confirms a certificate."""

    directory: ClusterDirectory
    wishes: ClusterWishes
    config: ConfigStore
    edge_access: EdgeAccess
    edge_reports: EdgeReports
    idempotency: IdempotencyKeys
    fleet: Fleet
    statuses: EdgeStatusDoor
    configurations: ClusterConfigurations
    nudges: Nudges
    synced: SyncedNow
    link_bases: LinkBases


async def cluster_room_of(request: Request) -> ClusterRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: ClusterRoom = request.app.state.cluster_room
    return room


TheClusterRoom = Annotated[ClusterRoom, Depends(cluster_room_of)]
