"""The Config Store's promises."""

import asyncio
import json
from uuid import UUID, uuid4

import pytest
from database_stores import ACTOR, Store

from edgewright.domain.default_entries import default_entries
from edgewright.domain.events import EventKind
from edgewright.domain.wellknown import (
    APP_CLUSTER_CONFIGURATION,
    APP_CLUSTER_SETTINGS,
    APP_CLUSTER_STATUS,
    APP_CONFIG_SCHEMA,
    APP_OBJECT_INFO,
    CLASS_APPLICATION,
    CLASS_EDGE_ACCOUNT,
    CLASS_EDGE_CLUSTER,
    CLASS_GIT_REPOSITORY,
)
from edgewright.errors import Conflict, Invalid, NotFound, PreconditionFailed, Refused, Stalled
from edgewright.ports.config_store import (
    DistinctAmong,
    EntryNews,
    EqualEntry,
    NewEntry,
    Precondition,
    TooManyEntries,
)

FREE_APP = UUID("11111111-2222-4333-8444-555555555555")
"""An Application that no schema knows: it takes anything."""


async def an_object(store: Store) -> UUID:
    return (await store.config.create_object(CLASS_GIT_REPOSITORY))[0]


async def test_what_is_put_is_read_back(store: Store) -> None:
    object_ = await an_object(store)
    body = {"text": "Wärme ✓", "order": {"z": 1, "a": [None, True, 1.5]}}
    written = await store.config.put(FREE_APP, object_, body, actor=ACTOR)
    read = await store.config.get(FREE_APP, object_)
    assert read == written
    assert list(read.body["order"]) == ["z", "a"]
    assert UUID(read.etag)


async def test_entries_are_read_together_in_the_order_that_was_asked_for(store: Store) -> None:
    first, second = [await store.config.put(FREE_APP, await an_object(store), {"n": n}, actor=ACTOR) for n in (1, 2)]
    nowhere = (FREE_APP, uuid4())
    places = [(FREE_APP, second.object), nowhere, (FREE_APP, first.object)]
    assert await store.config.get_each(places) == [second, None, first]


async def test_entries_of_a_class_are_those_of_the_objects_that_were_made_of_it(store: Store) -> None:
    first, second = [await store.config.put(FREE_APP, await an_object(store), {"n": n}, actor=ACTOR) for n in (1, 2)]
    await store.config.put(APP_OBJECT_INFO, first.object, {"name": "of another Application"}, actor=ACTOR)
    other, _ = await store.config.create_object(CLASS_EDGE_ACCOUNT)
    await store.config.add_member(CLASS_GIT_REPOSITORY, other)
    await store.config.put(FREE_APP, other, {"n": 3}, actor=ACTOR)
    assert await store.config.entries_of(FREE_APP, CLASS_GIT_REPOSITORY) == [first, second]
    changed = await store.config.put(FREE_APP, first.object, {"n": 4}, actor=ACTOR)
    assert await store.config.entries_of(FREE_APP, CLASS_GIT_REPOSITORY) == [second, changed]


async def test_of_many_who_write_the_same_at_once_one_gets_a_distinct_entry(store: Store) -> None:
    objects, distinct = [await an_object(store) for _ in range(8)], DistinctAmong(CLASS_GIT_REPOSITORY, 100)
    outcomes = await asyncio.gather(
        *(store.config.put(FREE_APP, each, {"path": "a"}, actor=ACTOR, distinct=distinct) for each in objects),
        return_exceptions=True,
    )
    refused = [each for each in outcomes if isinstance(each, EqualEntry)]
    [written] = [each for each in outcomes if not isinstance(each, BaseException)]
    assert len(refused) == len(objects) - 1
    assert await store.config.entries_of(FREE_APP, CLASS_GIT_REPOSITORY) == [written]
    again = await store.config.put(FREE_APP, written.object, {"path": "a"}, actor=ACTOR, distinct=distinct)
    assert again == written


