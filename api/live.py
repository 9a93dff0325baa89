"""What one gateway process holds in memory."""

import asyncio
from dataclasses import dataclass, field

from api.allowances import Allowance
from api.chart_values import ChartValues
from api.connections.places import Places
from api.event_streams import EventStreams
from api.gateway import Gateway
from api.heartbeats import HeartbeatBatch
from api.held_beats import HeldBeats
from api.metrics import Metrics
from api.nudges import Nudges
from api.scrape import Scrape
from api.searches import Searches
from api.wanted_revisions import WantedRevisions


@dataclass(frozen=True)
class Live:
    """The state of one process; nothing in it is needed after a crash.

    Args:
        closing: set when the process is told to end; long answers end then.
        edge_statuses, edge_secrets: what each cluster may report and register in a while.
        sessions: what each operator token or cluster may open: as each lives for an hour, 120 live at most.
        broken: names of background tasks that ended by a defect; `/readyz` shows them.
        unwritable: set while the last write to the database has failed that this process makes every few seconds.
    """

    nudges: Nudges
    heartbeats: HeartbeatBatch
    held_beats: HeldBeats
    wanted_revisions: WantedRevisions
    chart_values: ChartValues
    event_streams: EventStreams
    searches: Searches
    edge_statuses: Allowance
    edge_secrets: Allowance
    sessions: Allowance
    places: Places
    metrics: Metrics
    scrape: Scrape
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    broken: set[str] = field(default_factory=set)
    unwritable: asyncio.Event = field(default_factory=asyncio.Event)


def live_of(gateway: Gateway) -> Live:
    """The empty state of a gateway that starts."""
    nudges = Nudges(gateway.fleet, gateway.directory)
    heartbeats = HeartbeatBatch(gateway.ports.edge_reports, nudges)
    places = Places(gateway.connections, gateway.metrics)
    wanted_revisions, closing = WantedRevisions(gateway.ports.git), asyncio.Event()
    held_beats = HeldBeats(
        gateway.ports.audit,
        stamp=gateway.change_stamp,
        charts=wanted_revisions.charts,
        room=gateway.connections.waiting_edges,
        closing=closing,
    )
    return Live(
        nudges=nudges,
        heartbeats=heartbeats,
        held_beats=held_beats,
        wanted_revisions=wanted_revisions,
        chart_values=ChartValues(gateway.ports.config, gateway.ports.git, gateway.offer.external_url),
        event_streams=EventStreams(),
        searches=Searches(),
        edge_statuses=Allowance(
            burst=30,
            per_second=1,
            code="status_too_often",
            sentence="This cluster reports its status too often.",
        ),
        edge_secrets=Allowance(
            burst=30,
            per_second=1 / 30,
            code="credentials_too_often",
            sentence="This cluster registers new credentials too often.",
        ),
        sessions=Allowance(
            burst=60,
            per_second=1 / 60,
            code="sessions_too_often",
            sentence="This caller opens sessions too often; one lives for an hour and can be used again.",
        ),
        places=places,
        metrics=gateway.metrics,
        scrape=Scrape(
            metrics=gateway.metrics,
            census=gateway.ports.census,
            fleet=gateway.fleet,
            heartbeats=heartbeats,
            held_beats=held_beats,
            places=places,
        ),
        closing=closing,
    )
