"""What happened, for ever."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest
from database_stores import Store
from sqlalchemy import delete, update
from sqlalchemy.exc import DBAPIError

from edgewright.adapters.database.tables import events
from edgewright.ports.audit import EventFilter, EventKind, NewEvent


def event(cluster: object = None, message: str = "It happened.", **more: object) -> NewEvent:
    values = {"id": uuid4(), "cluster": cluster, "actor": "centre", "kind": "test.event", "message": message}
    return NewEvent.model_validate(values | more)


async def test_an_event_is_read_as_it_was_written(timed: Store) -> None:
    cluster = uuid4()
    written = event(cluster, "Größer als vorher.", detail={"count": 3, "ratio": 0.5, "yes": True, "none": None})
    await timed.audit.append(written)
    [read] = await timed.audit.timeline(cluster)
    assert read.model_dump(exclude={"position", "at"}) == written.model_dump()
    assert read.at == timed.clock.at
    assert read.position == await timed.audit.last_position()


async def test_an_event_is_written_once_however_often_it_is_told(two: tuple[Store, Store]) -> None:
    once = event(uuid4())
    await asyncio.gather(*(store.audit.append(once) for store in two * 3))
    assert len(await two[0].audit.timeline(once.cluster or uuid4())) == 1


@pytest.mark.parametrize(
    "statement", [update(events).values(message="never happened"), delete(events)], ids=["update", "delete"]
)
async def test_the_table_itself_refuses_to_forget(store: Store, statement: object) -> None:
    await store.audit.append(event())
    before = await store.audit.events(after=0)
    with pytest.raises(DBAPIError, match="never changed"):
        async with store.database.write() as connection:
            await connection.execute(statement)  # type: ignore[call-overload] # an UPDATE or a DELETE
    assert await store.audit.events(after=0) == before


async def test_a_timeline_resumes_behind_a_position(store: Store) -> None:
    cluster, other = uuid4(), uuid4()
    last = await store.audit.last_position()
    for number in range(4):
        await store.audit.append(event(cluster, f"{number}"))
        await store.audit.append(event(other))
    timeline = await store.audit.timeline(cluster)
    assert [one.message for one in timeline] == ["0", "1", "2", "3"]
    assert await store.audit.timeline(cluster, after=timeline[0].position, limit=2) == timeline[1:3]
    assert len(await store.audit.events(after=last)) == 8
    assert await store.audit.events(after=last, only=EventFilter(frozenset({other})), limit=1) != []
    assert await store.audit.timeline(uuid4()) == []


async def test_a_follower_of_events_misses_none_that_two_processes_write(two: tuple[Store, Store]) -> None:
    start = await two[0].audit.last_position()
    done, seen = asyncio.Event(), [start]

    async def follow() -> None:
        while True:
            finished = done.is_set()
            batch = await two[0].audit.events(after=seen[-1])
            seen.extend(one.position for one in batch)
            if finished and not batch:
                return

    follower = asyncio.create_task(follow())
    await asyncio.gather(*(two[number % 2].audit.append(event()) for number in range(24)))
    done.set()
    await follower
    assert len(seen) == 25
    assert seen == sorted(set(seen))


async def test_which_clusters_were_touched_behind_a_position(store: Store) -> None:
    one, other = uuid4(), uuid4()
    begin = await store.audit.last_position()
    for cluster in (one, None, other, one):
        await store.audit.append(event(cluster))
    end = await store.audit.last_position()
    assert await store.audit.touched(after=begin) == (end, {one, other})
    halfway, found = await store.audit.touched(after=begin, limit=2)
    assert found == {one}
    assert await store.audit.touched(after=halfway) == (end, {one, other})
    assert await store.audit.touched(after=end) == (end, set())


async def test_events_are_chosen_by_clusters_kinds_and_time(timed: Store) -> None:
    one, other = uuid4(), uuid4()
    last = await timed.audit.last_position()
    for minute, (cluster, kind) in enumerate(
        [
            (one, EventKind.STEP_DONE),
            (other, EventKind.STEP_DONE),
            (one, EventKind.STEP_FAILED),
            (None, EventKind.STEP_DONE),
        ]
    ):
        timed.clock.at += timedelta(minutes=1)
        await timed.audit.append(event(cluster, str(minute), kind=kind))
    middle = timed.clock.at - timedelta(minutes=1)

    async def chosen(only: EventFilter, **more: int) -> list[str]:
        return [each.message for each in await timed.audit.events(**{"after": last, **more}, only=only)]

    assert await chosen(EventFilter()) == ["0", "1", "2", "3"]
    assert await chosen(EventFilter(clusters=frozenset({one}))) == ["0", "2"]
    assert await chosen(EventFilter(clusters=frozenset({one, other}))) == ["0", "1", "2"]
    assert await chosen(EventFilter(kinds=frozenset({EventKind.STEP_DONE}))) == ["0", "1", "3"]
    assert await chosen(EventFilter(kinds=frozenset({EventKind.STEP_DONE})), limit=2) == ["0", "1"]
    assert await chosen(EventFilter(since=middle)) == ["2", "3"]
    assert await chosen(EventFilter(frozenset({one}), frozenset({EventKind.STEP_DONE}), middle)) == []
