"""After an outage: what waits is tried as soon as somebody says that it may work now."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import is_told, kinds, staged

from edgewright.domain.cluster import Phase
from edgewright.domain.wellknown import APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART
from edgewright.errors import Stalled, Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.secret_staging import StagedState
from workflows import policies


class Faulty:
    """A port that behaves as the real one, but for what the test replaces."""

    def __init__(self, real: object, **replaced: Any) -> None:
        self._real = real
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name) or getattr(self._real, name)


def deleted(row: ClusterRow) -> bool:
    return row.projection is not None and row.projection.phase is Phase.DELETED


async def test_a_secret_waits_for_no_long_pause_after_an_outage(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    patchable.setattr(policies, "FIRST_BACKOFF", timedelta(seconds=40))
    patchable.setattr(policies, "SECRET_PAUSE", timedelta(seconds=1))
    away = True

    def commit(*arguments: Any, **more: Any) -> Any:
        if away:
            raise Waiting("The Git storage is away.", code="git_unavailable", retry_after=5)
        return idle_centre.git.commit(*arguments, **more)

    async with working(idle_centre):
        cluster = await idle_centre.create("back-again")
    async with working(idle_centre, git=Faulty(idle_centre.git, commit=commit)):
        await idle_centre.ports.staging.stage([staged(cluster, "db", "one")])
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(
            cluster, lambda row: bool(row.projection and "storage is away" in row.projection.waiting_for)
        )
        away = False
        second = staged(cluster, "db", "two")
        await idle_centre.ports.staging.stage([second])
        await idle_centre.fleet.change_secrets(cluster, [second.request])
        rows = await idle_centre.ports.staging.request(second.request)
        assert [row.state for row in rows] == [StagedState.COMMITTED]


async def test_a_nudge_ends_the_wait_for_a_database_that_is_back(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    patchable.setattr(policies, "FIRST_BACKOFF", timedelta(seconds=60))
    away = asyncio.Event()

    async def read_wanted(cluster: UUID) -> Any:
        if away.is_set():
            tried.set()
            raise Waiting("The database is away.", code="database_unavailable")
        return await idle_centre.steps.read_wanted(cluster)

    tried = asyncio.Event()
    async with working(idle_centre, steps=Faulty(idle_centre.steps, read_wanted=read_wanted)):
        cluster = await idle_centre.create("nudged")
        away.set()
        await idle_centre.fleet.nudge(cluster)
        await tried.wait()
        await asyncio.sleep(0.5)
        away.clear()
        await idle_centre.wishes.request_deletion(cluster, actor="token:test")
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, deleted, seconds=15)


async def test_a_phase_is_told_once_although_the_database_was_away(idle_centre: WorkflowCentre) -> None:
    refused = 0

    async def project(*arguments: Any) -> None:
        nonlocal refused
        if refused <= policies.PUBLISH["retry_policy"].maximum_attempts:
            refused += 1
            raise Waiting("The database is away.", code="database_unavailable")
        await idle_centre.steps.project(*arguments)

    async with working(idle_centre, steps=Faulty(idle_centre.steps, project=project)):
        cluster = await idle_centre.create("told-late")
        await eventually(lambda: is_told(idle_centre, cluster))
        assert (await kinds(idle_centre, cluster)).count("phase.changed") == 1


async def test_a_first_sign_of_life_shows_while_a_step_stands_in_the_queue(idle_centre: WorkflowCentre) -> None:
    queue, go_on = asyncio.Event(), asyncio.Event()

    async def late(*arguments: Any, **more: Any) -> None:
        queue.set()
        await go_on.wait()
        await idle_centre.steps.record_rendering(*arguments, **more)

    async with working(idle_centre):
        cluster = await idle_centre.create("queued")
    async with working(idle_centre, steps=Faulty(idle_centre.steps, record_rendering=late)):
        await idle_centre.write(cluster, "queued", values={"new": True})
        await queue.wait()
        await idle_centre.ports.edge_reports.heartbeats([Heartbeat(cluster=cluster, generation=1)])
        await idle_centre.fleet.nudge(cluster)
        row = await idle_centre.until(
            cluster, lambda row: bool(row.projection and row.projection.lease_epoch == row.lease.epoch), seconds=5
        )
        assert row.projection and row.projection.done.rendered_digest
        go_on.set()
        await idle_centre.until(cluster, lambda row: bool(row.projection and not row.projection.waiting_for))


async def test_a_changed_configuration_does_not_wait_for_the_next_attempt(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    patchable.setattr(policies, "FIRST_BACKOFF", timedelta(seconds=60))
    bad = True

    def commit(*arguments: Any, **more: Any) -> Any:
        if bad:
            raise Waiting("The Git storage is away.", code="git_unavailable", retry_after=5)
        return idle_centre.git.commit(*arguments, **more)

    async with working(idle_centre, git=Faulty(idle_centre.git, commit=commit)):
        cluster = uuid4()
        await idle_centre.write(cluster, "changed")
        await idle_centre.until(
            cluster, lambda row: bool(row.projection and "storage is away" in row.projection.waiting_for)
        )
        bad = False
        await idle_centre.write(cluster, "changed", values={"smaller": True})
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready), seconds=15)


async def test_what_is_mended_while_a_step_fails_is_noticed(idle_centre: WorkflowCentre) -> None:
    reached, failing = asyncio.Event(), asyncio.Event()
    attempts = 0
    ensure = idle_centre.ports.accounts.ensure

    async def once_stalled(*arguments: Any) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            reached.set()
            await failing.wait()
            raise Stalled("The chart does not exist.", code="template_missing")
        await ensure(*arguments)

    async with working(idle_centre, accounts=Faulty(idle_centre.ports.accounts, ensure=once_stalled)):
        cluster = uuid4()
        await idle_centre.write(cluster, "mended")
        await reached.wait()
        template = await idle_centre.ports.config.get(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
        assert template
        changed = {**template.body, "values": {"mended": True}}
        await idle_centre.ports.config.put(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART, changed, actor="token:test")
        await idle_centre.fleet.nudge(cluster)
        await asyncio.sleep(0.5)
        failing.set()
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready), seconds=15)
