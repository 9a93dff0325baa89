"""What a workflow writes of its cluster, and what it cannot write any more once the cluster has moved on."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from database_stores import ACTOR, NOON, Store, close
from shared_statements import statements_of

from edgewright.domain.accounts import accounts_of
from edgewright.domain.cluster import (
    Condition,
    ConditionStatus,
    ConditionType,
    Fence,
    Phase,
    Role,
    StepName,
    StepState,
)
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import SecretKey, SecretReference, StoredPlace
from edgewright.domain.projection import Projection, StepRecord
from edgewright.domain.wellknown import (
    APP_CLUSTER_SETUP_STATUS,
    APP_CLUSTER_STATUS,
    APP_FLUX_TEMPLATE,
    APP_GIT_REPOSITORY,
    APP_HELM_CHART_TEMPLATE,
    APP_SPARKPLUG_ADDRESS,
    CLASS_HELM_CHART,
    OBJECT_DEFAULT_CHART,
    OBJECT_FLUX_TEMPLATE,
)
from edgewright.errors import NotFound, Stalled, Superseded
from edgewright.ports.audit import NewEvent
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.git_server import CommitId

DB = SecretReference("default", "db")
PASSWORD, USER = DB.at("password"), DB.at("user")
ZOMBIE = SecretReference("default", "zombie")
FENCED: dict[str, Callable[[Store, Fence], Awaitable[object]]] = {
    "check_fence": lambda store, fence: store.steps.check_fence(fence),
    "publish_setup_status": lambda store, fence: store.steps.publish_setup_status(fence, {"ready": True}),
    "withdraw_setup_status": lambda store, fence: store.steps.withdraw_setup_status(fence),
    "allocate_address": lambda store, fence: store.steps.allocate_address(fence, "Edgewright-zombie"),
    "write_git_entry": lambda store, fence: store.steps.write_git_entry(fence, "cluster/zombie"),
    "begin_rendering": lambda store, fence: store.steps.begin_rendering(fence),
    "record_rendering": lambda store, fence: store.steps.record_rendering(fence, "zombie", [], commit="c0"),
    "record_reentry": lambda store, fence: store.steps.record_reentry(fence, taken=[ZOMBIE]),
    "begin_deletion": lambda store, fence: store.steps.begin_deletion(fence),
    "remove_address": lambda store, fence: store.steps.remove_central_entries(fence, StepName.REMOVE_ADDRESS),
    "remove_status": lambda store, fence: store.steps.remove_central_entries(fence, StepName.REMOVE_SETUP_STATUS),
    "ensure_accounts": lambda store, fence: store.accounts.ensure(fence, accounts_of(fence.cluster, "zombie")),
    "remove_accounts": lambda store, fence: store.accounts.remove(fence),
    "suspend": lambda store, fence: store.edge_access.suspend(fence),
    "resume": lambda store, fence: store.edge_access.resume(fence),
    "retire": lambda store, fence: store.edge_access.retire(fence, said_goodbye=False),
}


@pytest.mark.parametrize("effect", FENCED)
@pytest.mark.parametrize("how", ["older change", "older generation", "never a cluster"])
async def test_an_attempt_that_the_cluster_has_left_behind_changes_nothing(
    store: Store, effect: str, how: str
) -> None:
    cluster = await store.joined()
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    fence = await store.fence(cluster)
    match how:
        case "older change":
            stale = fence.model_copy(update={"change": fence.change - 1})
        case "older generation":
            stale = fence.model_copy(update={"generation": fence.generation - 1})
        case _:
            stale = fence.model_copy(update={"cluster": uuid4()})
    row, last = await store.row(cluster), await store.audit.last_position()
    entries = await store.config.changes(after=0)
    held = await store.edge_access.credentials(cluster)
    with pytest.raises(Superseded):
        await FENCED[effect](store, stale)
    assert await store.row(cluster) == row
    assert await store.config.changes(after=0) == entries
    assert await store.edge_access.credentials(cluster) == held
    assert await store.audit.last_position() == last
    assert await store.accounts.of_cluster(cluster) == []


async def test_a_present_fence_holds(store: Store) -> None:
    cluster = await store.create()
    await store.steps.check_fence(await store.fence(cluster))


async def test_the_steps_of_commissioning_write_their_entries_once(store: Store) -> None:
    cluster = await store.create()
    fence = await store.fence(cluster)
    for _ in range(2):
        await store.steps.allocate_address(fence, "Edgewright-press-shop")
        await store.steps.write_git_entry(fence, "cluster/press-shop")
        await store.steps.publish_setup_status(fence, {"ready": True})
    for app, body in (
        (APP_SPARKPLUG_ADDRESS, {"group_id": "Edgewright-press-shop"}),
        (APP_GIT_REPOSITORY, {"path": "cluster/press-shop"}),
        (APP_CLUSTER_SETUP_STATUS, {"ready": True}),
    ):
        entry = await store.config.get(app, cluster)
        assert entry is not None
        assert entry.body == body
        told = [change for change in await store.config.changes(after=0) if change.object == cluster]
        assert len([change for change in told if change.app == app]) == 1
    await store.steps.withdraw_setup_status(fence)
    await store.steps.withdraw_setup_status(fence)
    assert await store.config.get(APP_CLUSTER_SETUP_STATUS, cluster) is None
    assert (await store.row(cluster)).change == fence.change


async def test_a_withdrawal_that_wakes_late_leaves_the_status_of_its_own_commissioning(store: Store) -> None:
    cluster = await store.create()
    await store.steps.publish_setup_status(await store.fence(cluster), {"ready": True, "commissioning": 1})
    await store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=False)
    fence = await store.fence(cluster)
    await store.steps.withdraw_setup_status(fence)
    assert await store.config.get(APP_CLUSTER_SETUP_STATUS, cluster) is None
    await store.steps.publish_setup_status(fence, {"ready": True, "commissioning": 2})
    await store.steps.withdraw_setup_status(fence)
    assert await store.config.get(APP_CLUSTER_SETUP_STATUS, cluster) is not None
    await store.wishes.request_removal(cluster, actor=ACTOR)
    await store.steps.withdraw_setup_status(await store.fence(cluster))
    assert await store.config.get(APP_CLUSTER_SETUP_STATUS, cluster) is None


async def test_an_address_belongs_to_one_cluster(store: Store) -> None:
    one, two = await store.create("one"), await store.create("two")
    await store.steps.allocate_address(await store.fence(one), "Edgewright-x")
    with pytest.raises(Stalled) as refusal:
        await store.steps.allocate_address(await store.fence(two), "Edgewright-x")
    assert refusal.value.code == "address_taken"
    assert await store.config.get(APP_SPARKPLUG_ADDRESS, two) is None
    await store.wishes.request_deletion(one, actor=ACTOR)
    await store.steps.remove_central_entries(await store.fence(one), StepName.REMOVE_ADDRESS)
    await store.steps.allocate_address(await store.fence(two), "Edgewright-x")


async def test_the_steps_of_a_deletion_remove_their_entries(store: Store) -> None:
    cluster = await store.create()
    fence = await store.fence(cluster)
    await store.steps.allocate_address(fence, "Edgewright-x")
    await store.steps.write_git_entry(fence, "cluster/x")
    await store.steps.publish_setup_status(fence, {"ready": True})
    await store.edge_reports.write_status(
        cluster, {"hosts": []}, certificate=None, certificate_problem=None, generation=1, actor="agent"
    )
    with pytest.raises(Superseded):
        await store.steps.remove_central_entries(await store.fence(cluster), StepName.REMOVE_SETUP_STATUS)
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    fence = await store.fence(cluster)
    left = {APP_SPARKPLUG_ADDRESS, APP_GIT_REPOSITORY, APP_CLUSTER_STATUS, APP_CLUSTER_SETUP_STATUS}
    for step, gone in (
        (StepName.REMOVE_ADDRESS, {APP_SPARKPLUG_ADDRESS, APP_GIT_REPOSITORY}),
        (StepName.REMOVE_EDGE_STATUS, {APP_CLUSTER_STATUS}),
        (StepName.REMOVE_SETUP_STATUS, {APP_CLUSTER_SETUP_STATUS}),
    ):
        await store.steps.remove_central_entries(fence, step)
        await store.steps.remove_central_entries(fence, step)
        left -= gone
        found = {app for app in left | gone if await store.config.get(app, cluster) is not None}
        assert found == left
    with pytest.raises(ValueError, match="removes no entries"):
        await store.steps.remove_central_entries(fence, StepName.ARCHIVE_REPOSITORY)


def event(cluster: UUID, message: str = "a step failed") -> NewEvent:
    return NewEvent(id=uuid4(), cluster=cluster, actor="centre", kind=EventKind.STEP_FAILED, message=message)


async def test_a_projection_is_published_with_its_events(timed: Store) -> None:
    cluster = await timed.create()
    condition = Condition(
        type=ConditionType.AVAILABLE, status=ConditionStatus.TRUE, reason="LeaseCurrent", since=NOON
    )
    projection = Projection(
        sequence=3,
        phase=Phase.ACTIVE,
        ready=True,
        change_done=1,
        conditions=(condition,),
        steps=(StepRecord(name=StepName.CREATE_ACCOUNTS, state=StepState.DONE, attempts=2, started_at=NOON),),
    )
    await timed.steps.project(cluster, projection, [event(cluster)])
    row = await timed.row(cluster)
    assert (row.projection, row.projected_at) == (projection, timed.clock.at)
    assert await timed.kinds(cluster) == ["cluster.created", "step.failed"]
    wanted = await timed.steps.read_wanted(cluster)
    assert wanted is not None
    assert wanted.projected_sequence == 3


async def test_an_older_projection_is_refused_with_its_events(store: Store) -> None:
    cluster = await store.create()
    newer = Projection(sequence=5, phase=Phase.ACTIVE, ready=True)
    await store.steps.project(cluster, newer, [])
    for sequence in (5, 4):
        older = Projection(sequence=sequence, phase=Phase.COMMISSIONING, ready=False)
        with pytest.raises(Superseded):
            await store.steps.project(cluster, older, [event(cluster)])
    assert (await store.row(cluster)).projection == newer
    assert await store.kinds(cluster) == ["cluster.created"]


async def test_a_projection_that_is_published_again_is_there_once(store: Store) -> None:
    cluster = await store.create()
    condition = Condition(
        type=ConditionType.AVAILABLE, status=ConditionStatus.TRUE, reason="LeaseCurrent", since=NOON
    )
    projection, told = Projection(sequence=5, phase=Phase.ACTIVE, ready=True, conditions=(condition,)), event(cluster)
    for _ in range(2):
        await store.steps.project(cluster, projection, [told])
    assert (await store.row(cluster)).projection == projection
    assert await store.kinds(cluster) == ["cluster.created", "step.failed"]


async def test_a_projection_that_a_forgetful_workflow_publishes_again_tells_its_phase_once(store: Store) -> None:
    cluster, projection = await store.create(), Projection(sequence=5, phase=Phase.DELETED, ready=False)
    for _ in range(2):
        phase = event(cluster, "Now Deleted.").model_copy(update={"kind": EventKind.PHASE_CHANGED})
        await store.steps.project(cluster, projection, [event(cluster), phase])
    assert await store.kinds(cluster) == ["cluster.created", "step.failed", "phase.changed", "step.failed"]


async def test_a_cluster_that_never_was_has_no_projection(store: Store) -> None:
    newer = Projection(sequence=5, phase=Phase.ACTIVE, ready=True)
    with pytest.raises(NotFound):
        await store.steps.project(uuid4(), newer, [])


async def test_what_differs_is_unfinished(timed: Store) -> None:
    cluster = await timed.create()
    assert await timed.directory.unfinished() == [cluster]
    timed.clock.advance(seconds=1)
    await timed.publish(cluster, Phase.AWAITING_BOOTSTRAP, ready=True)
    assert await timed.directory.unfinished() == []

    await timed.write(cluster, bare=True)
    assert await timed.directory.unfinished() == [cluster]
    await timed.publish(cluster, Phase.AWAITING_BOOTSTRAP, ready=True)

    await timed.staging.stage([await timed.change(cluster)])
    assert await timed.directory.unfinished() == [cluster]
    await timed.staging.refuse((await timed.staging.pending(cluster)).changes[0].request, "x", "x")
    assert await timed.directory.unfinished() == []

    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    assert await timed.directory.unfinished() == [cluster]
    await timed.publish(cluster, Phase.ACTIVE, ready=True)
    assert await timed.directory.unfinished() == []


async def test_a_cluster_that_is_to_be_rendered_again_is_unfinished_until_it_is(timed: Store) -> None:
    """Whoever was told so may have forgotten it with Temporal's older copy, and have published since."""
    sources = [(APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE)]
    cluster = await timed.create()
    await timed.steps.record_rendering(await timed.fence(cluster), "d1", sources, commit="c0")
    await timed.steps.record_drift(cluster, "Put back.", event=uuid4())
    timed.clock.advance(seconds=1)
    await timed.publish(cluster, Phase.ACTIVE, ready=True)
    assert await timed.directory.unfinished() == [cluster]
    for paused in (True, False):
        await timed.wishes.set_paused(cluster, paused=paused, reason="", actor="test")
        await timed.publish(cluster, Phase.ACTIVE, ready=True)
        assert await timed.directory.unfinished() == ([] if paused else [cluster])
    await timed.steps.record_rendering(await timed.fence(cluster), "d1", sources, commit="c0")
    assert await timed.directory.unfinished() == []


