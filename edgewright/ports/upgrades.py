"""Upgrades: admitted one by one, proven by what the edge says, given up when they are not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from edgewright.domain.upgrades import AgentTarget, Component, FluxTarget, Upgrade, UpgradeState


@dataclass(frozen=True)
class UpgradeWish:
    """What somebody wants of a cluster.

    Args:
        before: version that the edge reports; None: it does not.
        fallback: what the agent goes back to if it does not prove itself, or is called off; None: nobody knows.
        at_once: how many upgrades of all clusters may be under way with this one; None: any number.
        even_if_silent: admit it though the edge is not heard.
    """

    cluster: UUID
    target: AgentTarget | FluxTarget
    before: str | None = None
    fallback: AgentTarget | None = None
    at_once: int | None = None
    even_if_silent: bool = False

    @property
    def component(self) -> Component:
        """What is to be upgraded."""
        return Component.AGENT if isinstance(self.target, AgentTarget) else Component.FLUX


@dataclass(frozen=True)
class UpgradeFilter:
    """``after``: the opaque ``next`` of the page before; ``limit``: 1 to 500. None: whatever it is."""

    component: Component | None = None
    state: UpgradeState | None = None
    cluster: UUID | None = None
    after: str | None = None
    limit: int = 100


@dataclass(frozen=True)
class UpgradePage:
    """``next``: None at the end."""

    items: Sequence[Upgrade]
    next: str | None


class Upgrades(Protocol):
    """At most one is under way per cluster."""

    async def admit(self, wish: UpgradeWish, *, actor: str) -> tuple[Upgrade, bool]:
        """Makes a version the desired one of a cluster, in one transaction with its count and its event.

        Returns:
            The upgrade; False: the same one is under way already, or was the last one and has been proven.

        Raises:
            NotFound: ``cluster_unknown``, ``flux_release_unknown``; ``Gone``: ``cluster_deleted``.
            Conflict: ``deleting``, ``removed``, ``paused``, ``edge_not_attached``, ``edge_silent``,
                ``upgrade_under_way`` or ``upgrade_limit_reached``.
        """

    async def cancel(self, cluster: UUID, component: Component | None = None, *, actor: str) -> Upgrade:
        """Calls an upgrade off, in one transaction with its event; what the edge has proven by then stays.

        An agent goes back to what it was before, if that is known, and Flux to the release that the cluster was to
        have. A release that the edge has begun to apply stays there, for Flux goes forward only.

        Args:
            component: only an upgrade of this one; None: whichever is under way.

        Raises:
            NotFound: ``cluster_unknown``; ``Gone``: ``cluster_deleted``.
            Conflict: ``deleting``, ``removed`` or ``upgrade_not_under_way``.
        """

    async def under_way(self) -> Sequence[UUID]:
        """The clusters of which an upgrade is under way, sorted."""

    async def judge(self, cluster: UUID) -> bool:
        """Ends the upgrade of a cluster if it is proven, or has had its time; whether the cluster wants a nudge.

        An agent goes back to what it was before, if that is known. Time in which no gateway listened, the edge was
        not heard since the upgrade began, or its commit was not made, does not count.

        Raises:
            Stalled: code ``components_unreadable``.
        """

    async def drop_flux(self, sha256: str, *, actor: str) -> bool:
        """Drops a kept release of Flux, unless a cluster wants it or may go back to it; whether it was dropped.

        None that is dropped can be wanted afterwards: ``admit`` and this exclude each other.
        """

    async def page(self, filter_: UpgradeFilter) -> UpgradePage:
        """What is under way first, then the newest.

        Raises:
            Invalid: ``limit_invalid`` or ``after_invalid``.
        """
