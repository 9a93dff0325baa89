"""A whole life on real servers: the database, the repositories, Temporal with its file, and a worker process."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from centre import WorkflowCentre, open_centre
from temporal_server import temporal_server

from edgewright.adapters.temporal.setup import prepare
from edgewright.ports.audit import Event
from tools.long_life.growth import Year, bytes_of, commits_of, file_bytes, repository_of, rows_of
from tools.long_life.histories import ContinuedRun, Histories
from tools.long_life.ledger import Ledger
from tools.long_life.life import LongLife
from tools.long_life.plan import LongLifePlan
from tools.long_life.shared_clock import SharedClock
from tools.long_life.worker_process import WorkerOrder, WorkerProcess

PAGE = 1000


@dataclass(frozen=True)
class Lived:
    """What a life leaves.

    Args:
        commits: all of the driving repository.
    """

    plan: LongLifePlan
    years: tuple[Year, ...]
    runs: tuple[ContinuedRun, ...]
    timeline: tuple[Event, ...]
    ledger: Ledger
    commits: frozenset[str]


async def live(folder: Path, plan: LongLifePlan, say: Callable[[Year], None] = lambda _year: None) -> Lived:
    """Lives all years in a folder of their own; ``say`` hears of each at its end. Leaves no process behind."""
    clock, worker, file = SharedClock(folder / "clock"), WorkerProcess(folder / "worker.log"), folder / "temporal.db"
    with temporal_server(folder / "temporal.log", db=file) as temporal:
        async with open_centre(folder, temporal, clock=clock) as centre:
            await prepare(centre.client, sweep_every=timedelta(seconds=plan.sweep_seconds))
            life = LongLife(centre, clock, plan)
            histories, years = Histories(centre.client, life.cluster), list[Year]()
            try:
                for number in range(1, plan.years + 1):
                    await _begin(number, plan, life, worker, folder, temporal)
                    for _ in range(plan.weeks):
                        await life.week()
                    await life.told()
                    years.append(await _look(number, years, centre, life, histories, worker, folder))
                    say(years[-1])
                timeline = await _timeline(centre, life)
                await worker.stop()
            finally:
                await worker.end()
            commits = commits_of(centre.git.folder(life.cluster))
    return Lived(plan, tuple(years), tuple(histories.ended), tuple(timeline), life.ledger, frozenset(commits))


async def _begin(
    number: int, plan: LongLifePlan, life: LongLife, worker: WorkerProcess, folder: Path, temporal: str
) -> None:
    """The first year begins with a worker and a cluster; some begin with another version of the worker."""
    order = WorkerOrder(
        folder=str(folder),
        temporal=temporal,
        renderer=1 + sum(upgrade <= number for upgrade in plan.upgrades),
        history_limit=plan.history_limit,
        upkeep_slots=plan.upkeep_slots,
        loose_limit=plan.loose_limit,
    )
    if number == 1:
        await worker.start(order)
        await life.begin()
    elif number in plan.upgrades:
        await worker.stop()
        await worker.start(order)
        await life.upgraded()


async def _look(
    number: int,
    before: list[Year],
    centre: WorkflowCentre,
    life: LongLife,
    histories: Histories,
    worker: WorkerProcess,
    folder: Path,
) -> Year:
    known = before[-1].runs if before else 0
    await histories.read()
    ended = histories.ended[known:]
    database = folder / "edgewright.db"
    return Year(
        number=number,
        events=histories.events,
        runs=len(histories.ended),
        longest_run=max((run.events for run in ended), default=0),
        largest_handover=max((run.handover for run in ended), default=0),
        rows=rows_of(database),
        table_bytes=bytes_of(database),
        database=file_bytes(database),
        temporal=file_bytes(folder / "temporal.db"),
        worker=worker.megabytes,
        repository=repository_of(centre.git.folder(life.cluster)),
    )


async def _timeline(centre: WorkflowCentre, life: LongLife) -> list[Event]:
    timeline: list[Event] = []
    while page := await centre.audit.timeline(
        life.cluster, after=timeline[-1].position if timeline else 0, limit=PAGE
    ):
        timeline += page
    return timeline


def kinds(lived: Lived) -> Counter[str]:
    """Events of the timeline by kind."""
    return Counter(event.kind for event in lived.timeline)
