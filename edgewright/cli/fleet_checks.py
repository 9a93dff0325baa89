"""What `doctor` finds in the database: moments in the future, a sweep that stands still, what a put-back has lost."""

from collections.abc import AsyncIterator
from datetime import timedelta

from sqlalchemy import select

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.tables import clusters
from edgewright.adapters.database.upkeep.presence import age_of_sweep
from edgewright.adapters.database.upkeep.stored_moments import moments_ahead
from edgewright.cli.checks import Check, CheckVerdict
from edgewright.cli.invocation import typed
from edgewright.domain.conditions import late_sweep

MOST_NAMES = 20
"""In one sentence."""
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
