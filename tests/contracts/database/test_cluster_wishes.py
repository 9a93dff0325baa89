"""What operators want of a cluster: created, changed, removed, recreated, paused."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from database_stores import ACTOR, Store, code_of, entry, wanted

from edgewright.adapters.database.config_store.entries import put_entry
from edgewright.domain.cluster import (
    Acceptance,
    AcceptancePolicy,
    ClusterSettings,
    CredentialState,
    Desired,
    LeaseState,
    Role,
    TokenState,
)
from edgewright.domain.wellknown import (
    APP_CLUSTER_CONFIGURATION,
    APP_CLUSTER_STATUS,
    APP_CONFIG_SCHEMA,
    CLASS_EDGE_CLUSTER,
    CLASS_GIT_REPOSITORY,
    OBJECT_DEFAULT_CHART,
)
from edgewright.errors import Conflict, Invalid, NotFound, PreconditionFailed
from edgewright.ports.config_store import Precondition
from edgewright.ports.secret_staging import StagedState

LABELLED = ClusterSettings(labels={"site": "aachen"}, lease_seconds=60)


async def test_a_new_cluster_is_wanted_present(store: Store) -> None:
    cluster = await store.create("Press-Shop", settings=LABELLED)
    reading = await wanted(store, cluster)
    assert (reading.name, reading.namespace, reading.labels) == ("Press-Shop", "edgewright", {"site": "aachen"})
    assert (reading.generation, reading.change, reading.commissioning) == (1, 1, 1)
    assert (reading.desired, reading.closed, reading.bootstrapped) == (Desired.PRESENT, False, False)
    row = await store.row(cluster)
    written = await entry(store, cluster)
    assert written is not None
    assert (row.spec_etag, row.spec.name) == (written.etag, "Press-Shop")
    assert (row.settings, row.created_by) == (LABELLED, ACTOR)
    assert await store.config.class_of(cluster) == CLASS_EDGE_CLUSTER
    assert await store.kinds(cluster) == ["cluster.created"]
    assert await store.directory.find("pReSS-shop") == cluster


async def test_a_changed_configuration_says_which_fields_and_no_values(store: Store) -> None:
    cluster = await store.create(values={"password": "old-s3cr3t"}, settings=LABELLED)
    await store.write(cluster, bare=True, values={"password": "new-s3cr3t"})
    await store.wishes.write_settings(cluster, {"labels": {"site": "bonn"}, "lease_seconds": 60}, actor=ACTOR)
    await store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=False, changes={"bare": False})
    *_, changed, settled, recreated = await store.audit.timeline(cluster)
    assert changed.message == "The configuration of press-shop was changed: /bare (unset → true), /values/password."
    assert changed.detail["fields"] == "/bare,/values/password"
    assert settled.message == 'The settings entry of press-shop was changed: /labels/site ("aachen" → "bonn").'
    assert recreated.message.endswith("Its configuration was changed: /bare (true → false).")
    assert "s3cr3t" not in str([changed, settled, recreated])


async def test_a_uuid_that_was_never_a_cluster_is_none(store: Store) -> None:
    assert await store.directory.get(uuid4()) is None
    assert await store.steps.read_wanted(uuid4()) is None
    assert await store.directory.find("nobody") is None
    assert await store.directory.name_of(uuid4()) is None


async def test_an_equal_configuration_changes_nothing(store: Store) -> None:
    cluster = await store.create(settings=LABELLED)
    before = await store.row(cluster)
    written = await store.write(cluster)
    again = await store.wishes.write_configuration(
        cluster, {"namespace": "edgewright", "name": "press-shop"}, actor=ACTOR, settings=LABELLED
    )
    for outcome in (written, again):
        assert (outcome.changed, outcome.created, outcome.recreated) == (False, False, False)
        assert outcome.entry.etag == before.spec_etag
    assert await store.row(cluster) == before
    assert await store.kinds(cluster) == ["cluster.created"]


async def test_a_changed_configuration_raises_the_change(store: Store) -> None:
    cluster = await store.create()
    written = await store.write(cluster, values={"replicas": 2})
    assert (written.changed, written.created, written.recreated) == (True, False, False)
    assert (written.row.change, written.row.commissioning) == (2, 1)
    assert written.row.spec.values == {"replicas": 2}
    assert await store.kinds(cluster) == ["cluster.created", "cluster.changed"]


async def test_changed_settings_raise_the_change_and_keep_the_entry(store: Store) -> None:
    cluster = await store.create(settings=LABELLED)
    etag = (await store.row(cluster)).spec_etag
    written = await store.wishes.write_configuration(
        cluster,
        {"name": "press-shop", "namespace": "edgewright"},
        actor=ACTOR,
        settings=ClusterSettings(labels={"site": "bremen"}),
    )
    assert (written.changed, written.entry.etag, written.row.change) == (True, etag, 2)
    settings = await store.wishes.write_settings(cluster, {"labels": {}, "accept": "manual"}, actor=ACTOR)
    row = await store.row(cluster)
    assert row.settings == ClusterSettings(accept=AcceptancePolicy.MANUAL)
    assert row.change == 3
    kept = await store.wishes.write_settings(cluster, {"accept": "manual", "labels": {}}, actor=ACTOR)
    assert kept.etag == settings.etag
    assert (await store.row(cluster)).change == 3


@pytest.mark.parametrize(
    ("body", "code", "where"),
    [
        ({"namespace": "edgewright"}, "schema_violation", ""),
        ({"name": "a", "namespace": "edgewright", "colour": "red"}, "schema_violation", ""),
        ({"name": "a", "namespace": "edgewright", "bare": "no"}, "schema_violation", "/bare"),
        ({"name": "a", "namespace": "edgewright", "chart": str(uuid4())}, "chart_unknown", "/chart"),
    ],
)
async def test_a_configuration_that_cannot_be_is_refused(
    store: Store, body: dict[str, Any], code: str, where: str
) -> None:
    cluster = uuid4()
    with pytest.raises(Invalid) as refusal:
        await store.wishes.write_configuration(cluster, body, actor=ACTOR, create_object=True)
    assert (refusal.value.code, refusal.value.where) == (code, where)
    assert await store.directory.get(cluster) is None
    assert await store.config.class_of(cluster) is None


@pytest.mark.parametrize("name", ["Bad Name/../x @", "-a", "a" * 64, "a\n"])
async def test_a_bad_name_is_refused_at_once(store: Store, name: str) -> None:
    with pytest.raises(Invalid):
        await store.create(name)


async def test_a_known_chart_may_be_named(store: Store) -> None:
    cluster = await store.create(chart=str(OBJECT_DEFAULT_CHART))
    assert (await store.row(cluster)).spec.chart == OBJECT_DEFAULT_CHART


async def test_the_config_store_door_wants_a_registered_object(store: Store) -> None:
    body = {"name": "press-shop", "namespace": "edgewright"}
    assert await code_of(store.wishes.write_configuration(uuid4(), body, actor=ACTOR)) == "object_unknown"
    other, _ = await store.config.create_object(CLASS_GIT_REPOSITORY)
    assert await code_of(store.wishes.write_configuration(other, body, actor=ACTOR)) == "wrong_class"
    cluster, _ = await store.config.create_object(CLASS_EDGE_CLUSTER)
    assert (await store.wishes.write_configuration(cluster, body, actor=ACTOR)).created


async def test_names_are_unique_whatever_the_case_and_while_removed(store: Store) -> None:
    cluster = await store.create("press-shop")
    assert await code_of(store.create("PRESS-shop")) == "name_taken"
    await store.wishes.request_removal(cluster, actor=ACTOR)
    assert await code_of(store.create("press-shop")) == "name_taken"


async def test_a_cluster_keeps_its_name_for_life(store: Store) -> None:
    cluster = await store.create("press-shop")
    assert await code_of(store.write(cluster, "paint-shop")) == "name_immutable"
    assert await code_of(store.write(cluster, "Press-Shop")) == "name_immutable"
    recreation = store.wishes.request_recreation(
        cluster, actor=ACTOR, new_hardware=False, changes={"name": "paint-shop"}
    )
    assert await code_of(recreation) == "name_immutable"
    await store.wishes.request_removal(cluster, actor=ACTOR)
    assert await code_of(store.write(cluster, "paint-shop")) == "name_immutable"


async def test_preconditions_guard_the_configuration(store: Store) -> None:
    cluster = await store.create()
    body = {"name": "press-shop", "namespace": "other"}
    stale = Precondition(match=frozenset({"stale"}))
    with pytest.raises(PreconditionFailed):
        await store.wishes.write_configuration(cluster, body, actor=ACTOR, precondition=stale)
    with pytest.raises(PreconditionFailed):
        await store.wishes.request_removal(cluster, actor=ACTOR, precondition=stale)
    with pytest.raises(PreconditionFailed):
        await store.wishes.write_settings(cluster, {}, actor=ACTOR, precondition=Precondition(match=frozenset("*")))
    current = Precondition(match=frozenset({str((await store.row(cluster)).spec_etag)}))
    assert (await store.wishes.write_configuration(cluster, body, actor=ACTOR, precondition=current)).changed


async def test_removal_deletes_the_entry_and_keeps_the_rest(store: Store) -> None:
    cluster = await store.create(settings=LABELLED)
    assert await store.wishes.request_removal(cluster, actor=ACTOR)
    assert not await store.wishes.request_removal(cluster, actor=ACTOR)
    assert await entry(store, cluster) is None
    row = await store.row(cluster)
    assert (row.desired, row.spec.name, row.spec_etag, row.change) == (Desired.REMOVED, "press-shop", None, 2)
    assert (await wanted(store, cluster)).desired is Desired.REMOVED
    assert await store.kinds(cluster) == ["cluster.created", "cluster.removed"]
    with pytest.raises(NotFound):
        await store.wishes.request_removal(uuid4(), actor=ACTOR)


async def test_the_entry_written_again_is_a_recreation(store: Store) -> None:
    cluster = await store.create()
    await store.wishes.request_removal(cluster, actor=ACTOR)
    written = await store.write(cluster)
    assert (written.recreated, written.created, written.changed) == (True, False, True)
    assert (written.row.desired, written.row.commissioning, written.row.generation) == (Desired.PRESENT, 2, 1)
    assert await store.kinds(cluster) == ["cluster.created", "cluster.removed", "cluster.recreated"]


async def test_recreation_on_the_same_hardware_keeps_what_is_known_of_it(store: Store) -> None:
    cluster = await store.joined()
    before = await store.row(cluster)
    row = await store.wishes.request_recreation(
        cluster, actor=ACTOR, new_hardware=False, changes={"values": {"replicas": 3}}
    )
    assert (row.commissioning, row.generation, row.change) == (2, 1, before.change + 1)
    assert row.spec.values == {"replicas": 3}
    assert row.acceptance is Acceptance.ACCEPTED
    assert {one.state for one in await store.edge_access.credentials(cluster)} == {CredentialState.ACTIVE}


async def test_recreation_of_a_removed_cluster_puts_the_entry_back(store: Store) -> None:
    cluster = await store.create()
    await store.wishes.request_removal(cluster, actor=ACTOR)
    row = await store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=False)
    written = await entry(store, cluster)
    assert written is not None
    assert (row.desired, row.commissioning, row.spec_etag) == (Desired.PRESENT, 2, written.etag)


async def test_one_wish_to_recreate_happens_once(store: Store) -> None:
    cluster, wish = await store.create(), uuid4()
    for _ in range(2):
        row = await store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True, request=wish)
        assert (row.generation, row.commissioning) == (2, 2)
    other = await store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True, request=uuid4())
    assert other.generation == 3


async def test_recreation_for_new_hardware_forgets_the_old(store: Store) -> None:
    cluster = await store.joined()
    await store.edge_reports.write_status(
        cluster, {"hosts": []}, certificate=None, certificate_problem="too weak", generation=1, actor="agent"
    )
    await store.token(cluster, "unspent")
    staged = await store.change(cluster)
    await store.staging.stage([staged])
    before = await store.row(cluster)

    row = await store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)

    assert (row.generation, row.commissioning, row.change) == (2, 2, before.change + 1)
    assert (row.acceptance, row.short_code, row.edge_status) == (Acceptance.NONE, None, None)
    assert (row.lease.state, row.lease.last_heard) == (LeaseState.NEVER, None)
    assert row.lease.epoch > before.lease.epoch
    assert await entry(store, cluster, APP_CLUSTER_STATUS) is None
    assert await store.edge_access.credentials(cluster) == []
    unspent = await store.edge_access.token("unspent")
    assert unspent is not None
    assert unspent.state is TokenState.REPLACED
    [refused] = await store.staging.request(staged.request)
    assert (refused.state, refused.ciphertext) == (StagedState.REFUSED, None)
    reading = await wanted(store, cluster)
    assert (reading.bootstrapped, reading.edge_reported_at, reading.certificate_problem) == (False, None, None)
    assert reading.secrets_pending == 0


async def test_a_recreation_that_cannot_be_changes_nothing(store: Store) -> None:
    cluster = await store.joined()
    before = await store.row(cluster)
    for changes in ({"bare": "no"}, {"chart": str(uuid4())}):
        with pytest.raises(Invalid):
            await store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True, changes=changes)
    assert await store.row(cluster) == before


async def test_pausing_is_recorded_once(store: Store) -> None:
    cluster = await store.create()
    await store.wishes.set_paused(cluster, paused=True, reason="audit week", actor=ACTOR)
    await store.wishes.set_paused(cluster, paused=True, reason="audit week", actor=ACTOR)
    reading = await wanted(store, cluster)
    assert (reading.paused, reading.paused_reason, reading.change) == (True, "audit week", 2)
    await store.wishes.set_paused(cluster, paused=False, reason="ignored", actor=ACTOR)
    reading = await wanted(store, cluster)
    assert (reading.paused, reading.paused_reason, reading.change) == (False, "", 3)
    assert await store.kinds(cluster) == ["cluster.created", "cluster.paused", "cluster.resumed"]


async def test_a_late_pause_undoes_no_later_resume(store: Store) -> None:
    cluster = await store.create()
    first = (await store.row(cluster)).change
    await store.wishes.set_paused(cluster, paused=True, reason="audit week", actor=ACTOR, seen=first)
    await store.write(cluster, values={"a": 1})  # any other change overtakes nobody
    second = (await store.row(cluster)).change
    await store.wishes.set_paused(cluster, paused=False, reason="", actor=ACTOR, seen=second)
    for seen in (first, first + 1):
        late = store.wishes.set_paused(cluster, paused=True, reason="audit week", actor=ACTOR, seen=seen)
        assert await code_of(late) == "overtaken"
    await store.wishes.set_paused(cluster, paused=False, reason="", actor=ACTOR, seen=first)  # it is so already
    assert not (await store.row(cluster)).paused
    third = (await store.row(cluster)).change
    await store.wishes.set_paused(cluster, paused=True, reason="once more", actor=ACTOR, seen=third)
    await store.wishes.set_paused(cluster, paused=False, reason="", actor=ACTOR)  # by Temporal's own tools
    assert (await store.kinds(cluster))[-2:] == ["cluster.paused", "cluster.resumed"]


async def test_a_kubernetes_cluster_that_moved_on_keeps_a_removed_one_from_coming_back(store: Store) -> None:
    old = await store.commissioned("old")
    await store.registered(old, uid="uid-1", token_id="t-old")
    await store.wishes.request_removal(old, actor=ACTOR)
    new = await store.commissioned("new")
    await store.registered(new, uid="uid-1", token_id="t-new")
    assert await code_of(store.write(old, "old")) == "duplicate_identity"
    await store.wishes.request_deletion(new, actor=ACTOR)
    assert (await store.write(old, "old")).recreated
    assert await code_of(store.wishes.undelete(new, actor=ACTOR)) == "duplicate_identity"


async def test_of_two_creations_of_one_name_one_wins(two: tuple[Store, Store]) -> None:
    outcomes = await asyncio.gather(
        *(two[number % 2].create(name) for number, name in enumerate(["press-shop", "Press-Shop"] * 3)),
        return_exceptions=True,
    )
    won = [outcome for outcome in outcomes if isinstance(outcome, UUID)]
    lost = [outcome for outcome in outcomes if not isinstance(outcome, UUID)]
    assert len(won) == 1
    assert all(isinstance(one, Conflict) and one.code == "name_taken" for one in lost)
    assert await two[0].directory.find("press-shop") == won[0]


async def test_a_deletion_and_a_configuration_never_both_win(two: tuple[Store, Store]) -> None:
    for round_ in range(4):
        cluster = await two[0].create(f"shop-{round_}")
        deletion, writing = await asyncio.gather(
            two[0].wishes.request_deletion(cluster, actor=ACTOR),
            two[1].write(cluster, f"shop-{round_}", bare=True),
            return_exceptions=True,
        )
        assert not isinstance(deletion, BaseException)
        if isinstance(writing, BaseException):
            assert isinstance(writing, Conflict)
            assert writing.code == "deleting"
        assert await entry(two[0], cluster) is None
        assert (await wanted(two[0], cluster)).desired is Desired.DELETED


async def test_a_credential_of_each_role_is_enough_to_be_bootstrapped(store: Store) -> None:
    cluster = await store.commissioned()
    await store.registered(cluster)
    assert (await wanted(store, cluster)).bootstrapped
    assert {one.role for one in await store.edge_access.credentials(cluster)} == set(Role)
    await store.edge_access.revoke(cluster, actor=ACTOR)
    assert (await wanted(store, cluster)).bootstrapped


async def test_a_recreation_goes_by_the_schema_that_holds_when_it_is_recorded(two: tuple[Store, Store]) -> None:
    """Another process changes the schema, and the recreation waits for it to end."""
    store, other = two
    cluster = await store.create(values={"replicas": 1})
    schema = await store.config.get(APP_CONFIG_SCHEMA, APP_CLUSTER_CONFIGURATION)
    assert schema is not None
    stricter = schema.body | {"allOf": [{"required": ["chart"]}]}
    async with other.database.write() as connection:
        at = await other.database.now(connection)
        await put_entry(connection, at, APP_CONFIG_SCHEMA, APP_CLUSTER_CONFIGURATION, stricter)
        recreating = asyncio.create_task(
            store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=False, changes={"bare": True})
        )
        await asyncio.wait({recreating}, timeout=0.5)
        assert not recreating.done()
    assert await code_of(recreating) == "schema_violation"
    assert "cluster.recreated" not in await store.kinds(cluster)