async def test_a_class_has_no_more_entries_than_it_may_whoever_writes_at_once(store: Store) -> None:
    objects, distinct = [await an_object(store) for _ in range(6)], DistinctAmong(CLASS_GIT_REPOSITORY, 4)
    outcomes = await asyncio.gather(
        *(
            store.config.put(FREE_APP, each, {"n": number}, actor=ACTOR, distinct=distinct)
            for number, each in enumerate(objects)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(each, TooManyEntries) for each in outcomes) == 2
    there = await store.config.entries_of(FREE_APP, CLASS_GIT_REPOSITORY)
    assert len(there) == 4
    changed = await store.config.put(FREE_APP, there[0].object, {"n": 9}, actor=ACTOR, distinct=distinct)
    assert changed.body == {"n": 9}


async def test_the_revision_is_told_without_the_body(store: Store) -> None:
    object_ = await an_object(store)
    assert await store.config.etag(FREE_APP, object_) is None
    for body in ({"n": 1}, {"n": 2}):
        written = await store.config.put(FREE_APP, object_, body, actor=ACTOR)
        assert await store.config.etag(FREE_APP, object_) == written.etag
    await store.config.delete(FREE_APP, object_, actor=ACTOR)
    assert await store.config.etag(FREE_APP, object_) is None


async def test_null_is_a_body_and_not_the_absence_of_one(store: Store) -> None:
    object_ = await an_object(store)
    await store.config.put(FREE_APP, object_, None, actor=ACTOR)
    read = await store.config.get(FREE_APP, object_)
    assert read is not None
    assert read.body is None


async def test_an_equal_body_keeps_the_revision(store: Store) -> None:
    object_ = await an_object(store)
    first = await store.config.put(FREE_APP, object_, {"a": 1, "b": 2}, actor=ACTOR)
    again = await store.config.put(FREE_APP, object_, {"b": 2, "a": 1}, actor=ACTOR)
    assert again == first
    assert len(await store.config.changes(after=first.position)) == 0


async def test_true_is_not_one(store: Store) -> None:
    object_ = await an_object(store)
    first = await store.config.put(FREE_APP, object_, {"a": True}, actor=ACTOR)
    second = await store.config.put(FREE_APP, object_, {"a": 1}, actor=ACTOR)
    assert second.etag != first.etag


async def test_a_body_is_checked_against_the_schema_of_its_application(store: Store) -> None:
    object_ = await an_object(store)
    with pytest.raises(Invalid) as refusal:
        await store.config.put(APP_OBJECT_INFO, object_, {"name": 7}, actor=ACTOR)
    assert (refusal.value.code, refusal.value.where) == ("schema_violation", "/name")
    assert await store.config.get(APP_OBJECT_INFO, object_) is None


async def test_a_changed_schema_counts_at_once(store: Store) -> None:
    object_ = await an_object(store)
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    await store.config.put(FREE_APP, object_, {"size": "big"}, actor=ACTOR)
    schema = {"properties": {"size": {"type": "integer"}}}
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, schema, actor=ACTOR)
    with pytest.raises(Invalid):
        await store.config.put(FREE_APP, object_, {"size": "bigger"}, actor=ACTOR)
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, {}, actor=ACTOR)
    await store.config.put(FREE_APP, object_, {"size": "bigger"}, actor=ACTOR)


async def test_formats_are_checked(store: Store) -> None:
    object_ = await an_object(store)
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    schema = {"properties": {"a/b": {"type": "string", "format": "uuid"}}}
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, schema, actor=ACTOR)
    with pytest.raises(Invalid) as refusal:
        await store.config.put(FREE_APP, object_, {"a/b": "no uuid"}, actor=ACTOR)
    assert refusal.value.where == "/a~1b"


