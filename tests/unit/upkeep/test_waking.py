"""Many workflows are told no faster than they take it."""

from collections.abc import Collection, Iterable
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from edgewright.application import waking
from edgewright.application.waking import AT_ONCE, paced


class SlowDirectory:
    """Clusters that take what they were told one after the other, one at each look, but for some that never do."""

    def __init__(self, never: Iterable[UUID] = ()) -> None:
        self.never = set(never)
        self.taken: set[UUID] = set()
        self.looks = 0

    async def unfinished(self, *, among: Collection[UUID]) -> list[UUID]:
        self.looks += 1
        waiting = [each for each in among if each not in self.taken and each not in self.never]
        self.taken |= set(waiting[:1])
        return [each for each in among if each not in self.taken]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waking, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(waking, "PATIENCE_SECONDS", 0.05)


async def told(directory: SlowDirectory, clusters: list[UUID], **options: float) -> list[list[UUID]]:
    return [portion async for portion in paced(cast(Any, directory), clusters, **options)]


async def test_few_are_told_at_once_and_nobody_looks() -> None:
    directory, clusters = SlowDirectory(), [uuid4() for _ in range(AT_ONCE)]
    assert await told(directory, clusters) == [clusters]
    assert directory.looks == 0


@pytest.mark.usefixtures("quick")
async def test_the_next_portion_comes_when_most_of_the_one_before_have_taken_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waking, "PATIENCE_SECONDS", 60.0)
    directory, clusters, outstanding = SlowDirectory(), [uuid4() for _ in range(10 * AT_ONCE)], []
    seen: list[UUID] = []
    async for portion in paced(cast(Any, directory), clusters):
        outstanding.append(len(set(seen) - directory.taken))
        seen += portion
    assert seen == clusters
    assert max(outstanding) <= len(outstanding) * waking.LATE


@pytest.mark.usefixtures("quick")
async def test_those_who_wait_for_weeks_keep_nobody_from_being_told() -> None:
    clusters = [uuid4() for _ in range(3 * AT_ONCE)]
    portions = await told(SlowDirectory(never=clusters), clusters)
    assert [each for portion in portions for each in portion] == clusters


@pytest.mark.usefixtures("quick")
async def test_none_is_told_after_the_time_is_up_and_none_twice() -> None:
    clusters = [uuid4() for _ in range(100 * AT_ONCE)]
    portions = await told(SlowDirectory(never=clusters), [*clusters, *clusters], seconds=0.1)
    found = [each for portion in portions for each in portion]
    assert found == clusters[: len(found)]
    assert AT_ONCE <= len(found) < len(clusters)


async def test_nothing_to_tell_is_no_portion() -> None:
    assert await told(SlowDirectory(), []) == []
