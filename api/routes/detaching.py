"""The order to detach, for what carries it out on the edge."""

from typing import Annotated

from fastapi import APIRouter, Depends

from api.agent_callers import AgentCall, FromAgent
from api.detaching import detach_order, not_detaching
from api.schemas.edge import DetachOrder

router = APIRouter(tags=["agent"])


@router.get("/v1/agent/detach-order", name="detach_order", summary="The order to detach")
async def the_detach_order(call: Annotated[AgentCall[None], Depends(FromAgent())]) -> DetachOrder:
    """What the answer to a heartbeat says, without being one; 409 `not_detaching` while the edge is to stay."""
    order = detach_order(call.agent)
    if order is None:
        raise not_detaching()
    return order
