"""Creating and changing a cluster is one use case, whichever door a wish comes through."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from database_stores import ACTOR, Store, code_of, entry
from shared_statements import open_database

from edgewright.application.configurations import (
    PATCH_ATTEMPTS,
    ClusterConfigurations,
    NewConfiguration,
    despite_races,
)
from edgewright.domain.cluster import StepName
from edgewright.domain.wellknown import OBJECT_DEFAULT_CHART
from edgewright.errors import Invalid, PreconditionFailed
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import Precondition

WISH = NewConfiguration(
    name="press-shop", namespace="edgewright", chart=None, bare=False, values={}, settings={"labels": {"line": "4"}}
)


@dataclass
class CheckedBodies:
    """Stands for the charts, which another test reads: notes what was checked, and lets something happen then.

    Args:
        meanwhile: what others do while a configuration is checked; once each.
    """

    bodies: list[Mapping[str, Any]] = field(default_factory=list)
    meanwhile: list[Callable[[], Awaitable[object]]] = field(default_factory=list)

    async def check_configuration(self, cluster: UUID, body: Mapping[str, Any]) -> None:
        self.bodies.append(body)
        if self.meanwhile:
            await self.meanwhile.pop(0)()


@dataclass
class ConfigurationStage:
    store: Store
    checked: CheckedBodies
    configurations: ClusterConfigurations

    async def create(self, wish: NewConfiguration = WISH, cluster: UUID | None = None) -> ClusterRow:
        return await self.configurations.create(cluster or uuid4(), wish, actor=ACTOR)

    async def change(self, cluster: UUID, patch: dict[str, Any], match: str | None = None) -> ClusterRow:
        precondition = Precondition(match=None if match is None else frozenset({match}))
        return await self.configurations.change(cluster, patch, actor=ACTOR, precondition=precondition)

    async def recreate(self, cluster: UUID, changes: dict[str, Any]) -> ClusterRow:
        return await self.configurations.recreate(cluster, changes, actor=ACTOR, new_hardware=False, request=uuid4())

    def others_write(self, cluster: UUID, times: int) -> None:
        """Somebody else writes the values, before each of the next writes."""

        def write(number: int) -> Callable[[], Awaitable[object]]:
            return lambda: self.store.write(cluster, values={"theirs": number})

        self.checked.meanwhile = [write(number) for number in range(times)]


@pytest.fixture
async def stage(fresh_database: Path, tmp_path: Path) -> AsyncIterator[ConfigurationStage]:
    file = tmp_path / "edgewright.db"
    shutil.copy(fresh_database, file)
    async with open_database(f"sqlite+aiosqlite:///{file}") as database:
        store, checked = Store.on(database), CheckedBodies()
        configurations = ClusterConfigurations(store.directory, store.wishes, store.config, checked)
        yield ConfigurationStage(store, checked, configurations)


async def test_a_cluster_is_created_with_what_was_said_and_the_defaults(stage: ConfigurationStage) -> None:
    row = await stage.create(replace(WISH, chart=str(OBJECT_DEFAULT_CHART), bare=True, values={"a": 1}))
    written = await entry(stage.store, row.uuid)
    assert written is not None
    body = {"name": "press-shop", "namespace": "edgewright"}
    whole = {**body, "chart": str(OBJECT_DEFAULT_CHART), "bare": True, "values": {"a": 1}}
    assert (written.body, row.settings.labels, row.settings.lease_seconds > 0) == (whole, {"line": "4"}, True)
    assert stage.checked.bodies == [whole]
    other = await stage.create(replace(WISH, name="other"))
    least = await entry(stage.store, other.uuid)
    assert least is not None
    assert least.body == {**body, "name": "other"}


async def test_the_same_request_finds_the_cluster_that_it_has_made(stage: ConfigurationStage) -> None:
    row = await stage.create()
    assert (await stage.create(cluster=row.uuid)).uuid == row.uuid
    assert await code_of(stage.create(replace(WISH, name="other"), row.uuid)) == "name_taken"
    await stage.store.wishes.request_deletion(row.uuid, actor=ACTOR, force=True)
    await stage.store.steps.remove_central_entries(await stage.store.fence(row.uuid), StepName.REMOVE_SETUP_STATUS)
    assert (await stage.create(cluster=row.uuid)).uuid != row.uuid, "that one has lived and gone"


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (replace(WISH, name="Not a name", chart="none"), "name_invalid"),
        (replace(WISH, chart="none", settings={"lease_seconds": "long"}), "chart_unknown"),
        (replace(WISH, settings={"lease_seconds": "long"}), "schema_violation"),
    ],
)
async def test_what_cannot_be_a_cluster_is_refused_before_its_values_are_checked(
    stage: ConfigurationStage, wish: NewConfiguration, code: str
) -> None:
    assert await code_of(stage.create(wish)) == code
    assert stage.checked.bodies == []


async def test_a_patch_without_a_revision_means_what_is_there_now(stage: ConfigurationStage) -> None:
    cluster = (await stage.create()).uuid
    stage.others_write(cluster, PATCH_ATTEMPTS - 1)
    row = await stage.change(cluster, {"values": {"ours": 1}, "labels": {"site": "leeds"}})
    assert row.spec.values == {"theirs": PATCH_ATTEMPTS - 2, "ours": 1}
    assert row.settings.labels == {"line": "4", "site": "leeds"}
    stage.others_write(cluster, PATCH_ATTEMPTS)
    with pytest.raises(PreconditionFailed):
        await stage.change(cluster, {"values": {"ours": 2}})


async def test_a_patch_with_a_revision_means_that_one(stage: ConfigurationStage) -> None:
    row = await stage.create()
    stage.others_write(row.uuid, 1)
    with pytest.raises(PreconditionFailed):
        await stage.change(row.uuid, {"values": {"ours": 1}}, match=row.spec_etag)
    assert len(stage.checked.bodies) == 2, "for creating it, and for one attempt"
    assert (await stage.store.row(row.uuid)).spec.values == {"theirs": 0}


async def test_of_a_removed_cluster_only_the_settings_change(stage: ConfigurationStage) -> None:
    cluster = (await stage.create()).uuid
    await stage.store.wishes.request_removal(cluster, actor=ACTOR)
    assert (await stage.change(cluster, {"labels": {"line": None}})).settings.labels == {}
    patches: list[dict[str, Any]] = [{}, {"values": {}}, {"labels": {}, "bare": True}]
    for patch in patches:
        assert await code_of(stage.change(cluster, patch)) == "removed"
    await stage.store.wishes.request_deletion(cluster, actor=ACTOR)
    assert await code_of(stage.change(cluster, {"values": {}})) == "deleting"


async def test_a_null_takes_the_namespace_back_to_its_default(stage: ConfigurationStage) -> None:
    cluster = (await stage.create(replace(WISH, namespace="line-4"))).uuid
    assert (await stage.change(cluster, {"namespace": None})).spec.namespace == "edgewright"


async def test_a_recreation_checks_values_only_if_it_changes_them(stage: ConfigurationStage) -> None:
    cluster = (await stage.create(replace(WISH, values={"a": 1}))).uuid
    stage.checked.bodies.clear()
    await stage.recreate(cluster, {"bare": True})
    assert stage.checked.bodies == []
    row = await stage.recreate(cluster, {"values": {"b": 2}})
    assert [body["values"] for body in stage.checked.bodies] == [{"a": 1, "b": 2}]
    assert (row.spec.bare, row.spec.values) == (True, {"a": 1, "b": 2})
    assert await code_of(stage.recreate(cluster, {"chart": "none"})) == "chart_unknown"


async def test_a_whole_configuration_is_checked_and_written(stage: ConfigurationStage) -> None:
    cluster = (await stage.create()).uuid
    body = {"name": "press-shop", "namespace": "edgewright", "values": {"a": 1}}
    assert (await stage.configurations.write(cluster, body, actor=ACTOR)).changed
    assert not (await stage.configurations.write(cluster, body, actor=ACTOR)).changed
    assert stage.checked.bodies[1:] == [body, body]
    wrong = stage.configurations.write(cluster, {**body, "name": "Not a name"}, actor=ACTOR)
    assert await code_of(wrong) == "name_invalid"


async def test_only_a_race_is_run_again() -> None:
    tried = 0

    async def attempt() -> None:
        nonlocal tried
        tried += 1
        raise Invalid("It is wrong.", code="wrong")

    assert await code_of(despite_races(attempt)) == "wrong"
    assert tried == 1


async def test_settings_that_others_change_meanwhile_are_kept(stage: ConfigurationStage) -> None:
    row = await stage.create()

    async def label() -> None:
        stage.checked.meanwhile = []
        await stage.change(row.uuid, {"labels": {"theirs": "1"}})

    stage.checked.meanwhile = [label]
    changed = await stage.change(row.uuid, {"labels": {"ours": "1"}})
    assert changed.settings.labels == {"line": "4", "theirs": "1", "ours": "1"}


async def test_a_revision_is_that_of_configuration_and_settings(stage: ConfigurationStage) -> None:
    row = await stage.create()
    assert (await stage.change(row.uuid, {"labels": {"line": "4"}})).revision == row.revision, "nothing has changed"
    labelled = await stage.change(row.uuid, {"labels": {"line": "5"}}, match=row.revision)
    assert (labelled.spec_etag, labelled.revision == row.revision) == (row.spec_etag, False)
    written = await stage.change(row.uuid, {"values": {"a": 1}}, match=labelled.spec_etag)
    for stale in (row.revision, labelled.revision, row.spec_etag):
        with pytest.raises(PreconditionFailed):
            await stage.change(row.uuid, {"labels": {"line": "6"}}, match=stale)
    assert (await stage.change(row.uuid, {"labels": {"line": "6"}}, match=written.revision)).settings.labels == {
        "line": "6"
    }


async def test_a_named_revision_holds_until_the_change_is_written(stage: ConfigurationStage) -> None:
    row = await stage.create()

    async def label() -> None:
        stage.checked.meanwhile = []
        await stage.change(row.uuid, {"labels": {"theirs": "1"}})

    stage.checked.meanwhile = [label]
    with pytest.raises(PreconditionFailed):
        await stage.change(row.uuid, {"values": {"ours": 1}}, match=row.revision)
