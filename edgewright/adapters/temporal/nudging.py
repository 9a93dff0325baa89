"""Many clusters at once: what goes wrong with one of them stays with it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from uuid import UUID

import structlog

from edgewright.errors import EdgewrightError
from edgewright.ports.fleet import Fleet

log = structlog.get_logger("edgewright.fleet")

NUDGES_AT_ONCE = 32
MOST_FAILURES = 100
"""Clusters that may fail before the rest is left for later: each can take as long as a deadline."""
ROUNDS = 3
PAUSE_SECONDS = 0.5
"""Before those that have failed are nudged again; a server that has just started does not know all its parts yet."""


async def nudge_all(fleet: Fleet, clusters: Collection[UUID]) -> list[UUID]:
    """Nudges many clusters; returns those that could not be nudged, though Temporal answers.

    Raises:
        EdgewrightError: Temporal is away, or too many could not be nudged; some were not tried.
    """

    async def nudge(cluster: UUID) -> None:
        await fleet.nudge(cluster, bulk=True)

    left = list(clusters)
    for round_number in range(ROUNDS):
        left = await for_each(fleet, left, nudge)
        if not left:
            break
        if round_number < ROUNDS - 1:
            await asyncio.sleep(PAUSE_SECONDS)
    return left


async def for_each(fleet: Fleet, clusters: Collection[UUID], work: Callable[[UUID], Awaitable[None]]) -> list[UUID]:
    """Works for many clusters, several at a time: one by one, ten thousand take longer than a start may.

    Returns:
        The clusters for which it failed.

    Raises:
        EdgewrightError: see ``nudge_all``.
    """
    left = iter(clusters)
    failed: list[UUID] = []

    async def do_the_next() -> None:
        for cluster in left:
            try:
                await work(cluster)
            except EdgewrightError as trouble:
                failed.append(cluster)
                log.warning("cluster_failed", cluster=str(cluster), code=trouble.code, detail=trouble.detail)
                if len(failed) > MOST_FAILURES or not await fleet.healthy():
                    raise

    working = [asyncio.create_task(do_the_next()) for _ in range(NUDGES_AT_ONCE)]
    try:
        await asyncio.gather(*working)
    finally:
        for task in working:
            task.cancel()
    return failed
