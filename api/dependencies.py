"""Single ports and values of the gateway, for routes that need no more of it."""

from typing import Annotated

from fastapi import Depends, Request

from api.gateway import EdgeOffer
from api.live import gateway_in
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.operators import OperatorTokens

# Not plain functions: FastAPI runs those in threads.


async def config_of(request: Request) -> ConfigStore:
    """The Config Store."""
    return gateway_in(request).ports.config


async def operators_of(request: Request) -> OperatorTokens:
    """The operators' tokens."""
    return gateway_in(request).ports.operators


async def offer_of(request: Request) -> EdgeOffer:
    """What edges are told and given."""
    return gateway_in(request).offer


TheConfig = Annotated[ConfigStore, Depends(config_of)]
TheOperators = Annotated[OperatorTokens, Depends(operators_of)]
TheOffer = Annotated[EdgeOffer, Depends(offer_of)]