async def test_what_is_no_schema_cannot_become_one(store: Store) -> None:
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    with pytest.raises(Invalid) as refusal:
        await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, {"type": "sizeable"}, actor=ACTOR)
    assert (refusal.value.code, refusal.value.where) == ("schema_violation", "/type")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:1/schema"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"type": "object", "allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
    ],
)
async def test_a_schema_that_nothing_can_be_checked_against_is_refused(store: Store, schema: object) -> None:
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    with pytest.raises(Invalid) as refusal:
        await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, schema, actor=ACTOR)
    assert refusal.value.code == "schema_violation"


PATTERNS: list[tuple[object, object]] = [
    ({"pattern": "^(a+)+$"}, "a" * 5000 + "b"),
    ({"patternProperties": {"^(a|a)*$": True}, "additionalProperties": False}, {"a" * 5000 + "b": 1}),
    ({"propertyNames": {"pattern": "^(a|aa)+$"}}, {"a" * 5000 + "b": 1}),
]


@pytest.mark.parametrize(("schema", "body"), PATTERNS)
async def test_a_pattern_takes_time_in_proportion_to_the_text(store: Store, schema: object, body: object) -> None:
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, schema, actor=ACTOR)
    with pytest.raises(Invalid) as refusal:  # an engine that tries again and again does not come back
        await store.config.put(FREE_APP, FREE_APP, body, actor=ACTOR)
    assert refusal.value.code == "schema_violation"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^(?=.*[0-9]).+$"}}},
        {"$defs": {"twice": {"pattern": r"^(a+)\1$"}}},
        {"allOf": [{"patternProperties": {"(?<!a)b": {}}}]},
        {"pattern": "a" * 3000},
        {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False},
    ],
)
async def test_a_pattern_that_would_need_more_time_is_refused_at_the_door(store: Store, schema: object) -> None:
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    with pytest.raises(Invalid) as refusal:
        await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, schema, actor=ACTOR)
    assert refusal.value.code == "schema_violation"
    assert "RE2" in (refusal.value.hint or "")


async def test_what_only_looks_like_a_pattern_may_say_anything(store: Store) -> None:
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    schema = {"properties": {"pattern": {"type": "string"}}, "examples": [{"pattern": "(?=a)"}]}
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, schema, actor=ACTOR)
    await store.config.put(FREE_APP, FREE_APP, {"pattern": "(?=a)"}, actor=ACTOR)


def doubling(times: int) -> dict[str, object]:
    """A schema that looks at a value twice, each time twice, and so on."""
    parts = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(times)}
    return {"$ref": "#/$defs/a0", "$defs": {**parts, f"a{times}": {}}}


async def test_a_schema_that_doubles_its_work_at_each_level_is_refused(store: Store) -> None:
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    with pytest.raises(Invalid) as refusal:
        await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, doubling(60), actor=ACTOR)
    assert refusal.value.code == "schema_too_costly"
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, doubling(3), actor=ACTOR)


async def test_an_entry_that_takes_too_many_steps_is_refused(store: Store) -> None:
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    schema = {"properties": {"of": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "type": "object"}
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, schema, actor=ACTOR)
    body: object = 1
    for _ in range(60):
        body = {"of": body}
    with pytest.raises(Invalid) as refusal:
        await store.config.put(FREE_APP, FREE_APP, body, actor=ACTOR)
    assert refusal.value.code == "schema_too_costly"


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([{"a": n} for n in range(20_000)], True),
        ([{"a": 1}, {"a": 1.0}], False),
        ([1, True, "1", [1], None, 0, False], True),
        ([{"a": [1, 2], "b": 1}, {"b": 1, "a": [1, 2]}], False),
    ],
)
async def test_unique_items_are_told_apart_without_comparing_each_with_each(
    store: Store, items: list[object], *, unique: bool
) -> None:
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, {"uniqueItems": True}, actor=ACTOR)
    if unique:
        await store.config.put(FREE_APP, FREE_APP, items, actor=ACTOR)
    else:
        with pytest.raises(Invalid):
            await store.config.put(FREE_APP, FREE_APP, items, actor=ACTOR)


