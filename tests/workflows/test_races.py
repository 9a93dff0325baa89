"""Two wishes at once, at seeded moments of each other: one of the two orders holds, and nothing is in between."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually
from cluster_states import at_phase, is_told, kinds, stage, states

from edgewright.domain.cluster import Desired, Phase
from edgewright.domain.wellknown import APP_CLUSTER_SETUP_STATUS, APP_GIT_REPOSITORY, APP_SPARKPLUG_ADDRESS
from edgewright.errors import Conflict, Gone, NotFound, Superseded
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.secret_staging import StagedState

SEEDS = range(3)
LATEST = 0.4
"""Seconds that a wish may come after the other; a commissioning takes about as long here."""

Wish = Callable[[], Awaitable[object]]


async def collide(centre: WorkflowCentre, cluster: UUID, seed: int, *wishes: Wish) -> list[type[Exception] | None]:
    """Makes the wishes, each at a moment drawn from the seed, and nudges after each; returns who was refused how."""
    moments = random.Random(seed)
    delays = [moments.uniform(0, LATEST) for _ in wishes]

    async def one(delay: float, wish: Wish) -> type[Exception] | None:
        await asyncio.sleep(delay)
        try:
            await wish()
        except (Conflict, NotFound, Superseded) as refusal:
            return type(refusal)
        await centre.fleet.nudge(cluster)
        return None

    return list(await asyncio.gather(*map(one, delays, wishes)))


def is_current(row: ClusterRow) -> bool:
    return row.projection is not None and row.projection.change_done == row.change


async def nothing_central_is_left(centre: WorkflowCentre, cluster: UUID) -> None:
    row = await centre.until(cluster, at_phase(Phase.DELETED), seconds=60)
    assert row.closed
    assert not await asyncio.to_thread(centre.git.exists, cluster)
    for app in (APP_CLUSTER_SETUP_STATUS, APP_GIT_REPOSITORY, APP_SPARKPLUG_ADDRESS):
        assert await centre.ports.config.get(app, cluster) is None
    assert (await kinds(centre, cluster)).count("cluster.deleted") == 1


@pytest.mark.parametrize("seed", SEEDS)
async def test_delete_during_create(centre: WorkflowCentre, seed: int) -> None:
    cluster = uuid4()
    await centre.write(cluster, f"create-delete-{seed}")
    await collide(centre, cluster, seed, lambda: centre.wishes.request_deletion(cluster, actor="token:test"))
    await nothing_central_is_left(centre, cluster)


@pytest.mark.parametrize("seed", SEEDS)
async def test_recreate_during_delete(centre: WorkflowCentre, seed: int) -> None:
    """The recreation is refused, or comes first and is deleted with all the rest; never half of each."""
    cluster = await centre.create(f"delete-recreate-{seed}")
    refusals = await collide(
        centre,
        cluster,
        seed,
        lambda: centre.wishes.request_deletion(cluster, actor="token:test"),
        lambda: centre.wishes.request_recreation(cluster, new_hardware=True, actor="token:test"),
    )
    assert refusals[0] is None
    assert refusals[1] in {None, Conflict, NotFound, Gone}
    await nothing_central_is_left(centre, cluster)


@pytest.mark.parametrize("seed", SEEDS)
async def test_change_during_change(centre: WorkflowCentre, seed: int) -> None:
    """The last one that was written is what is delivered, and each intended commit is there at most once."""
    cluster = await centre.create(f"change-change-{seed}")
    name = f"change-change-{seed}"
    await collide(
        centre,
        cluster,
        seed,
        *(lambda replicas=n: centre.write(cluster, name, values={"replicas": replicas}) for n in range(1, 5)),
    )
    row = await centre.until(cluster, is_current, seconds=60)
    await eventually(lambda: is_told(centre, cluster))
    commits = await asyncio.to_thread(centre.git.log, cluster, limit=50)
    fences = [
        line for commit in commits for line in commit.message.splitlines() if line.startswith("Edgewright-Fence")
    ]
    assert len(set(fences)) == len(fences), "one commit for each change at most"
    assert 2 <= len(commits) <= 5
    row = await centre.row(cluster)
    assert row.projection
    assert row.projection.done.rendered_digest
    files = await asyncio.to_thread(centre.git.list, cluster, "edo/cluster", at=commits[0].commit)
    head = b"".join([centre.git.read(cluster, path, at=commits[0].commit) or b"" for path in files])
    assert f"replicas: {row.spec.values['replicas']}".encode() in head


@pytest.mark.parametrize("seed", SEEDS)
async def test_removal_during_a_move_to_new_hardware(centre: WorkflowCentre, seed: int) -> None:
    cluster = await centre.create(f"move-remove-{seed}")
    await collide(
        centre,
        cluster,
        seed,
        lambda: centre.wishes.request_recreation(cluster, new_hardware=True, actor="token:test"),
        lambda: centre.wishes.request_removal(cluster, actor="token:test"),
    )
    row = await centre.until(cluster, is_current, seconds=60)
    await eventually(lambda: is_told(centre, cluster))
    row = await centre.row(cluster)
    assert row.projection
    wanted = {Desired.PRESENT: Phase.AWAITING_BOOTSTRAP, Desired.REMOVED: Phase.REMOVED}[row.desired]
    assert row.projection.phase is wanted
    status = await centre.ports.config.get(APP_CLUSTER_SETUP_STATUS, cluster)
    assert (status is not None) is (row.desired is Desired.PRESENT)


@pytest.mark.parametrize("seed", SEEDS)
async def test_secret_during_deletion(centre: WorkflowCentre, seed: int) -> None:
    """The secret is committed before the repository is archived, or refused in words; it does not wait for ever."""
    cluster = await centre.create(f"secret-delete-{seed}")
    change = await stage(centre, cluster, "late")
    await collide(
        centre,
        cluster,
        seed,
        lambda: centre.wishes.request_deletion(cluster, actor="token:test"),
        lambda: centre.fleet.nudge(cluster),
    )
    await nothing_central_is_left(centre, cluster)

    async def settled() -> bool:
        return not (await states(centre, [change]))[StagedState.STAGED]

    await eventually(settled)
