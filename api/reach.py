"""When and where an agent is to call: what it is told of it, and what it says."""

from datetime import datetime
from typing import Any

from api.agent_callers import AgentCaller
from api.schemas.edge import CheckInSpan, HeartbeatWish, NewDoor
from edgewright.adapters.time_zones import timetable
from edgewright.domain.check_in import CheckIn
from edgewright.domain.cluster import Desired
from edgewright.domain.identity import Link
from edgewright.domain.reach import Door, Reach


def link_of(wish: HeartbeatWish) -> Link | None:
    """What ties a heartbeat to the one before; None: it does not say."""
    return Link(wish.nonce, wish.previous_nonce) if wish.nonce else None


def reach_of(wish: HeartbeatWish) -> Reach | None:
    """Where the agent reaches the centre; None: it does not say, or what it says is no URL."""
    url = wish.centre_url
    if url is None or not url.startswith(("http://", "https://")) or not url.isprintable() or " " in url:
        return None
    problem = None if wish.centre_problem is None else " ".join(wish.centre_problem.split())
    return Reach(url, wish.centre_ca_sha256, problem or None, holds_former=wish.holds_former)


def told_where(door: Door | None, agent: AgentCaller, reach: Reach | None) -> dict[str, Any]:
    """What the answer to a heartbeat says of where to call: nothing to an agent that does not say where it does."""
    if door is None or reach is None or agent.orders.desired is not Desired.PRESENT:
        return {}
    if not door.is_used(reach):
        return {"move_to": NewDoor(url=door.url, ca_bundle=door.ca_bundle)}
    return {"forget_former": True} if door.is_settled and reach.holds_former else {}


def told_when(check_in: CheckIn | None, now: datetime) -> dict[str, Any]:
    """What it says of when to call. Counted from now, for the edge's clock may be wrong."""
    if check_in is None:
        return {}
    spans = [
        CheckInSpan(opens_in=(opens - now).total_seconds(), closes_in=(closes - now).total_seconds())
        for opens, closes in timetable(check_in).spans(now)
    ]
    return {"check_in": spans}