async def test_a_number_beyond_all_measure_does_not_fit(store: Store) -> None:
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, {"multipleOf": 0.1}, actor=ACTOR)
    with pytest.raises(Invalid) as refusal:
        await store.config.put(FREE_APP, FREE_APP, 10**400, actor=ACTOR)
    assert refusal.value.code == "schema_violation"


async def test_a_schema_that_refers_elsewhere_is_not_fetched(store: Store) -> None:
    object_ = await an_object(store)
    await store.config.create_object(CLASS_APPLICATION, FREE_APP)
    schema = {"properties": {"a": {"$ref": "http://127.0.0.1:1/schema"}}}
    await store.config.put(APP_CONFIG_SCHEMA, FREE_APP, schema, actor=ACTOR)
    with pytest.raises(Stalled) as refusal:
        await store.config.put(FREE_APP, object_, {"a": 1}, actor=ACTOR)
    assert refusal.value.code == "schema_broken"


async def test_numbers_that_json_lacks_are_refused(store: Store) -> None:
    object_ = await an_object(store)
    with pytest.raises(Invalid):
        await store.config.put(FREE_APP, object_, {"a": float("nan")}, actor=ACTOR)


async def test_an_unknown_object_is_refused(store: Store) -> None:
    with pytest.raises(NotFound) as refusal:
        await store.config.put(FREE_APP, uuid4(), {}, actor=ACTOR)
    assert refusal.value.code == "object_unknown"


async def test_an_object_of_another_class_is_refused(store: Store) -> None:
    object_ = await an_object(store)
    with pytest.raises(Conflict) as refusal:
        await store.config.put(APP_CLUSTER_STATUS, object_, {"hosts": []}, actor=ACTOR)
    assert refusal.value.code == "wrong_class"


@pytest.mark.parametrize("app", [APP_CLUSTER_CONFIGURATION, APP_CLUSTER_SETTINGS])
async def test_entries_that_change_a_cluster_are_written_through_the_registry(store: Store, app: UUID) -> None:
    cluster = await store.create()
    with pytest.raises(Refused) as refusal:
        await store.config.put(app, cluster, {}, actor=ACTOR)
    assert refusal.value.code == "use_clusters"
    with pytest.raises(Refused) as refusal:
        await store.config.delete(app, cluster, actor=ACTOR)
    assert refusal.value.code == "use_clusters"


async def test_preconditions_decide_on_what_is_there(store: Store) -> None:
    object_ = await an_object(store)
    any_ = frozenset({"*"})
    with pytest.raises(PreconditionFailed):
        await store.config.put(FREE_APP, object_, 1, actor=ACTOR, precondition=Precondition(match=any_))
    first = await store.config.put(FREE_APP, object_, 1, actor=ACTOR, precondition=Precondition(none_match=any_))
    with pytest.raises(PreconditionFailed):
        await store.config.put(FREE_APP, object_, 2, actor=ACTOR, precondition=Precondition(none_match=any_))
    mine = Precondition(match=frozenset({first.etag}))
    second = await store.config.put(FREE_APP, object_, 2, actor=ACTOR, precondition=mine)
    with pytest.raises(PreconditionFailed):
        await store.config.delete(FREE_APP, object_, actor=ACTOR, precondition=mine)
    either = Precondition(match=frozenset({"other", second.etag}))
    assert await store.config.delete(FREE_APP, object_, actor=ACTOR, precondition=either)
    assert not await store.config.delete(FREE_APP, object_, actor=ACTOR)


