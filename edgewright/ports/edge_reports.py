"""What edges report: status, heartbeats, goodbyes; and the leases that follow from it."""

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
    """One sign of life.

    Args:
        clock_offset: seconds by which the edge's clock is ahead of ours; None: unknown.
        link: to the heartbeat before; None: the agent is of a version that does not say.
        reach: where it reaches the centre; None: as above.
        is_where_wanted: whether that is where the centre wants edges to reach it.
        is_usual: whether it has the URL that generated files name where nothing was proven.
        asks_flux: whether its Flux fetches when the agent asks; None: the agent does not say.
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
    """A cluster whose edge is not, or not surely, where the centre wants it. ``reach`` None: it does not say."""

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
        (a report is a sign of life) and the audit events. False: nothing differed, nothing was written but
        the lease.

        Args:
            certificate: facts and PEM of a certificate that was accepted; None keeps the one in use.
            certificate_problem: why the reported one was refused; the old one is kept, and the entry says that one.
            generation: of the reporting credential; None for an operator. ``Superseded`` if it is an old one.
            precondition: what the present entry has to be. ``PreconditionFailed`` if it is another one.
            proposes: the certificate is noted as proposed, and the one in use stays until somebody confirms it.

        Raises:
            TooMany: code ``edge_changes_too_often``: the edge has brought other certificates just before. What else
                it reports is taken, however often; the timeline tells how much of it has no event.
        """

    async def heartbeats(self, beats: Sequence[Heartbeat]) -> Sequence[UUID]:
        """Renews leases by the database's clock, in one transaction. Returns the clusters whose lease became
        current by it, or whose observed revision changed (their workflows want a nudge)."""

    async def keep_listening(self) -> None:
        """Says that a gateway listens now. A gap of more than 15 s starts a new listening period, and so does a
        moment in the future, which a wrong clock has left."""

    async def sweep_ended(self) -> None:
        """Says that a round of the sweep has done its work now."""

    async def sweep_age(self) -> timedelta | None:
        """For how long no round of the sweep has ended while a gateway was listening; None: none has listened."""

    async def mend_future(self) -> Sequence[str]:
        """Takes moments for now that a wrong clock has stored and that lie in the future: leases get one full lease
        of grace, what was published counts as unread, tokens live no longer than they were meant to, what rests is
        due. Returns what was found, in words; an event keeps its moment."""

    async def expire_leases(self) -> Sequence[UUID]:
        """Turns leases to expired whose time has passed while a gateway was listening; returns their clusters."""

    async def inventory_empty(self, cluster: UUID, generation: int) -> None:
        """The agent says that no workload is left."""

    async def goodbye(self, cluster: UUID, generation: int, purge: Purge | None = None) -> None:
        """The agent says that it has detached. ``purge``: what came of one; None: it does not say."""

    async def elsewhere(self, door: Door) -> Sequence[Elsewhere]:
        """Present clusters with an edge that has not said that it reaches the centre there; by name."""

    async def now(self) -> datetime:
        """The database's clock."""
