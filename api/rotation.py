"""Which credentials the edge of a cluster is asked to replace, and who asks: an operator, or their age."""

from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

from api.agent_callers import AgentCaller
from edgewright.domain.cluster import CredentialState, Desired, Role
from edgewright.errors import Conflict
from edgewright.ports.edge_access import Credential, EdgeAccess

AGE_SPREAD = 0.1
"""Credentials get up to this part older than they should, each cluster's another: a fleet that was attached in one
week is not asked in one minute."""
ROUND, TURN = timedelta(hours=25), timedelta(hours=1)
"""What is too old is asked for in one such hour of each round, each cluster in another: a fleet that is too old all
at once, because the setting was changed, is not asked at once. A round is no whole day: an edge that calls at one
time of day only must have its turn, too."""

_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


async def wanted_rotations(
    edge_access: EdgeAccess, agent: AgentCaller, *, flux_sha256: bytes | None, oldest: timedelta | None
) -> list[Role]:
    """The roles whose credential the edge should replace by a new one.

    What an edge uses and has no right to here is replaced, too: a backup of the centre may be older than it. A
    successor that is registered and was not used yet is waited for.

    Args:
        agent: whose credential is active.
        flux_sha256: of the secret that Flux uses there; None: the agent does not say, and cannot replace it.
        oldest: how old a credential gets; None: of any age.
    """
    active = {agent.credential}
    wanted = set()
    if flux_sha256 is not None:
        known = [
            each
            for each in agent.orders.credentials
            if each.role is Role.FLUX and each.generation == agent.generation
        ]
        used = next((each for each in known if each.secret_sha256 == flux_sha256), None)
        if used is None and any(each.state is CredentialState.ACTIVE for each in known):
            wanted.add(Role.FLUX)
        if used is not None and used.state is CredentialState.ACTIVE:
            active.add(used)
    wanted |= {each.role for each in active if each.rotation_asked_at is not None}
    if oldest is not None and agent.orders.desired is Desired.PRESENT:
        old = {each.role for each in active if _is_too_old(each, oldest)} - wanted
        if old and await _ask(edge_access, agent.cluster, old, oldest):
            wanted |= old
    return sorted(wanted)


async def _ask(edge_access: EdgeAccess, cluster: UUID, roles: Collection[Role], oldest: timedelta) -> bool:
    """Whether it could be asked: the cluster may have changed since it was read."""
    reason = f"They are older than {oldest.days} days."
    with suppress(Conflict):
        await edge_access.ask_rotation(cluster, roles, actor="centre", reason=reason)
        return True
    return False


def _is_too_old(credential: Credential, longest: timedelta) -> bool:
    """By the gateway's clock."""
    now = datetime.now(UTC)
    is_old = now - credential.created_at > age_limit(credential.cluster, longest)
    return is_old and has_its_turn(credential.cluster, now)


def age_limit(cluster: UUID, longest: timedelta) -> timedelta:
    """How old credentials of that cluster get: ``longest``, and up to ``AGE_SPREAD`` of it more."""
    return longest * (1 + AGE_SPREAD * (cluster.int % 1000) / 1000)


def has_its_turn(cluster: UUID, now: datetime) -> bool:
    """Whether this is the hour in which that cluster is asked."""
    phase = timedelta(seconds=cluster.int % int(ROUND.total_seconds()))
    return (now - _EPOCH + phase) % ROUND < TURN