async def test_news_of_the_edge_are_told_again_until_they_were_read(timed: Store) -> None:
    cluster = await timed.create()
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    timed.clock.advance(seconds=1)
    await timed.publish(cluster, Phase.ACTIVE, ready=True)
    timed.clock.advance(seconds=1)
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1, observed_revision="abc")])
    assert await timed.directory.unfinished() == [cluster]
    timed.clock.advance(days=11)  # Temporal was away for so long
    assert await timed.directory.unfinished() == [cluster]
    await timed.publish(cluster, Phase.ACTIVE, ready=True)
    assert await timed.directory.unfinished() == []


async def test_the_longest_unpublished_come_first(timed: Store) -> None:
    made = [await timed.create(f"shop-{number}") for number in range(3)]
    for cluster in (made[2], made[0]):
        timed.clock.advance(seconds=1)
        await timed.publish(cluster, Phase.ACTIVE, ready=True, change_done=0)
    assert await timed.directory.unfinished() == [made[1], made[2], made[0]]
    assert await timed.directory.unfinished(limit=1) == [made[1]]
    assert await timed.directory.unfinished(among=[made[0], made[2], uuid4()]) == [made[2], made[0]]
    assert await timed.directory.unfinished(among=[]) == []


async def test_the_users_of_a_template_are_known(store: Store) -> None:
    one, two = sorted([await store.create("one"), await store.create("two")])
    chart, flux = (APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART), (APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE)
    assert await store.directory.using_template(*chart) == [one, two]  # nothing was rendered for them yet
    await store.steps.record_rendering(await store.fence(one), "d1", [chart, flux, chart], commit="c0")
    await store.steps.record_rendering(await store.fence(two), "d2", [flux], commit="c0")
    assert await store.directory.using_template(*chart) == [one]
    assert await store.directory.using_template(*flux) == [one, two]
    await store.steps.record_rendering(await store.fence(one), "d3", [chart], commit="c0")
    assert await store.directory.using_template(*flux) == [two]