async def test_the_feed_tells_of_each_write_in_order(store: Store) -> None:
    object_ = await an_object(store)
    start = max(change.position for change in await store.config.changes(after=0))
    first = await store.config.put(FREE_APP, object_, 1, actor=ACTOR)
    second = await store.config.put(FREE_APP, object_, 2, actor=ACTOR)
    await store.config.delete(FREE_APP, object_, actor=ACTOR)
    told = await store.config.changes(after=start)
    assert [change.etag for change in told] == [first.etag, second.etag, None]
    assert [change.position for change in told] == sorted({change.position for change in told})
    assert await store.config.changes(after=told[0].position, limit=1) == told[1:2]


async def test_writes_and_deletions_are_audited(store: Store) -> None:
    object_ = await an_object(store)
    last = await store.audit.last_position()
    await store.config.put(FREE_APP, object_, {"a": "hidden"}, actor=ACTOR)
    await store.config.delete(FREE_APP, object_, actor=ACTOR)
    events = await store.audit.events(after=last)
    assert [(event.kind, event.actor) for event in events] == [("entry.put", ACTOR), ("entry.deleted", ACTOR)]
    assert "hidden" not in str(events)


async def test_a_write_may_be_told_in_words_of_its_own(store: Store) -> None:
    object_ = await an_object(store)
    last = await store.audit.last_position()
    made = EntryNews(EventKind.REPOSITORY_CREATED, "It was made.", {"repository": "shared/a"})
    gone = EntryNews(EventKind.REPOSITORY_REMOVED, "It is gone.", {"repository": "shared/a"})
    for _ in range(2):
        entry = await store.config.put(FREE_APP, object_, {"a": 1}, actor=ACTOR, news=made)
    for _ in range(2):
        await store.config.delete(FREE_APP, object_, actor=ACTOR, news=gone)
    first, second = await store.audit.events(after=last)  # what changes nothing is told of never
    assert (first.kind, first.message, first.actor, first.cluster) == (made.kind, made.message, ACTOR, None)
    place = {"app": str(FREE_APP), "object": str(object_), "repository": "shared/a"}
    assert {**place, "etag": entry.etag}.items() <= first.detail.items()
    assert (second.kind, second.message, second.detail) == (gone.kind, gone.message, place)


async def test_bodies_of_an_application_come_page_by_page(store: Store) -> None:
    made = sorted([await an_object(store) for _ in range(3)])
    for object_ in made:
        await store.config.put(FREE_APP, object_, {"of": str(object_)}, actor=ACTOR)
    first = await store.config.bodies(FREE_APP, after=None, limit=2)
    rest = await store.config.bodies(FREE_APP, after=first[-1][0], limit=2)
    found = [(object_, json.loads(body)) for object_, body in (*first, *rest)]
    assert found == [(object_, {"of": str(object_)}) for object_ in made]


async def test_excerpts_of_an_application_leave_the_rest_of_the_bodies_behind(store: Store) -> None:
    made = sorted([await an_object(store) for _ in range(2)])
    bodies = [{"name": 'Wärme "✓"', "number": 1, "large": "x" * 100_000}, {"n": {"name": "inside"}, "at.all": "y"}]
    written = [
        await store.config.put(FREE_APP, object_, body, actor=ACTOR)
        for object_, body in zip(made, bodies, strict=True)
    ]
    await store.config.put(uuid4(), made[0], {"name": "of another Application"}, actor=ACTOR)
    found = await store.config.excerpts(FREE_APP, ["name", "at.all"])
    assert [(each.object, each.texts) for each in found] == [(made[0], ('Wärme "✓"', "")), (made[1], ("", "y"))]
    assert [each.modified_at for each in found] == [entry.modified_at for entry in written]
    assert await store.config.excerpts(uuid4(), ["name"]) == []


async def test_objects_of_an_application_are_listed_in_order(store: Store) -> None:
    made = [await an_object(store) for _ in range(3)]
    for object_ in made:
        await store.config.put(FREE_APP, object_, {}, actor=ACTOR)
    assert await store.config.objects(FREE_APP) == sorted(made)


