"""What a heartbeat says beside that the edge lives, as columns of its row and events about it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TypedDict
from uuid import UUID, uuid4

from sqlalchemy import bindparam, update

from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.edge_events import RoomColumns
from edgewright.adapters.database.rows.lease_rows import RenewedLease
from edgewright.adapters.database.tables import clusters
from edgewright.domain.conditions import clock_status
from edgewright.domain.events import EventKind, NewEvent
from edgewright.domain.identity import Chain
from edgewright.ports.edge_reports import Heartbeat

FETCHING_KEPT = timedelta(hours=1)
"""So long the files stay as they are, whatever an edge says: each change of it is a commit."""


class Fetching(TypedDict):
    """Whether the agent asks Flux to fetch, and since when."""

    asks_flux: bool | None
    asks_flux_since: datetime | None


class SaidChanges(Fetching):
    """Columns of ``clusters`` that a heartbeat tells of."""

    clock_offset: float | None
    observed_revision: str | None
    nonce: str | None
    nonce_breaks: int
    nonce_broken_at: datetime | None
    forked_at: datetime | None
    centre_url: str | None
    centre_ca: str | None
    centre_problem: str | None
    proven_url: str | None


class RenewalColumns(SaidChanges, RenewedLease, RoomColumns):
    """Parameters of ``RENEW``: the columns of ``clusters`` that a heartbeat changes, and whose heartbeat it is."""

    beating: UUID
    change: int
    news_at: datetime | None


RENEW = update(clusters).where(clusters.c.uuid == bindparam("beating"))


def said_columns(row: ClusterRecord, beat: Heartbeat, at: datetime) -> SaidChanges:
    """What the row says after a heartbeat; the same columns for each."""
    chain = chain_of(row)
    if beat.link is not None:
        chain = chain.with_link(beat.link, at, timedelta(seconds=row.lease_seconds))
    reach = beat.reach
    return {
        "clock_offset": row.clock_offset if beat.clock_offset is None else beat.clock_offset,
        "observed_revision": beat.observed_revision or row.observed_revision,
        "nonce": chain.nonce,
        "nonce_breaks": chain.breaks,
        "nonce_broken_at": chain.broken_at,
        "forked_at": chain.forked_at,
        "centre_url": row.centre_url if reach is None else reach.url,
        "centre_ca": row.centre_ca if reach is None else reach.ca_sha256,
        "centre_problem": row.centre_problem if reach is None else reach.problem,
        "proven_url": reach.url if reach is not None and beat.is_where_wanted else row.proven_url,
        **_fetching(row, beat, at),
    }


def _fetching(row: ClusterRecord, beat: Heartbeat, at: datetime) -> Fetching:
    before, since = row.asks_flux, row.asks_flux_since
    is_settled = since is not None and timedelta(0) <= at - since < FETCHING_KEPT
    if beat.asks_flux in (None, before) or is_settled:
        return {"asks_flux": before, "asks_flux_since": since}
    return {"asks_flux": beat.asks_flux, "asks_flux_since": at}


def is_news(row: ClusterRecord, beat: Heartbeat, said: SaidChanges) -> bool:
    """Whether the cluster's workflow wants to know."""
    return (
        said["observed_revision"] != row.observed_revision
        or clock_status(said["clock_offset"]) is not clock_status(row.clock_offset)
        or said["forked_at"] != row.forked_at
        or is_rendered_anew(row, beat, said)
    )


def is_rendered_anew(row: ClusterRecord, beat: Heartbeat, said: SaidChanges) -> bool:
    """Whether the generated files now need another URL or interval."""
    was_usual = row.proven_url is None and beat.is_usual
    moves = said["proven_url"] != row.proven_url and not was_usual
    return moves or bool(said["asks_flux"]) is not bool(row.asks_flux)


def events_of(row: ClusterRecord, said: SaidChanges) -> Iterator[NewEvent]:
    """Yields the events for the timeline."""
    if said["forked_at"] is not None and row.forked_at is None:
        yield _event(row, EventKind.EDGE_FORKED, f"{row.name}: {fork_sentence(said['forked_at'])}")
    if said["forked_at"] is None and row.forked_at is not None:
        yield _event(row, EventKind.EDGE_FORK_ENDED, f"Only one agent reports as {row.name} now.")
    if row.centre_url is not None and said["centre_url"] != row.centre_url:
        message = f"{row.name} now reaches the centre at {said['centre_url']} instead of {row.centre_url}."
        yield _event(row, EventKind.EDGE_MOVED, message)
    if bool(said["asks_flux"]) is not bool(row.asks_flux):
        yield _fetching_event(row, is_asked=bool(said["asks_flux"]))


def _fetching_event(row: ClusterRecord, *, is_asked: bool) -> NewEvent:
    if is_asked:
        return _event(
            row,
            EventKind.EDGE_FETCHING_ASKED,
            f"The agent of {row.name} now tells Flux to fetch as soon as there is a commit.",
        )
    message = (
        f"The agent of {row.name} may no longer tell Flux to fetch, so commits wait for Flux's own interval. "
        "A fresh bootstrap line restores the permission and its limits."
    )
    return _event(row, EventKind.EDGE_FETCHING_UNASKED, message)


def chain_of(row: ClusterRecord) -> Chain:
    """Returns the state of the edge's chain of heartbeats."""
    return Chain(row.nonce, row.nonce_breaks, row.nonce_broken_at, row.forked_at)


def fork_sentence(since: datetime) -> str:
    """Explains the two agents, and says what to do."""
    return (
        f"Two agents have reported with this cluster's identity since {since:%Y-%m-%dT%H:%M:%SZ}: a copy of its disk "
        "or virtual machine is running. Turn the copy off; the centre cannot tell which of the two it is."
    )


def _event(row: ClusterRecord, kind: EventKind, message: str) -> NewEvent:
    return NewEvent(
        id=uuid4(),
        cluster=row.uuid,
        actor="centre",
        kind=kind,
        message=message,
        detail={"generation": row.generation},
    )