async def look_again(timed: Store, cluster: UUID) -> None:
    """What the workflow does that was told: it reads, and publishes."""
    timed.clock.advance(seconds=1)
    await timed.publish(cluster, Phase.ACTIVE, ready=True)
    timed.clock.advance(seconds=1)


async def test_the_users_of_a_template_that_changes_are_unfinished_until_they_have_looked(timed: Store) -> None:
    """Nudges are only a courtesy: a gateway that is killed after the write, or stops before it has sent them all,
    must leave nobody with the old files."""
    user, other = await timed.create("user"), await timed.create("other")
    chart, flux = (APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART), (APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE)
    for cluster, places in ((user, [chart, flux]), (other, [flux])):
        await timed.steps.record_rendering(await timed.fence(cluster), "d1", places, commit="c0")
        await look_again(timed, cluster)
    assert await timed.directory.unfinished() == []
    entry = await timed.config.get(*chart)
    assert entry is not None
    await timed.config.put(*chart, entry.body, actor="test")
    assert await timed.directory.unfinished() == [], "nothing differs"
    await timed.config.put(*chart, {**entry.body, "values": {"changed": True}}, actor="test")
    assert await timed.directory.unfinished() == [user]
    await look_again(timed, user)
    assert await timed.directory.unfinished() == []
    await timed.config.delete(*chart, actor="test")
    assert await timed.directory.unfinished() == [user]


