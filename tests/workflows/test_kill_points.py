"""A worker that is killed goes on where it was, and nothing is doubled.

Each worker in a chain recovers from the death before it and then meets its own. *Recorded* is the moment at which the
next activity begins, so a chain of (before, after) covers it for every step but the last.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import pytest
from centre import WorkflowCentre, eventually, open_centre, working
from cluster_states import has_commits, staged
from free_ports import free_port
from killable_worker import Death, KillableWorker, dying_in_turn, killable_worker
from resealing_edge import ResealingEdge, ask, certify, to_put
from resealing_edge import answer as hand_in_resealed
from temporal_server import temporal_server

from edgewright.domain.cluster import CredentialState, Order, Phase, StepName
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.lifecycle import CENTRAL_DELETION, COMMISSIONING
from edgewright.domain.wellknown import (
    APP_CLUSTER_CONFIGURATION,
    APP_CLUSTER_SETUP_STATUS,
    APP_CLUSTER_STATUS,
    APP_GIT_REPOSITORY,
    APP_SPARKPLUG_ADDRESS,
)
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.fleet import FleetUnavailable
from edgewright.ports.secret_staging import StagedState
from edgewright.sealing import read_values

pytestmark = pytest.mark.timeout(300)

CENTRAL_ENTRIES = (APP_CLUSTER_SETUP_STATUS, APP_SPARKPLUG_ADDRESS, APP_GIT_REPOSITORY)


def chain(*activities: str) -> list[Death]:
    """Before and after the effect of each."""
    return [Death(name, point) for name in activities for point in ("before", "after")]


BEGINNING = "read_and_commission"
COMMISSIONING_DEATHS = [Death(BEGINNING, "before"), *chain("read_wanted", *COMMISSIONING, "publish")]
CHANGE_DEATHS = chain("read_wanted", StepName.POPULATE_REPOSITORY, StepName.PUBLISH_STATUS, "publish")
SECRET_DEATHS = [*chain("commit_secrets"), Death("commit_secrets", "recorded")]
REMOVAL_DEATHS = chain(StepName.SUSPEND_CREDENTIALS, StepName.WITHDRAW_STATUS)
NEW_HARDWARE_DEATHS = chain(StepName.WITHDRAW_STATUS, StepName.WITHDRAW_SECRETS)
DELETION_DEATHS = [
    *chain(StepName.BEGIN_DELETION, StepName.REMOVE_WORKLOADS),
    Death(StepName.REMOVE_WORKLOADS, "recorded"),
    *chain(*CENTRAL_DELETION),
    Death(StepName.REMOVE_SETUP_STATUS, "recorded"),
    *chain("publish"),
]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillableWorker]:
    """One zygote for the whole table."""
    with killable_worker(tmp_path_factory.mktemp("worker") / "worker.log") as worker:
        yield worker


@dataclass
class Stage:
    """A centre whose worker is one that can be killed."""

    centre: WorkflowCentre
    worker: KillableWorker
    folder: Path
    temporal: str

    def deaths(self, deaths: Sequence[Death]) -> AbstractAsyncContextManager[None]:
        return dying_in_turn(self.worker, self.folder, self.temporal, deaths)


@pytest.fixture
async def stage(
    idle_centre: WorkflowCentre, worker: KillableWorker, temporal: str, tmp_path: Path
) -> AsyncIterator[Stage]:
    """A centre with a worker at work."""
    await worker.start(tmp_path, temporal)
    yield Stage(idle_centre, worker, tmp_path, temporal)
    await worker.kill()


async def settled(centre: WorkflowCentre, cluster: UUID) -> ClusterRow:
    """The row, once the cluster is ready and its workflow has told everything that it knows."""

    async def nothing_left_to_tell() -> bool:
        row = await centre.row(cluster)
        with suppress(FleetUnavailable):
            return row.projection == await centre.fleet.readiness(cluster)
        return False

    await centre.until(
        cluster,
        lambda row: bool(row.projection and row.projection.change_done == row.change and row.projection.ready),
        seconds=100,
    )
    await eventually(nothing_left_to_tell)
    return await centre.row(cluster)


async def steps_done(centre: WorkflowCentre, cluster: UUID) -> Counter[str]:
    """How often the timeline tells of each step."""
    told = [event for event in await centre.audit.timeline(cluster) if event.kind == "step.done"]
    return Counter(str(event.detail["step"]) for event in told)


async def doubled(centre: WorkflowCentre, cluster: UUID) -> dict[tuple[str, str], int]:
    """Events of the timeline that say the same thing more than once; a step is told of apart."""
    told = Counter(
        (event.kind, event.message)
        for event in await centre.audit.timeline(cluster)
        if event.kind not in {"step.done", "phase.changed"}
    )
    return {event: number for event, number in told.items() if number > 1}


async def phases(centre: WorkflowCentre, cluster: UUID) -> list[str]:
    return [
        str(event.detail["phase"]) for event in await centre.audit.timeline(cluster) if event.kind == "phase.changed"
    ]


async def revisions(centre: WorkflowCentre, app: UUID, cluster: UUID) -> int:
    """How often an entry was written, deletions included; the feed keeps what is newest, so revisions are counted."""
    changes = await centre.ports.config.changes(after=0)
    return sum(1 for change in changes if (change.app, change.object) == (app, cluster))


async def commits(centre: WorkflowCentre, cluster: UUID) -> int:
    return len(await asyncio.to_thread(centre.git.log, cluster, limit=100))


async def is_commissioned_once(centre: WorkflowCentre, cluster: UUID) -> None:
    """Everything central is there, and there once; judged by the stores alone."""
    assert await commits(centre, cluster) == 1
    assert len(await centre.ports.accounts.of_cluster(cluster)) == 2
    for app in CENTRAL_ENTRIES:
        assert await revisions(centre, app, cluster) == 1
    assert await steps_done(centre, cluster) == dict.fromkeys(COMMISSIONING, 1)
    assert await doubled(centre, cluster) == {}
    assert await phases(centre, cluster) == [Phase.AWAITING_BOOTSTRAP]


async def test_commissioning_survives_a_death_at_every_point(stage: Stage) -> None:
    centre = stage.centre
    cluster = uuid4()
    async with stage.deaths(COMMISSIONING_DEATHS):
        await centre.write(cluster, "killed")
    await settled(centre, cluster)
    repositories = [folder for folder in centre.git.root.iterdir() if str(cluster) in folder.name]
    assert len(repositories) == 1
    await is_commissioned_once(centre, cluster)


@pytest.mark.parametrize("step", [*COMMISSIONING, BEGINNING])
async def test_commissioning_survives_a_death_amid_steps_that_run_in_one_go(stage: Stage, step: str) -> None:
    """The chain above meets only its first death in them: what was cut off is tried step by step."""
    centre, cluster = stage.centre, uuid4()
    async with stage.deaths([Death(step, "after")]):
        await centre.write(cluster, "cut-off")
    await settled(centre, cluster)
    await is_commissioned_once(centre, cluster)


async def test_a_change_survives_a_death_at_every_point(stage: Stage) -> None:
    centre = stage.centre
    cluster = await centre.create("changed")
    async with stage.deaths(CHANGE_DEATHS):
        await centre.write(cluster, "changed", values={"replicas": 3})
        await eventually(lambda: has_commits(centre, cluster, 2))
    row = await settled(centre, cluster)
    assert row.projection and row.projection.done.rendered_digest
    assert await commits(centre, cluster) == 2
    assert await steps_done(centre, cluster) == {
        **dict.fromkeys(COMMISSIONING, 1),
        StepName.POPULATE_REPOSITORY: 2,
        StepName.PUBLISH_STATUS: 2,
    }
    assert await doubled(centre, cluster) == {}


async def all_committed(centre: WorkflowCentre, requests: Sequence[UUID]) -> bool:
    rows = [row for request in requests for row in await centre.ports.staging.request(request)]
    return all(row.state is StagedState.COMMITTED for row in rows)


async def test_secrets_survive_a_death_at_every_point(stage: Stage) -> None:
    centre = stage.centre
    cluster = await centre.create("secretive")
    await stage.worker.kill()  # or it may commit the first before the others are staged
    changes = [staged(cluster, "db", f"key-{number}") for number in range(3)]
    for change in changes:
        await centre.ports.staging.stage([change])
    requests = [change.request for change in changes]
    async with stage.deaths(SECRET_DEATHS):
        await centre.fleet.nudge(cluster)
        await eventually(lambda: all_committed(centre, requests), seconds=60)
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    document = await asyncio.to_thread(centre.git.read, cluster, SecretReference("default", "db").path, at=head)
    assert document and set(read_values(document)) == {"key-0", "key-1", "key-2"}
    assert await commits(centre, cluster) == 2
    assert {row.commit for r in requests for row in await centre.ports.staging.request(r)} == {head}
    assert await doubled(centre, cluster) == {}
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.desired_revision == head))
    await settled(centre, cluster)


async def test_a_resealing_survives_a_death_at_every_point(stage: Stage) -> None:
    centre = stage.centre
    cluster = await centre.create("re-sealed")
    edge = ResealingEdge(centre.git, cluster)
    secrets = [f"default/s{number}" for number in range(5)]
    await certify(centre, cluster, 1)
    changes = [to_put(cluster, secret, {"k": secret.encode()}, 1) for secret in secrets]
    await asyncio.gather(*(centre.ports.staging.stage(each) for each in changes))
    await centre.fleet.change_secrets(cluster, [each[0].request for each in changes])
    before = await commits(centre, cluster)
    await certify(centre, cluster, 2)
    await ask(centre, cluster)
    await stage.worker.kill()
    await hand_in_resealed(centre, edge)
    [request] = {change.request for change in (await centre.ports.staging.pending(cluster)).changes}
    async with stage.deaths(SECRET_DEATHS):
        await eventually(lambda: all_committed(centre, [request]), seconds=60)
    edge.keys = [2]
    assert {secret: edge.opened(secret) for secret in secrets} == {s: {"k": s.encode()} for s in secrets}
    assert await commits(centre, cluster) == before + 1
    told = [event.kind for event in await centre.audit.timeline(cluster)]
    assert [
        told.count(kind) for kind in (EventKind.RESEAL_ASKED, EventKind.SECRET_RESEALED, EventKind.RESEAL_ENDED)
    ] == [1, 1, 1]
    row = await settled(centre, cluster)
    assert row.projection and row.projection.resealing is None


async def answer_as_the_edge(centre: WorkflowCentre, cluster: UUID) -> None:
    """Does what the agent does while its cluster is deleted."""
    generation = (await centre.row(cluster)).generation
    for order, answer in (
        (Order.REPORT_EMPTY, centre.ports.edge_reports.inventory_empty),
        (Order.DETACH, centre.ports.edge_reports.goodbye),
    ):
        await centre.until(cluster, is_asked(order), seconds=60)
        await answer(cluster, generation)
        await centre.fleet.nudge(cluster)


def is_asked(order: Order) -> Callable[[ClusterRow], bool]:
    return lambda row: row.projection is not None and row.projection.order is order


async def test_a_deletion_survives_a_death_at_every_point(stage: Stage) -> None:
    centre = stage.centre
    cluster = await centre.create("ending")
    await centre.bootstrap(cluster)
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.phase == Phase.ACTIVE))
    async with stage.deaths(DELETION_DEATHS):
        await centre.wishes.request_deletion(cluster, actor="token:test")
        await centre.fleet.nudge(cluster)
        await answer_as_the_edge(centre, cluster)
        row = await centre.until(
            cluster, lambda row: bool(row.projection and row.projection.phase == Phase.DELETED), seconds=100
        )
    await eventually(lambda: has_ended(centre, cluster))
    assert row.closed and row.projection and row.projection.residue == ()
    for app in (*CENTRAL_ENTRIES, APP_CLUSTER_CONFIGURATION, APP_CLUSTER_STATUS):
        assert await centre.ports.config.get(app, cluster) is None
    assert await centre.ports.accounts.of_cluster(cluster) == []
    assert await centre.ports.edge_access.credentials(cluster) == []
    assert not await asyncio.to_thread(centre.git.exists, cluster)
    archived = [path for path in centre.git.root.rglob("*") if path.is_dir() and str(cluster) in path.name]
    assert len(archived) == 1
    told = await steps_done(centre, cluster)
    assert {step: number for step, number in told.items() if number != 1} == {}
    assert set(told) >= {StepName.REMOVE_WORKLOADS, StepName.AWAIT_EMPTY, StepName.AWAIT_GOODBYE, *CENTRAL_DELETION}
    assert await doubled(centre, cluster) == {}
    assert (await phases(centre, cluster))[-2:] == [Phase.DETACHING, Phase.DELETED]


async def has_ended(centre: WorkflowCentre, cluster: UUID) -> bool:
    status = (await centre.handle(cluster).describe()).status
    return status is not None and status.name == "COMPLETED"


async def test_removal_and_new_hardware_survive_a_death_at_every_point(stage: Stage) -> None:
    centre = stage.centre
    cluster = await centre.create("renewed")
    await centre.bootstrap(cluster)
    change = staged(cluster, "db", "key")
    await centre.ports.staging.stage([change])
    await centre.fleet.change_secrets(cluster, [change.request])
    await centre.wishes.request_removal(cluster, actor="token:test")
    async with stage.deaths(REMOVAL_DEATHS):
        await centre.fleet.nudge(cluster)
        await centre.until(cluster, lambda row: bool(row.projection and row.projection.phase == Phase.REMOVED))
        await eventually(lambda: lacks_setup_status(centre, cluster))
    states = [credential.state for credential in await centre.ports.edge_access.credentials(cluster)]
    assert states == [CredentialState.SUSPENDED] * 2
    await centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=True)
    async with stage.deaths(NEW_HARDWARE_DEATHS):
        await centre.fleet.nudge(cluster)
    row = await settled(centre, cluster)
    assert list(row.must_reenter) == [SecretKey("default", "db", "key")]
    assert await commits(centre, cluster) == 4  # the last one takes the driver of secrets away that has none any more
    assert await centre.ports.edge_access.credentials(cluster) == []
    assert await doubled(centre, cluster) == {}


async def lacks_setup_status(centre: WorkflowCentre, cluster: UUID) -> bool:
    return await centre.ports.config.get(APP_CLUSTER_SETUP_STATUS, cluster) is None


async def test_ten_clusters_outlive_a_killed_temporal_server(tmp_path: Path) -> None:
    port, db, log = free_port(), tmp_path / "temporal.db", tmp_path / "server.log"
    clusters = [uuid4() for _ in range(10)]
    with ExitStack() as servers:
        address = servers.enter_context(temporal_server(log, db=db, port=port))
        async with open_centre(tmp_path / "centre", address) as centre, working(centre):
            await asyncio.gather(*(centre.write(cluster, f"line-{n}") for n, cluster in enumerate(clusters)))
            await eventually(lambda: one_is_half_way(centre), seconds=60)
            kill_server(port)
            assert not all([await is_ready(centre, cluster) for cluster in clusters])
            servers.enter_context(temporal_server(log, db=db, port=port))
            for cluster in clusters:
                await centre.until(cluster, lambda row: bool(row.projection and row.projection.ready), seconds=60)
                await is_commissioned_once(centre, cluster)


async def one_is_half_way(centre: WorkflowCentre) -> bool:
    """Whether a cluster has an address, so that the steps are under way."""
    return any(change.app == APP_SPARKPLUG_ADDRESS for change in await centre.ports.config.changes(after=0))


async def is_ready(centre: WorkflowCentre, cluster: UUID) -> bool:
    row = await centre.row(cluster)
    return bool(row.projection and row.projection.ready)


def kill_server(port: int) -> None:
    """SIGKILLs the Temporal server that this process has started on a port."""
    for child in psutil.Process().children():
        if str(port) in child.cmdline():
            child.kill()
            child.wait(10)
            return
    raise AssertionError("no server to kill")
