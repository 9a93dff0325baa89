"""How many workflows are told at once that something has changed: as many as the workers keep up with.

One that is told costs a worker and Temporal some 50 ms of a core. If ten thousand edges come back within minutes and
each is told at once, both cores of a small machine are taken for as long, heartbeats are not answered, leases expire,
and those are news again.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Collection, Iterable
from uuid import UUID

from edgewright.ports.cluster_directory import ClusterDirectory

AT_ONCE = 16
LATE = 4
"""So many of a portion may not have taken it when the next one is told: some wait for something for weeks."""
LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 5.0
"""After which the next portion is told all the same."""


async def paced(
    directory: ClusterDirectory, clusters: Iterable[UUID], *, seconds: float = math.inf
) -> AsyncIterator[list[UUID]]:
    """Yields the clusters in portions for the caller to nudge; each comes when the workflows of the one before have
    taken what they were told.

    Args:
        seconds: after which no more come; the sweep finds the rest.
    """
    now = asyncio.get_running_loop().time
    until, left = now() + seconds, list(dict.fromkeys(clusters))
    while left and now() < until:
        portion, left = left[:AT_ONCE], left[AT_ONCE:]
        yield portion
        if left:
            await _taken(directory, portion)


async def _taken(directory: ClusterDirectory, told: Collection[UUID]) -> None:
    now = asyncio.get_running_loop().time
    until = now() + PATIENCE_SECONDS
    while now() < until and len(await directory.unfinished(among=told)) > LATE:  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(LOOK_SECONDS)