async def test_the_clusters_of_each_chart_are_counted_however_many_there_are(store: Store) -> None:
    own, other = uuid4(), uuid4()
    for template in (own, other):
        await store.config.create_object(CLASS_HELM_CHART, template)
        await store.config.put(APP_HELM_CHART_TEMPLATE, template, {"chart": "x", "values": {}}, actor=ACTOR)
    assert await store.directory.chart_users() == {}
    plain, named, shouted = [
        await store.create("plain"),
        await store.create("named", chart=str(own)),
        await store.create("shouted", chart=str(own).upper()),
    ]
    assert await store.directory.chart_users() == {OBJECT_DEFAULT_CHART: 1, own: 2}  # nothing was rendered yet
    for cluster, chart in ((plain, other), (named, own)):
        sources = [(APP_HELM_CHART_TEMPLATE, chart), (APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE)]
        await store.steps.record_rendering(await store.fence(cluster), "d1", sources, commit="c0")
    with statements_of(store.database) as few:
        assert await store.directory.chart_users() == {other: 1, own: 2}
    await close(store, shouted)
    for number in range(5):
        await store.create(f"more-{number}", chart=str(other))
    with statements_of(store.database) as many:
        assert await store.directory.chart_users() == {other: 6, own: 1}
    assert many == few


