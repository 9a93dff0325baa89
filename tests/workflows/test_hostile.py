"""What a hostile reviewer tried. Each of these once hung, looped or lost something."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from centre import Centre, working

from edgewright.domain.cluster import Phase
from edgewright.errors import Stalled


def phase(expected: Phase) -> Any:
    def holds(row: Any) -> bool:
        return row.projection is not None and row.projection.phase is expected

    return holds


async def history_length(centre: Centre, cluster: UUID) -> int:
    described = await centre.handle(cluster).describe()
    return int(described.history_length)


class Faulty:
    """A port that behaves as the real one, but for what the test replaces."""

    def __init__(self, real: object, **replaced: Any) -> None:
        self._real = real
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name) or getattr(self._real, name)


async def test_a_deletion_that_is_blocked_after_its_deadline_rests(idle_centre: Centre) -> None:
    def archive(repository: UUID) -> None:
        raise Stalled("The repository is damaged.", code="repository_damaged")

    async with working(idle_centre, git=Faulty(idle_centre.git, archive=archive)):
        cluster = await idle_centre.create("blocked-late")
        await idle_centre.clusters.request_deletion(cluster, actor="token:test", deadline=timedelta(seconds=0))
        await idle_centre.ports.fleet.nudge(cluster)
        await idle_centre.until(cluster, lambda row: bool(row.projection and "damaged" in row.projection.waiting_for))
        await asyncio.sleep(1)
        before = await history_length(idle_centre, cluster)
        await asyncio.sleep(1.5)
        assert await history_length(idle_centre, cluster) == before


async def test_a_step_that_a_fence_refused_looks_again_by_itself(idle_centre: Centre) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()
    real = idle_centre.ports.accounts

    async def ensure(fence: Any, accounts: Any) -> None:
        entered.set()
        await go_on.wait()
        await real.ensure(fence, accounts)

    async with working(idle_centre, accounts=Faulty(real, ensure=ensure)):
        cluster = uuid4()
        await idle_centre.write(cluster, "overtaken")
        await entered.wait()
        # written by a gateway that dies before it nudges
        body = {"name": "overtaken", "namespace": "edgewright", "values": {"a": 1}}
        await idle_centre.clusters.write_configuration(cluster, body, actor="token:test")
        go_on.set()
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready), seconds=10)
        assert await history_length(idle_centre, cluster) < 200


async def test_as_many_labels_as_there_may_be_do_not_wedge_a_cluster(centre: Centre) -> None:
    cluster = await centre.create("labelled")
    labels = {f"example.org/label-number-{n}": "v" * 60 for n in range(64)}
    await centre.clusters.write_settings(cluster, {"labels": labels}, actor="token:test")
    await centre.ports.fleet.nudge(cluster)
    await centre.until(
        cluster, lambda row: bool(row.projection and row.projection.change_done == row.change), seconds=10
    )
