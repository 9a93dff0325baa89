"""Reports from edges (status, heartbeats, goodbyes), and the leases that follow from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from edgewright.domain.cluster import CertificateFacts
from edgewright.domain.ended import Purge
from edgewright.domain.identity import Link
from edgewright.domain.reach import Door, Reach
from edgewright.ports.clusters import Once
from edgewright.ports.config_store import ALWAYS, Precondition


@dataclass(frozen=True)
class Heartbeat:
    """One heartbeat.

    Args:
        clock_offset: seconds by which the edge's clock is ahead of the centre's; None: unknown.
        link: to the previous heartbeat; None: this version of the agent does not report it.
        reach: where the edge reaches the centre; None: as above.
        is_where_wanted: whether that is where the centre wants edges to reach it.
        is_usual: whether that is the URL that generated files use by default.
        asks_flux: whether its Flux fetches when the agent asks; None: the agent does not report it.
    """

    cluster: UUID
    generation: int
    clock_offset: float | None = None
    observed_revision: str | None = None
    link: Link | None = None
    reach: Reach | None = None
    is_where_wanted: bool = False
    is_usual: bool = False
    asks_flux: bool | None = None


@dataclass(frozen=True)
class Elsewhere:
    """A cluster whose edge may reach the centre by another URL than wanted. ``reach`` None: it does not report it."""

    cluster: UUID
    name: str
    reach: Reach | None
    last_heard: datetime | None


class EdgeReports(Protocol):
    async def write_status(
        self,
        cluster: UUID,
        body: Mapping[str, Any],
        *,
        certificate: tuple[CertificateFacts, str] | None,
        certificate_problem: str | None,
        generation: int | None,
        actor: str,
        precondition: Precondition = ALWAYS,
        proposes: bool = False,
        once: Once | None = None,
    ) -> bool:
        """Writes the *Edge cluster status* entry in one transaction with the certificate in use, the lease
        (a report renews it) and the audit events. False: nothing differed, so only the lease was written.

        Args:
            certificate: facts and PEM of an accepted certificate; None keeps the one in use.
            certificate_problem: why the reported one was refused; the previous one stays in use and in the entry.
            generation: of the reporting credential; None for an operator. ``Superseded`` if it is an old one.
            precondition: what the present entry must be. ``PreconditionFailed`` if it is another one.
            proposes: records the certificate as proposed; the one in use stays until somebody confirms it.

        Raises:
            TooMany: code ``edge_changes_too_often``: the edge has just changed its certificate. Its other reports are
                accepted, however often; the timeline says how many of them have no event.
        """

    async def heartbeats(self, beats: Sequence[Heartbeat]) -> Sequence[UUID]:
        """Renews leases by the database's clock, in one transaction. Returns the clusters whose lease became
        current by it, or whose observed revision changed (their workflows want a nudge)."""

    async def keep_listening(self) -> None:
        """Records that a gateway is listening. A gap of more than 15 s starts a new listening period, and so does a
        stored time in the future, which comes from a wrong clock."""

    async def sweep_ended(self) -> None:
        """Records that a round of the sweep has just finished."""

    async def sweep_age(self) -> timedelta | None:
        """Returns for how long no round of the sweep has ended while a gateway was listening; None: none listened."""

    async def mend_future(self) -> Sequence[str]:
        """Replaces stored times in the future, which come from a wrong clock, by the present time: leases get one
        full lease of grace, publications count as unread, tokens live no longer than intended, and pauses end.
        Returns what was found, in words. Events keep their times."""

    async def expire_leases(self) -> Sequence[UUID]:
        """Expires leases whose time has passed while a gateway was listening; returns their clusters."""

    async def inventory_empty(self, cluster: UUID, generation: int) -> None:
        """Records the agent's report that no workload is left."""

    async def goodbye(self, cluster: UUID, generation: int, purge: Purge | None = None) -> None:
        """Records the agent's report that it has detached. ``purge``: the result of a purge; None: not reported."""

    async def elsewhere(self, door: Door) -> Sequence[Elsewhere]:
        """Returns present clusters whose edge has not reported that it reaches the centre there, by name."""

    async def now(self) -> datetime:
        """Returns the time by the database's clock."""