async def test_an_object_is_created_once_and_keeps_its_class(store: Store) -> None:
    object_, new = await store.config.create_object(CLASS_EDGE_ACCOUNT)
    assert new
    assert await store.config.create_object(CLASS_EDGE_ACCOUNT, object_) == (object_, False)
    with pytest.raises(Conflict) as refusal:
        await store.config.create_object(CLASS_EDGE_CLUSTER, object_)
    assert refusal.value.code == "wrong_class"
    assert await store.config.class_of(object_) == CLASS_EDGE_ACCOUNT
    assert await store.config.class_of(uuid4()) is None


async def test_members_are_created_or_added(store: Store) -> None:
    klass, created = uuid4(), uuid4()
    await store.config.create_object(klass, created)
    added = await an_object(store)
    await store.config.add_member(klass, added)
    await store.config.add_member(klass, added)
    assert await store.config.members(klass) == sorted([created, added])
    await store.config.remove_member(klass, added)
    await store.config.remove_member(klass, added)
    await store.config.remove_member(klass, created)
    assert await store.config.members(klass) == [created]
    with pytest.raises(NotFound) as refusal:
        await store.config.add_member(klass, uuid4())
    assert refusal.value.code == "object_unknown"


async def test_installing_again_keeps_what_users_changed(store: Store) -> None:
    entries = [NewEntry(one.app, one.object, one.klass, one.body) for one in default_entries("Edgewright")]
    assert await store.config.install(entries) == 0
    changed, gone = entries[0], entries[1]
    await store.config.put(changed.app, changed.object, {"description": "ours"}, actor=ACTOR)
    await store.config.delete(gone.app, gone.object, actor=ACTOR)
    assert await store.config.install(entries) == 1
    kept = await store.config.get(changed.app, changed.object)
    back = await store.config.get(gone.app, gone.object)
    assert kept is not None
    assert kept.body == {"description": "ours"}
    assert back is not None
    assert back.body == gone.body


async def test_every_entry_of_a_first_start_fits_its_schema(store: Store) -> None:
    for entry in default_entries("Edgewright"):
        if entry.app not in {APP_CLUSTER_CONFIGURATION, APP_CLUSTER_SETTINGS}:
            await store.config.put(entry.app, entry.object, entry.body, actor=ACTOR)


async def test_of_many_writers_with_one_revision_one_wins(two: tuple[Store, Store]) -> None:
    object_ = await an_object(two[0])
    seen = await two[0].config.put(FREE_APP, object_, "start", actor=ACTOR)
    mine = Precondition(match=frozenset({seen.etag}))
    outcomes = await asyncio.gather(
        *(
            two[number % 2].config.put(FREE_APP, object_, number, actor=ACTOR, precondition=mine)
            for number in range(20)
        ),
        return_exceptions=True,
    )
    won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(won) == 1
    assert all(isinstance(lost, PreconditionFailed) for lost in outcomes if lost is not won[0])
    assert (await two[1].config.get(FREE_APP, object_)) == won[0]


async def test_a_reader_of_the_feed_misses_nothing_while_others_write(two: tuple[Store, Store]) -> None:
    objects = [await an_object(two[0]) for _ in range(4)]
    start = max(change.position for change in await two[0].config.changes(after=0))
    done = asyncio.Event()
    seen: list[int] = []

    async def follow() -> None:
        position = start
        while True:
            finished = done.is_set()
            batch = await two[1].config.changes(after=position)
            seen.extend(change.position for change in batch)
            position = seen[-1] if seen else start
            if finished and not batch:
                return

    async def write(store: Store, object_: UUID) -> None:
        for number in range(8):
            await store.config.put(FREE_APP, object_, number, actor=ACTOR)

    follower = asyncio.create_task(follow())
    await asyncio.gather(*(write(two[number % 2], object_) for number, object_ in enumerate(objects)))
    done.set()
    await follower
    assert seen == [change.position for change in await two[0].config.changes(after=start)]
    assert len(seen) == 32