async def test_a_rendering_that_was_begun_is_remembered_until_one_is_recorded(store: Store) -> None:
    cluster = await store.create()
    await store.steps.record_rendering(await store.fence(cluster), "d1", [], commit="c0")
    for begun in (False, True, False):
        if begun:
            await store.steps.begin_rendering(await store.fence(cluster))
        wanted = await store.steps.read_wanted(cluster)
        assert wanted is not None and wanted.rendering_begun is begun
        if begun:
            await store.steps.record_rendering(await store.fence(cluster), "d1", [], commit="c0")


# --- drift ---------------------------------------------------------------------------------------------------------


async def test_a_drift_is_told_once_and_lasts_until_it_ends(store: Store) -> None:
    cluster, finding = await store.create(), uuid4()
    await store.steps.record_rendering(await store.fence(cluster), "d1", [], commit="c0")
    change = (await store.row(cluster)).change
    lost: dict[StoredPlace, CommitId] = {PASSWORD: "a1", USER: "a2"}
    assert await store.steps.record_drift(cluster, "Put back.", event=finding, lost=lost)
    for mended in (False, True):
        again: dict[str, Any] = {"event": finding, "lost": {DB.at("late"): "a3"}, "mended": mended}
        assert not await store.steps.record_drift(cluster, "Put back.", **again), "it is to be rendered already"
    row, wanted = await store.row(cluster), await store.steps.read_wanted(cluster)
    assert (row.drift, row.must_reenter, row.change) == ("Put back.", tuple(lost), change)
    assert wanted is not None
    assert (wanted.drift, wanted.rendering_begun, wanted.unread_news) == ("Put back.", True, True)
    told = [event for event in await store.audit.timeline(cluster) if event.kind == "git.drifted"]
    assert [event.message for event in told] == ["Put back."]
    assert (await store.census.count()).drifted == 1
    assert await store.steps.lost_in_drift(cluster) == lost
    assert not await store.steps.end_drift(cluster, back=[USER], mended=True)
    assert (await store.row(cluster)).must_reenter == (PASSWORD,)
    assert not await store.steps.end_drift(cluster, back=[PASSWORD], mended=False)
    ends = [await store.steps.end_drift(cluster, back=[], mended=True) for _ in range(2)]
    assert ends == [True, False]
    row = await store.row(cluster)
    assert (row.drift, row.must_reenter, await store.steps.lost_in_drift(cluster)) == ("", (), {})
    assert (await store.census.count()).drifted == 0


