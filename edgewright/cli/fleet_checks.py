"""What `doctor` finds in the database about the fleet.

Moments in the future, a sweep that stands still, what a put-back has lost, edges that reach the centre elsewhere.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from sqlalchemy import select

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.tables import clusters
from edgewright.adapters.database.upkeep.presence import age_of_sweep
from edgewright.adapters.database.upkeep.stored_moments import moments_ahead
from edgewright.cli.checks import Check, CheckVerdict
from edgewright.cli.invocation import typed
from edgewright.domain.conditions import late_sweep
from edgewright.domain.reach import Door
from edgewright.ports.edge_reports import EdgeReports, Elsewhere
from edgewright.settings import Settings

MOST_NAMES = 20
"""In one sentence."""
_DOOR = "edges' way here"
_WAIT = "Keep the old URL and certificate answering: each edge moves by itself once the new way works."
_DRIFTED = (
    select(clusters.c.name)
    .where(clusters.c.drift.is_not(None), clusters.c.closed_at.is_(None))
    .order_by(clusters.c.name_key)
)


async def fleet_checks(database: Database, sweep_every: timedelta) -> AsyncIterator[Check]:
    """Only what is wrong: there is nothing to say of a fleet that is in order.

    Args:
        sweep_every: how often the sweep begins.
    """
    async with database.read(long=True) as connection:
        at = await database.now(connection)
        silence, ahead = await age_of_sweep(connection, at), await moments_ahead(connection, at)
        drifted = list(await connection.scalars(_DRIFTED))
    if silence is not None and silence >= late_sweep(sweep_every):
        fix = f"Is a worker running, and the schedule edgewright-sweep paused? `{typed('admin init')}` makes it anew."
        sentence = f"No round has ended for {silence.total_seconds():.0f} s: no lease expires, lost nudges stay lost."
        yield Check("sweep", CheckVerdict.WRONG, sentence, fix)
    if ahead:
        sentence = f"Moments in the future are stored, of {', '.join(ahead)}: a clock was wrong."
        fix = "The sweep takes them for now, but those of events stay. Let NTP keep the clock."
        yield Check("moments", CheckVerdict.WARNING, sentence, fix)
    if drifted:
        more = f" and {len(drifted) - MOST_NAMES} more" if len(drifted) > MOST_NAMES else ""
        named = f"{', '.join(drifted[:MOST_NAMES])}{more}"
        sentence = f"An earlier copy of the repository or the database was put back: {named}."
        fix = f"`{typed('cluster get')} NAME` says in the condition Drifted what is lost, and what to do."
        yield Check("drift", CheckVerdict.WRONG, sentence, fix)


async def door_checks(edge_reports: EdgeReports, settings: Settings) -> list[Check]:
    """Which edges reach the centre elsewhere than they should; none where no URL was set: there is nowhere to be."""
    try:
        door = settings.read_door()
    except (OSError, UnicodeDecodeError):
        return [
            Check(_DOOR, CheckVerdict.WRONG, "The CA bundle cannot be read.", "Correct its path, or the file's mode.")
        ]
    return [] if door is None else [_door_finding(door, await edge_reports.elsewhere(door))]


def _door_finding(door: Door, elsewhere: Sequence[Elsewhere]) -> Check:
    if elsewhere:
        shown = "; ".join(_elsewhere_line(each) for each in elsewhere[:MOST_NAMES])
        more = f"; and {len(elsewhere) - MOST_NAMES} more" if len(elsewhere) > MOST_NAMES else ""
        sentence = f"{len(elsewhere)} not known to reach {door.url} with its present certificates: {shown}{more}."
        return Check(_DOOR, CheckVerdict.WARNING, sentence, _WAIT)
    if door.is_settled:
        return Check(_DOOR, CheckVerdict.OK, f"All reach {door.url}.")
    fix = "Rename the settings EDGEWRIGHT_NEXT_…: they lose their NEXT. docs/operations.md says how."
    return Check(_DOOR, CheckVerdict.WARNING, f"All reach {door.url}, and the old way is not used any more.", fix)


def _elsewhere_line(each: Elsewhere) -> str:
    """One edge, with what is known of why."""
    if each.reach is None:
        return f"{each.name} (does not say)"
    heard = f", last heard {each.last_heard:%Y-%m-%d %H:%M}Z" if each.last_heard else ""
    problem = f": {each.reach.problem}" if each.reach.problem else ""
    return f"{each.name} (uses {each.reach.url}{heard}{problem})"
