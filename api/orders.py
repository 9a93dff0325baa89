"""What the answer to a heartbeat wants of an edge, and whether that is anything new to its agent.

An answer that wants nothing new may be held back until something is.
"""

import hashlib
import time
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from api.agent_callers import AgentCaller, same_agent
from api.agent_room import AgentRoom
from api.held_beats import Seat
from api.reach import reach_of, told_when, told_where
from api.rotation import wanted_rotations
from api.schemas.edge import DetachOrder, HeartbeatAnswer, HeartbeatWish
from edgewright.domain.cluster import CredentialState, Desired, Order
from edgewright.domain.delivery import OWN_SOURCE
from edgewright.domain.rendering.repository import DEFAULT_SOURCE
from edgewright.errors import Conflict
from edgewright.ports.resealing import Resealings

SHORTEST_INTERVAL = 5
"""Seconds between two heartbeats, however short the lease."""
LONGEST_WAIT = 50.0
"""Seconds for which an answer is held back, at most: proxies give up after 60."""
SOURCES = (OWN_SOURCE, DEFAULT_SOURCE)
"""Whose revisions an agent is told."""
MOST_WANTED = 50
"""Secrets that one answer to the agent names."""
_NOT_WANTS = {"nonce", "interval", "check_in", "revisions", "wants_digest"}
"""What an answer says that is no wish, differs each time, or is compared by itself."""


async def told_to(agent: AgentCaller, wish: HeartbeatWish, room: AgentRoom) -> HeartbeatAnswer:
    """The answer to a heartbeat as things are now."""
    told: dict[str, Any] = {
        "state": agent.state,
        "interval": max(SHORTEST_INTERVAL, agent.orders.lease_seconds // 3),
        "nonce": wish.nonce,
        **told_when(agent.orders.check_in, datetime.now(UTC)),
    }
    match agent.state:
        case CredentialState.PENDING:
            pass
        case CredentialState.SUSPENDED:
            told["suspended"] = True
        case CredentialState.ACTIVE:
            flux = bytes.fromhex(wish.flux_sha256) if wish.flux_sha256 else None
            told |= _wanted(agent, wish) | told_where(room.door, agent, reach_of(wish))
            told["rotate"] = await wanted_rotations(
                room.edge_access, agent, flux_sha256=flux, oldest=room.credential_age
            )
            told["reseal"] = await _stale(room.resealings, agent)
            if wish.wait > 0:
                # What cannot be read now is no news: an agent that missed a revision would call again at once, and a
                # gateway that is behind would have twice as much to do.
                known = {source: wish.revisions[source] for source in SOURCES if source in wish.revisions}
                told["revisions"] = known | dict(await room.wanted_revisions.of(agent.cluster))
        case _:
            return HeartbeatAnswer(**told, detach=True, detach_order=detach_order(agent))
    answer = HeartbeatAnswer(**told)
    return answer if wish.wait <= 0 else answer.model_copy(update={"wants_digest": _digest(answer)})


def may_wait(told: HeartbeatAnswer, wish: HeartbeatWish) -> bool:
    """Whether the agent offers to wait, and nothing is wanted that it does not know."""
    if wish.wait <= 0 or told.wants_digest is None or told.wants_digest != wish.wants_digest:
        return False
    return all(wish.revisions.get(source) == commit for source, commit in (told.revisions or {}).items())


def heartbeat_json(told: HeartbeatAnswer) -> bytes:
    """The answer as it is sent."""
    return told.model_dump_json(exclude_none=True).encode()


def detach_order(agent: AgentCaller) -> DetachOrder | None:
    """The order to detach, as the caller's own cluster and generation; None: it is to stay.

    It stands while a deletion waits for the goodbye, and for an edge that comes back after a deletion without one.
    """
    orders = agent.orders
    asked = orders.order is Order.DETACH and orders.desired is Desired.DELETED
    if agent.state is CredentialState.DETACH_ONLY or (agent.state is CredentialState.ACTIVE and asked):
        return DetachOrder(
            cluster=agent.cluster, generation=agent.generation, workloads=orders.workloads, purge=orders.purge
        )
    return None


def not_detaching() -> Conflict:
    """Nobody has told it to."""
    return Conflict("The centre has not told this cluster to detach.", code="not_detaching")


class HeldOrders:
    """The answer to a heartbeat that is held back until something is wanted of its edge.

    It keeps of its caller only what finds it again: the rest may have changed by then, and is large.

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


def _digest(told: HeartbeatAnswer) -> str:
    wants = told.model_dump_json(exclude=_NOT_WANTS, exclude_none=True)
    return hashlib.sha256(wants.encode()).hexdigest()[:32]


async def _stale(resealings: Resealings, agent: AgentCaller) -> list[str]:
    """Secrets that the edge is to re-seal now."""
    if agent.orders.resealing is None or agent.orders.desired is not Desired.PRESENT:
        return []
    return [str(secret) for secret in await resealings.wanted(agent.cluster, limit=MOST_WANTED)]


def _wanted(agent: AgentCaller, wish: HeartbeatWish) -> dict[str, Any]:
    known = agent.orders.status_etag
    report_empty = agent.orders.order is Order.REPORT_EMPTY
    order = detach_order(agent)
    return {
        "status_due": known is None or (wish.status_digest is not None and wish.status_digest != known),
        "suspended": False,
        "report_empty": report_empty,
        "revision": agent.orders.desired_revision if report_empty else None,
        "detach": order is not None,
        "detach_order": order,
    }
