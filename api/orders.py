"""What the answer to a heartbeat wants of an edge, and whether that is anything new to its agent."""

import hashlib
from datetime import UTC, datetime
from typing import Any

from api.agent_callers import AgentCaller
from api.agent_room import AgentRoom
from api.detaching import detach_order
from api.reach import reach_of, told_when, told_where
from api.rotation import wanted_rotations
from api.schemas.edge import HeartbeatAnswer, HeartbeatWish
from edgewright.domain.cluster import CredentialState, Desired, Order
from edgewright.ports.resealing import Resealings

SHORTEST_INTERVAL = 5
"""Seconds between two heartbeats, however short the lease."""
LONGEST_WAIT = 50.0
"""Seconds for which an answer is held back, at most: proxies give up after 60."""
MOST_WANTED = 50
"""Secrets that one answer to the agent names."""
_NOT_WANTS = {"nonce", "interval", "check_in", "revisions", "wants_digest"}
"""What an answer says that is no wish, differs each time, or is compared by itself."""


async def told_to(agent: AgentCaller, wish: HeartbeatWish, room: AgentRoom) -> HeartbeatAnswer:
    """The answer to a heartbeat as things are now."""
    told: dict[str, Any] = {
        "state": agent.state.value,
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
                told["revisions"] = dict(await room.wanted_revisions.of(agent.cluster))
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


def _digest(told: HeartbeatAnswer) -> str:
    wants = told.model_dump_json(exclude=_NOT_WANTS, exclude_none=True)
    return hashlib.sha256(wants.encode()).hexdigest()[:32]


async def _stale(resealings: Resealings, agent: AgentCaller) -> list[str]:
    """Secrets that the edge is to re-seal now."""
    if agent.orders.resealing is None or agent.orders.desired is not Desired.PRESENT:
        return []
    return list(await resealings.wanted(agent.cluster, limit=MOST_WANTED))


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