async def test_what_is_entered_while_repository_and_database_are_compared_is_not_lost(store: Store) -> None:
    cluster = await store.create()
    change = await store.change(cluster)
    await store.staging.stage([change])
    await store.staging.committed([change.request], "a2")
    finding: Any = {"event": uuid4(), "lost": {change.place: "a1"}}
    assert not await store.steps.record_drift(cluster, "Put back.", **finding, secrets_commit="")
    assert not await store.steps.record_drift(cluster, "Put back.", **finding, secrets_commit="a1")
    row = await store.row(cluster)
    assert (row.must_reenter, row.drift) == ((), "")
    assert await store.steps.record_drift(cluster, "Put back.", **finding, secrets_commit="a2")


async def test_a_drift_that_comes_again_after_a_rendering_is_rendered_again(store: Store) -> None:
    cluster, finding = await store.create(), uuid4()
    assert await store.steps.record_drift(cluster, "Put back.", event=finding)
    await store.steps.record_rendering(await store.fence(cluster), "d1", [], commit="c0")
    assert not await store.steps.record_drift(cluster, "Put back.", event=finding, mended=True)
    assert await store.steps.record_drift(cluster, "Put back.", event=finding)
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None and wanted.rendering_begun
    assert [event.kind for event in await store.audit.timeline(cluster)].count(EventKind.GIT_DRIFTED) == 1


async def test_what_new_hardware_takes_is_not_given_back_with_a_repository(store: Store) -> None:
    cluster = await store.create()
    await store.steps.record_drift(cluster, "Put back.", event=uuid4(), lost={PASSWORD: "a1"})
    await store.steps.record_reentry(await store.fence(cluster), taken=[PASSWORD])
    assert await store.steps.lost_in_drift(cluster) == {}
    await store.steps.end_drift(cluster, back=[], mended=True)
    assert (await store.row(cluster)).must_reenter == (PASSWORD,)


async def test_a_row_older_than_its_repository_goes_on_with_a_change_that_no_commit_bears(store: Store) -> None:
    cluster = await store.create()
    stale = await store.fence(cluster)
    await store.steps.record_drift(cluster, "Put back.", event=uuid4(), change=99)
    assert (await store.row(cluster)).change == 100
    with pytest.raises(Superseded):
        await store.steps.check_fence(stale)
    assert cluster in await store.directory.unfinished()


async def test_drift_of_a_cluster_that_is_not_there_is_refused(store: Store) -> None:
    for call in (
        store.steps.record_drift(uuid4(), "Put back.", event=uuid4()),
        store.steps.end_drift(uuid4(), back=[], mended=True),
    ):
        with pytest.raises(NotFound):
            await call


async def test_commits_that_the_timeline_tells_of_are_read_newest_first(store: Store) -> None:
    cluster, other = await store.create(), await store.create("other")
    for owner, commit, key in ((cluster, "a1", "password"), (other, "b1", "password"), (cluster, "a2", "user")):
        change = await store.change(owner, key=key)
        await store.staging.stage([change])
        await store.staging.committed([change.request], commit)
    await store.audit.append(
        NewEvent(
            id=uuid4(),
            cluster=cluster,
            actor=ACTOR,
            kind=EventKind.GIT_PUSHED,
            message="Pushed.",
            detail={"old": "a2", "new": "a3"},
        )
    )
    found = await store.steps.recorded_commits(cluster, limit=9)
    assert [(each.commit, each.secret, each.pushed) for each in found] == [
        ("a3", None, True),
        ("a2", USER, False),
        ("a1", PASSWORD, False),
    ]
    assert await store.steps.recorded_commits(cluster, limit=1) == found[:1]


async def test_events_without_a_commit_do_not_hide_the_commits_before_them(store: Store) -> None:
    cluster = await store.create()
    nothing: dict[str, str | int | float | bool | None] = {"step": "publish_status", "commit": None}
    details = [
        {**nothing, "commit": "a1"},
        {**nothing, "commit": "a2"},
        *[nothing] * 5,
        {**nothing, "commit": "a3"},
        nothing,
    ]
    for detail in details:
        await store.audit.append(
            NewEvent(
                id=uuid4(), cluster=cluster, actor=ACTOR, kind=EventKind.STEP_DONE, message="Done.", detail=detail
            )
        )
    for limit, commits in ((1, ["a3"]), (2, ["a3", "a2"]), (3, ["a3", "a2", "a1"]), (4, ["a3", "a2", "a1"])):
        found = await store.steps.recorded_commits(cluster, limit=limit)
        assert [each.commit for each in found] == commits


