"""What the setup status of a cluster says, inside a transaction that somebody else began."""

from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.config_store.entries import read_entry
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.domain.cluster import Desired
from edgewright.domain.wellknown import APP_CLUSTER_SETUP_STATUS


async def says_ready(connection: AsyncConnection, row: ClusterRecord) -> bool:
    """Whether the setup status was published in the commissioning that the row asks for.

    It is there a moment before the workflow has published that the cluster is ready, and after a moment it must not
    be withdrawn by an attempt that wakes late: withdrawing comes before publishing under one fence.
    """
    status = await read_entry(connection, APP_CLUSTER_SETUP_STATUS, row.uuid)
    if row.desired != Desired.PRESENT or status is None or not isinstance(status.body, Mapping):
        return False
    return bool(status.body.get("commissioning") == row.commissioning)
