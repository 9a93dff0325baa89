"""Which edges reach the centre elsewhere than they should."""

from collections.abc import Sequence

from sqlalchemy import exists, select

from edgewright.adapters.database.engine import Database
from edgewright.adapters.database.tables import clusters, credentials
from edgewright.domain.cluster import CredentialState, Desired, Role
from edgewright.domain.reach import Door, Reach
from edgewright.ports.edge_reports import Elsewhere

_ATTACHED = exists().where(
    credentials.c.cluster == clusters.c.uuid,
    credentials.c.generation == clusters.c.generation,
    credentials.c.role == Role.AGENT,
    credentials.c.state.in_([CredentialState.ACTIVE, CredentialState.PENDING]),
)


class EdgeReach:
    """The part of ``EdgeReports`` that a move of the centre is watched by."""

    _database: Database

    async def elsewhere(self, door: Door) -> Sequence[Elsewhere]:
        columns = clusters.c
        there = columns.centre_url.is_not_distinct_from(door.url) & columns.centre_ca.is_not_distinct_from(
            door.ca_sha256
        )
        statement = (
            select(
                *(columns.uuid, columns.name, columns.last_heard),
                *(columns.centre_url, columns.centre_ca, columns.centre_problem),
            )
            .where(columns.closed_at.is_(None), columns.desired == Desired.PRESENT, _ATTACHED, ~there)
            .order_by(columns.name_key)
        )
        async with self._database.read(long=True) as connection:
            rows = list(await connection.execute(statement))
        return [
            Elsewhere(
                row.uuid,
                row.name,
                None if row.centre_url is None else Reach(row.centre_url, row.centre_ca, row.centre_problem),
                row.last_heard,
            )
            for row in rows
        ]