async def test_secrets_to_enter_again_are_listed_until_they_are(store: Store) -> None:
    cluster = await store.create()
    fence, web = await store.fence(cluster), SecretKey("default", "web", "password")
    await store.steps.record_reentry(fence, taken=[web, PASSWORD])
    await store.steps.record_reentry(fence, taken=[USER, DB.at("host")])
    await store.steps.record_reentry(fence, there=[DB.at("host"), DB, SecretKey("default", "other", "key")])
    change = await store.change(cluster)
    await store.staging.stage([change])
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None
    assert wanted.must_reenter == ("default/db/password", "default/db/user", "default/web/password")
    await store.staging.committed([change.request], "c0ffee")
    assert (await store.row(cluster)).must_reenter == (USER, web)
    assert not await store.steps.record_reentry(fence, taken=[DB.at("late")], secrets_commit="before")
    assert (await store.row(cluster)).must_reenter == (USER, web)
    assert await store.steps.record_reentry(fence, taken=[DB.at("late")], secrets_commit="c0ffee")


async def test_a_rotation_that_nobody_proves_is_a_problem(timed: Store) -> None:
    cluster = await timed.joined()
    await timed.edge_access.add_rotated(cluster, Role.AGENT, b"n" * 32, actor="agent")
    timed.clock.advance(minutes=10)
    early = await timed.steps.read_wanted(cluster)
    timed.clock.advance(minutes=10)
    late = await timed.steps.read_wanted(cluster)
    assert early is not None
    assert early.rotation_problem is None
    assert late is not None
    assert "agent" in str(late.rotation_problem)


async def test_a_rotation_that_an_edge_never_begins_is_a_problem_that_the_workflow_looks_at_in_time(
    timed: Store,
) -> None:
    cluster = await timed.joined()
    await timed.edge_access.ask_rotation(cluster, [Role.FLUX], actor="token:me", reason="")
    early = await timed.steps.read_wanted(cluster)
    assert early is not None and early.rotation_problem is None
    assert early.review_at is not None
    timed.clock.at = early.review_at
    late = await timed.steps.read_wanted(cluster)
    assert late is not None and "flux credential is wanted since" in str(late.rotation_problem)
    assert late.review_at is None
    await timed.edge_access.add_rotated(cluster, Role.FLUX, b"n" * 32, actor="agent")
    begun = await timed.steps.read_wanted(cluster)
    assert begun is not None and begun.rotation_problem is None


async def test_a_lease_ends_where_the_grace_ends(timed: Store) -> None:
    cluster = await timed.create()
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    heard = timed.clock.at
    timed.clock.advance(hours=1)
    await timed.edge_reports.keep_listening()
    row = await timed.row(cluster)
    assert row.lease.last_heard == heard
    assert row.lease.expires_at == timed.clock.at + timedelta(seconds=300)


async def test_who_has_published_a_step_that_is_not_finished_is_under_way(timed: Store) -> None:
    cluster, other = await timed.create("one"), await timed.create("other")
    steps = (
        StepRecord(name=StepName.BEGIN_DELETION, state=StepState.DONE),
        StepRecord(name=StepName.AWAIT_EMPTY, state=StepState.RUNNING),
    )
    await timed.publish(other, Phase.ACTIVE, ready=True, plan="idle", steps=steps)
    assert await timed.directory.underway() == []
    await timed.publish(cluster, Phase.DETACHING, ready=False, plan="delete/1", steps=steps)
    assert await timed.directory.underway() == [cluster]
    done = tuple(step.model_copy(update={"state": StepState.SKIPPED}) for step in steps)
    await timed.publish(cluster, Phase.DETACHING, ready=False, plan="delete/1", steps=done)
    assert await timed.directory.underway() == []
