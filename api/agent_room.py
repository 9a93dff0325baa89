"""What the routes of the agents work with. Every edge calls them all the time, so that they are handed it at once."""

from dataclasses import dataclass
from datetime import timedelta

from fastapi import Request

from api.access import Access
from api.allowances import Allowance
from api.heartbeats import HeartbeatBatch
from api.held_beats import HeldBeats
from api.nudges import Nudges
from api.wanted_revisions import WantedRevisions
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.domain.reach import Door
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.edge_access import EdgeAccess
from edgewright.ports.edge_reports import EdgeReports
from edgewright.ports.git_server import GitServer
from edgewright.ports.resealing import Resealings


@dataclass(frozen=True)
class AgentRoom:
    """The ports and bounds that the agent routes of one gateway share.

    Args:
        statuses: takes what an edge says of itself.
        edge_statuses, edge_secrets: what each cluster may report and register in a while.
        external_url: where an agent usually calls.
        door: where agents are to call; None: wherever they do.
        credential_age: at which an edge is asked to replace a credential; None: at none.
    """

    access: Access
    directory: ClusterDirectory
    config: ConfigStore
    edge_access: EdgeAccess
    edge_reports: EdgeReports
    resealings: Resealings
    git: GitServer
    statuses: EdgeStatusDoor
    heartbeats: HeartbeatBatch
    held_beats: HeldBeats
    wanted_revisions: WantedRevisions
    nudges: Nudges
    edge_statuses: Allowance
    edge_secrets: Allowance
    external_url: str
    door: Door | None
    credential_age: timedelta | None


def agent_room_in(request: Request) -> AgentRoom:
    """That of the application that serves this request."""
    room: AgentRoom = request.app.state.agent_room
    return room
