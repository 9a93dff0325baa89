"""What `doctor` says of stored values that the chart of their cluster does not take any more.

Such values are as they were before the chart was changed: the next release of it fails on the edge, which keeps the
one that it has.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import select

from edgewright.adapters.charts.misfits import Misfit
from edgewright.adapters.charts.schemas import ChartSchemas
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.tables import clusters
from edgewright.application.rendering import Templates, read_templates
from edgewright.cli.checks import Check, CheckVerdict
from edgewright.domain.cluster import Desired
from edgewright.domain.cluster_entries import spec_from
from edgewright.domain.rendering import ChartRelease, releases_of_shared_charts
from edgewright.errors import EdgewrightError
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.git_server import GitServer

NAME, SCHEMA_NAME = "values of charts", "schemas of charts"
MOST_NAMES = 20
"""In one sentence."""
MOST_SECONDS = 30.0
"""After which the clusters that are left are not looked at."""
_PORTION = 100
_FIX = 'Correct the values of these clusters; docs/troubleshooting.md, "The values do not fit the chart", says how.'


class _Stored(NamedTuple):
    uuid: UUID
    name: str
    spec: dict[str, Any]


class _Verdicts:
    """Judges one cluster after the other; charts and templates are read once."""

    def __init__(self, config: ConfigStore, git: GitServer, external_url: str) -> None:
        self._config = config
        self._url = external_url
        self._charts = ChartSchemas(git)
        self._templates: dict[Any, Templates | None] = {}
        self.misfits: list[str] = []
        self.unchecked: set[str] = set()

    async def add(self, portion: Sequence[_Stored]) -> None:
        for chart in {stored.spec.get("chart") for stored in portion} - self._templates.keys():
            self._templates[chart] = await self._read(chart)
        await asyncio.to_thread(self._look_at, portion)

    async def _read(self, chart: str | None) -> Templates | None:
        """None: a template is missing, and Blocked says so."""
        try:
            return await read_templates(self._config, UUID(chart) if chart else None)
        except EdgewrightError:
            return None

    def _look_at(self, portion: Sequence[_Stored]) -> None:
        for stored in portion:
            for verdict in self._charts.verdicts(self._releases(stored)):
                if isinstance(verdict, Misfit):
                    self.misfits.append(f"{stored.name} ({verdict.sentence.rstrip('.')})")
                else:
                    self.unchecked.add(f"{verdict.chart}: {verdict.reason}")

    def _releases(self, stored: _Stored) -> Sequence[ChartRelease]:
        """None where nothing can be rendered: Blocked says why."""
        templates = self._templates[stored.spec.get("chart")]
        if templates is None:
            return ()
        try:
            return releases_of_shared_charts(templates.input_for(stored.uuid, spec_from(stored.spec), self._url))
        except EdgewrightError:
            return ()


async def values_checks(
    database: Database, config: ConfigStore, git: GitServer, external_url: str
) -> AsyncIterator[Check]:
    """Only what is wrong, or could not be seen."""
    verdicts, until, left = _Verdicts(config, git, external_url), time.monotonic() + MOST_SECONDS, 0
    async for portion in _portions(database):
        if time.monotonic() < until:
            await verdicts.add(portion)
        else:
            left += len(portion)
    for check in _findings(verdicts, left):
        yield check


def _findings(verdicts: _Verdicts, left: int) -> Iterator[Check]:
    if verdicts.misfits:
        sentence = f"The chart does not take them, so the next release fails: {_named(verdicts.misfits)}"
        yield Check(NAME, CheckVerdict.WRONG, sentence, _FIX)
    if left:
        sentence = f"Those of {left} more clusters were not looked at: it took more than {MOST_SECONDS:.0f} s."
        yield Check(NAME, CheckVerdict.WARNING, sentence, "Run it again when the machine has less to do.")
    if verdicts.unchecked:
        told = " ".join(sorted(verdicts.unchecked)[:MOST_NAMES])
        fix = "Correct values.schema.json of the chart in shared/helm-charts."
        yield Check(SCHEMA_NAME, CheckVerdict.WARNING, f"Values are stored unchecked. {told}", fix)


def _named(found: Sequence[str]) -> str:
    more = f"; and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
    return f"{'; '.join(found[:MOST_NAMES])}{more}."


async def _portions(database: Database) -> AsyncIterator[Sequence[_Stored]]:
    """Clusters that are to be there, by name; some at a time, as values may be large."""
    present = (clusters.c.closed_at.is_(None), clusters.c.desired == Desired.PRESENT)
    async with database.read() as connection:
        found = list(await connection.scalars(select(clusters.c.uuid).where(*present).order_by(clusters.c.name_key)))
    for first in range(0, len(found), _PORTION):
        these = clusters.c.uuid.in_(found[first : first + _PORTION])
        query = select(clusters.c.uuid, clusters.c.name, clusters.c.spec).where(these).order_by(clusters.c.name_key)
        async with database.read() as connection:
            rows = await connection.execute(query)
            portion = [_Stored(row.uuid, row.name, row.spec) for row in rows]
        yield portion
