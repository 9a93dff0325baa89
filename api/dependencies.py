"""Single ports and values of the gateway, for routes that need no more of it."""

from typing import Annotated

from fastapi import Depends, Request

from api.gateway import EdgeOffer
from edgewright.ports.config_store import ConfigStore

# Not plain functions: FastAPI runs those in threads.


async def config_of(request: Request) -> ConfigStore:
    """The Config Store."""
    config: ConfigStore = request.app.state.config
    return config


async def offer_of(request: Request) -> EdgeOffer:
    """What edges are told and given."""
    offer: EdgeOffer = request.app.state.offer
    return offer


TheConfig = Annotated[ConfigStore, Depends(config_of)]
TheOffer = Annotated[EdgeOffer, Depends(offer_of)]
