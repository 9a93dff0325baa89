"""When an edge is told to go, and in which words."""

from api.agent_callers import AgentCaller
from api.schemas.edge import DetachOrder
from edgewright.domain.cluster import CredentialState, Desired, Order
from edgewright.errors import Conflict


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
