"""Single ports and values of the gateway, for routes that need no more of it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from edgewright.bootstrap import AgentPod
from edgewright.domain.reach import Door
from edgewright.ports.agent_images import AgentImages
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.config_store import ConfigStore


@dataclass(frozen=True)
class EdgeOffer:
    """What edges are told of this centre, and what they are given to run.

    Args:
        external_url: base of every URL that leaves the gateway; no trailing slash. ``Host`` never makes one.
        external_url_is_loopback: such URLs reach nobody but this machine, and answers say so.
        ca_bundle: PEM that edges verify ``external_url`` with; None: their own trust store.
        door: where edges are to reach the gateways; None: wherever they do.
        registry_mirror: ``host[:port][/folder]`` from which edges pull Flux's images; None: as Flux names them.
        agent: what edges run the agent from, as the settings say; None: the image that this gateway serves.
        images: where that is; None: nowhere.
        agent_priority_class: of its pods.
        credential_age: at which an edge is asked to replace a credential; None: at none.
    """

    external_url: str
    external_url_is_loopback: bool = True
    ca_bundle: str | None = None
    door: Door | None = None
    registry_mirror: str | None = None
    agent: AgentPod | None = None
    images: AgentImages | None = None
    agent_priority_class: str | None = None
    credential_age: timedelta | None = None

    def agent_pod(self) -> AgentPod | None:
        """What edges that are attached now run the agent from; None: they get no agent."""
        if self.agent is not None or self.images is None:
            return self.agent
        published, address = self.images.published(), urlsplit(self.external_url)
        if published is None or address.path:  # a registry is found at the root of a host
            return None
        return AgentPod(published.reference(address.netloc), None, self.agent_priority_class)


# Not plain functions: FastAPI runs those in threads.


async def config_of(request: Request) -> ConfigStore:
    """The Config Store."""
    config: ConfigStore = request.app.state.config
    return config


async def directory_of(request: Request) -> ClusterDirectory:
    """How clusters are found."""
    directory: ClusterDirectory = request.app.state.directory
    return directory


async def offer_of(request: Request) -> EdgeOffer:
    """What edges are told and given."""
    offer: EdgeOffer = request.app.state.offer
    return offer


TheConfig = Annotated[ConfigStore, Depends(config_of)]
TheDirectory = Annotated[ClusterDirectory, Depends(directory_of)]
TheOffer = Annotated[EdgeOffer, Depends(offer_of)]
