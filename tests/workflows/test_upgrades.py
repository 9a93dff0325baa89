"""Upgrades reach the repository by the workflow that every change takes, and so does the way back."""

import asyncio
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from uuid import UUID

from centre import WorkflowCentre, eventually
from sqlalchemy import delete, insert, update
from temporalio.testing import ActivityEnvironment

from activities.composition import upkeep_of
from edgewright.adapters.database.tables import gateway_presence, upgrades
from edgewright.domain.upgrades import AgentTarget, UpgradeState
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.upgrades import UpgradeFilter, UpgradeWish

OLD, NEW = AgentTarget(image="centre.example/agent:0.3.0"), AgentTarget(image="centre.example/agent:0.4.0")
MANIFESTS = "edo/agent/agent.yaml"


async def attached(centre: WorkflowCentre, name: str) -> UUID:
    cluster = await centre.create(name)
    digests = {word: sha256(f"{word} of {name}".encode()).digest() for word in ("token", "flux", "agent")}
    access = centre.ports.edge_access
    await access.issue_token(
        cluster, token_id=name, secret_sha256=digests["token"], expires_in=timedelta(hours=1), actor="token:ann"
    )
    await access.register(
        token_id=name,
        secret_sha256=digests["token"],
        kube_system_uid=f"uid of {name}",
        kubernetes_version="v1.33.1",
        flux_sha256=digests["flux"],
        agent_sha256=digests["agent"],
    )
    await report(centre, cluster, OLD)
    return cluster


async def report(centre: WorkflowCentre, cluster: UUID, runs: AgentTarget) -> None:
    said = {"versions": {"agent": runs.version, "agent-image": runs.image}}
    await centre.ports.edge_reports.write_status(
        cluster, said, certificate=None, certificate_problem=None, generation=1, actor="agent"
    )
    await centre.fleet.nudge(cluster)


async def begin(centre: WorkflowCentre, cluster: UUID, *, told: bool = True) -> None:
    wish = UpgradeWish(cluster=cluster, target=NEW, before=OLD.version, fallback=OLD)
    _, is_new = await centre.ports.upgrades.admit(wish, actor="token:ann")
    assert is_new
    if told:
        await centre.fleet.nudge(cluster)


async def image_is(centre: WorkflowCentre, cluster: UUID, target: AgentTarget) -> bool:
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    content = await asyncio.to_thread(centre.git.read, cluster, MANIFESTS, at=head)
    return content is not None and f"image: {target.image}\n".encode() in content


async def state_of(centre: WorkflowCentre, cluster: UUID) -> UpgradeState:
    [upgrade] = (await centre.ports.upgrades.page(UpgradeFilter(cluster=cluster))).items
    return upgrade.state


async def outlast_patience(centre: WorkflowCentre, cluster: UUID) -> None:
    """An hour passes for what the database knows, in which a gateway listened and the edge was heard."""
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    async with centre.database.write() as connection:
        await connection.execute(delete(gateway_presence))
        await connection.execute(
            insert(gateway_presence).values(id=1, listening_since=now - hour, listening_until=now)
        )
        await connection.execute(
            update(upgrades).where(upgrades.c.cluster == cluster).values(since=now - hour, deadline=now)
        )
    await centre.ports.edge_reports.heartbeats([Heartbeat(cluster, 1)])


async def test_a_wanted_version_is_committed_and_one_that_is_not_proven_goes_back(centre: WorkflowCentre) -> None:
    cluster = await attached(centre, "press-shop")
    await begin(centre, cluster)
    await eventually(lambda: image_is(centre, cluster, NEW))
    row = await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    assert row.projection and row.projection.ready
    await outlast_patience(centre, cluster)
    expire = upkeep_of(centre.ports, centre.fleet).expire
    await ActivityEnvironment().run(expire)
    await eventually(lambda: image_is(centre, cluster, OLD))
    assert await state_of(centre, cluster) is UpgradeState.FELL_BACK
    commits = len(await asyncio.to_thread(centre.git.log, cluster, limit=50))
    await ActivityEnvironment().run(expire)
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    assert len(await asyncio.to_thread(centre.git.log, cluster, limit=50)) == commits


async def test_one_that_is_proven_stays(centre: WorkflowCentre) -> None:
    cluster = await attached(centre, "line-1")
    await begin(centre, cluster)
    await eventually(lambda: image_is(centre, cluster, NEW))
    await report(centre, cluster, NEW)
    assert await state_of(centre, cluster) is UpgradeState.DONE
    await outlast_patience(centre, cluster)
    await ActivityEnvironment().run(upkeep_of(centre.ports, centre.fleet).expire)
    assert await image_is(centre, cluster, NEW)


async def test_a_wish_of_which_nobody_was_told_is_committed_after_a_sweep(centre: WorkflowCentre) -> None:
    """As a gateway leaves it that is killed between the wish and its nudge."""
    cluster = await attached(centre, "line-2")
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    await begin(centre, cluster, told=False)
    await ActivityEnvironment().run(upkeep_of(centre.ports, centre.fleet).nudge)
    await eventually(lambda: image_is(centre, cluster, NEW))


async def test_what_is_called_off_goes_back_by_a_commit(centre: WorkflowCentre) -> None:
    cluster = await attached(centre, "line-3")
    await begin(centre, cluster)
    await eventually(lambda: image_is(centre, cluster, NEW))
    await centre.ports.upgrades.cancel(cluster, actor="token:ann")
    await centre.fleet.nudge(cluster)
    await eventually(lambda: image_is(centre, cluster, OLD))
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    assert await state_of(centre, cluster) is UpgradeState.CANCELLED
    head = await asyncio.to_thread(centre.git.head, cluster)
    await ActivityEnvironment().run(upkeep_of(centre.ports, centre.fleet).expire)
    assert await asyncio.to_thread(centre.git.head, cluster) == head


async def test_a_deletion_takes_what_brings_components_out_of_the_repository_before_the_edge_detaches(
    centre: WorkflowCentre,
) -> None:
    cluster = await attached(centre, "leaving")
    await begin(centre, cluster)
    await eventually(lambda: image_is(centre, cluster, NEW))
    await centre.ports.wishes.request_deletion(cluster, actor="token:ann")
    await centre.fleet.nudge(cluster)

    async def is_gone() -> bool:
        head = await asyncio.to_thread(centre.git.head, cluster)
        assert head
        paths = await asyncio.to_thread(centre.git.list, cluster, "", at=head)
        return not any(path.startswith(("edo/agent/", "edo/cluster/components/")) for path in paths)

    await eventually(is_gone)
