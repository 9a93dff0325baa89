"""The answer to a heartbeat that is held back until something is wanted of its edge."""

import time

from starlette.responses import Response

from api.agent_callers import AgentCaller, same_agent
from api.agent_room import AgentRoom
from api.held_beats import Seat
from api.orders import LONGEST_WAIT, heartbeat_json, may_wait, told_to
from api.schemas.edge import HeartbeatAnswer, HeartbeatWish


class HeldOrders:
    """One of them. It keeps of its caller only what finds it again: the rest may have changed by then, and is large.

    Args:
        told: what is answered if nothing else is wanted until the time is over.
    """

    __slots__ = ("_cluster", "_credential", "_is_over", "_room", "_seat", "_told", "_until", "_wish")

    def __init__(self, agent: AgentCaller, wish: HeartbeatWish, told: HeartbeatAnswer, room: AgentRoom) -> None:
        self._cluster, self._credential = agent.cluster, agent.credential.id
        self._wish = wish
        self._told = heartbeat_json(told)
        self._until = time.monotonic() + min(wish.wait, LONGEST_WAIT, told.interval)
        self._room = room
        self._seat: Seat | None = None
        self._is_over = False

    async def answer(self) -> Response:
        with self._room.held_beats.seat(self._cluster) as self._seat:
            while self._seat is not None and not self._is_over:
                if not await self._seat.has_news(self._until - time.monotonic()) or await self._is_wanted():
                    break
        return Response(self._told, media_type="application/json")

    def end(self) -> None:
        self._is_over = True
        if self._seat is not None:
            self._seat.end()

    async def _is_wanted(self) -> bool:
        """Whether something else is wanted by now."""
        # Who has reported a new status meanwhile is not asked for it.
        later = self._wish.model_copy(update={"status_digest": None})
        agent = await same_agent(self._room.access, self._cluster, self._credential)
        told = await told_to(agent, later, self._room)
        self._told = heartbeat_json(told)
        return not may_wait(told, self._wish)
