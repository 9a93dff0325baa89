"""The agent of a cluster as a caller. Every edge has one, which calls all the time.

A route for agents has one dependency, ``FromAgent``, and one look-up of the database behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from fastapi import Request
from pydantic import BaseModel

from api.access import Access
from api.agent_room import AgentRoom, agent_room_in
from api.auth import FRESH_LINE, counts, identified, matched, proven
from api.bodies import JsonBody
from edgewright.domain.cluster import CredentialState, Role
from edgewright.domain.credentials import CredentialSecret
from edgewright.errors import Forbidden, Unauthenticated
from edgewright.ports.edge_access import Credential, EdgeOrders
from edgewright.ports.operators import OperatorToken


@dataclass(frozen=True, slots=True)
class AgentCaller:
    """A credential of a cluster that matched, with what is ordered of the cluster's edge."""

    credential: Credential
    orders: EdgeOrders

    @property
    def cluster(self) -> UUID:
        return self.credential.cluster

    @property
    def name(self) -> str:
        return self.orders.name

    @property
    def generation(self) -> int:
        return self.orders.generation

    @property
    def state(self) -> CredentialState:
        return self.credential.state


Body = TypeVar("Body", bound=BaseModel | None)
Demand = Callable[[AgentCaller], object]
"""Raises if the agent may not do this now."""


def _nothing(_agent: AgentCaller) -> None:
    """Whatever the state of its credential, the agent may."""


@dataclass(frozen=True, slots=True)
class AgentCall(Generic[Body]):
    """One request of an agent.

    Args:
        body: what it says; None where the route reads that itself.
    """

    agent: AgentCaller
    body: Body
    request: Request
    room: AgentRoom


class FromAgent:
    """The one dependency of a route for agents: who calls, then whether that is allowed, then what it says.

    The OpenAPI document finds the door and the model of the body here.

    Args:
        body: reads what the agent says; None: the route does, or there is nothing to read.
        demand: lets the agent pass before anything is read.
    """

    def __init__(self, body: JsonBody[Any] | None = None, *, demand: Demand = _nothing) -> None:
        self.body = body
        self._demand = demand

    async def __call__(self, request: Request) -> AgentCall[Any]:
        room = agent_room_in(request)
        agent = await identify_agent(request, room.access)
        self._demand(agent)
        said = None if self.body is None else await self.body(request)
        return AgentCall(agent, said, request, room)


async def identify_agent(request: Request, access: Access) -> AgentCaller:
    """The agent of a cluster, whatever the state of its credential; raises like ``api.auth.identified``, too.

    Raises:
        Forbidden: an operator, or the other credential of the cluster.
    """
    caller = await identified(request, access, _match_agent)
    if isinstance(caller, OperatorToken) or caller.credential.role is not Role.AGENT:
        raise Forbidden("Only a cluster's agent may do this.")
    return caller


async def _match_agent(access: Access, cluster: UUID, spelled: CredentialSecret) -> AgentCaller | None:
    orders = await access.edge_access.orders(cluster)
    credential = None if orders is None else await matched(access, spelled, orders)
    return None if orders is None or credential is None else AgentCaller(credential, orders)


async def same_agent(access: Access, cluster: UUID, credential_id: UUID) -> AgentCaller:
    """A caller as it is now, with what has become of its cluster and its credential since.

    Raises:
        Unauthenticated: the cluster is gone, or the credential, or it is of earlier hardware by now.
    """
    orders = await access.edge_access.orders(cluster)
    for credential in () if orders is None else orders.credentials:
        if orders is not None and credential.id == credential_id and counts(credential, orders.generation):
            return AgentCaller(await proven(access, credential, orders.acceptance), orders)
    raise Unauthenticated("These credentials are not valid any more.", hint=FRESH_LINE)
