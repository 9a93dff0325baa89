"""What is done for all clusters is done for all of them, and not one after the other."""

import asyncio
import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from activities.upkeep import (
    LATE_SECONDS,
    LEAST_KEPT,
    MOST_IDLE_LOOKS,
    MOST_LOOKS,
    MOST_RESEALINGS,
    UPKEEP_SLOTS,
    UpkeepActivities,
)
from edgewright.adapters.temporal import nudging
from edgewright.adapters.temporal.nudging import MOST_FAILURES, NUDGES_AT_ONCE, nudge_all
from edgewright.application import waking
from edgewright.application.shared_repositories import SharedRepository
from edgewright.errors import Stalled, Waiting
from edgewright.ports.fleet import Fleet
from edgewright.ports.git_server import CommitSummary


class SlowFleet:
    """Takes a nudge as long as a busy server does."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.nudged: Counter[UUID] = Counter()
        self.under_way = 0
        self.most = 0
        self._fails_at = fails_at

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        assert bulk
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        self.nudged[cluster] += 1
        if self.nudged.total() == self._fails_at:
            raise Waiting("Temporal does not answer.")

    async def healthy(self) -> bool:
        return self._fails_at is None


async def test_ten_thousand_clusters_are_nudged_once_each_and_many_at_a_time() -> None:
    clusters = [uuid4() for _ in range(10_000)]
    fleet = SlowFleet()
    await nudge_all(cast(Fleet, fleet), clusters)
    assert fleet.nudged == Counter(clusters)
    assert fleet.most == NUDGES_AT_ONCE


async def test_a_server_that_goes_away_ends_the_nudging() -> None:
    fleet = SlowFleet(fails_at=100)
    with pytest.raises(Waiting):
        await nudge_all(cast(Fleet, fleet), [uuid4() for _ in range(1000)])
    await asyncio.sleep(0)
    assert fleet.nudged.total() < 200


class OneWedged:
    """A fleet of which one cluster takes no message, though Temporal answers."""

    def __init__(self, wedged: UUID, *, recovers_after: int | None = None) -> None:
        self.wedged = wedged
        self.nudged: Counter[UUID] = Counter()
        self._recovers_after = recovers_after

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        self.nudged[cluster] += 1
        recovered = self._recovers_after is not None and self.nudged[cluster] > self._recovers_after
        if cluster == self.wedged and not recovered:
            raise Waiting("Temporal does not answer (INVALID_ARGUMENT).")

    async def healthy(self) -> bool:
        return True


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nudging, "PAUSE_SECONDS", 0.0)


@pytest.mark.usefixtures("no_pause")
async def test_what_goes_wrong_with_one_cluster_stays_with_it() -> None:
    clusters = [uuid4() for _ in range(1000)]
    fleet = OneWedged(clusters[3])
    assert await nudge_all(cast(Fleet, fleet), clusters) == [clusters[3]]
    assert set(fleet.nudged) == set(clusters)


@pytest.mark.usefixtures("no_pause")
async def test_a_cluster_that_fails_for_a_moment_is_nudged_again() -> None:
    cluster = uuid4()
    fleet = OneWedged(cluster, recovers_after=1)
    assert await nudge_all(cast(Fleet, fleet), [cluster]) == []


class AllWedged(OneWedged):
    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        self.nudged[cluster] += 1
        raise Waiting("Temporal does not answer (INTERNAL).")


async def test_nobody_waits_for_the_deadline_of_thousands_that_fail() -> None:
    fleet = AllWedged(uuid4())
    with pytest.raises(Waiting):
        await nudge_all(cast(Fleet, fleet), [uuid4() for _ in range(10_000)])
    assert fleet.nudged.total() < MOST_FAILURES + 2 * NUDGES_AT_ONCE


class Repositories:
    """Clusters, and the Git server that keeps them in shape."""

    def __init__(self) -> None:
        self.clusters = [uuid4() for _ in range(200)]
        self.kept: set[UUID] = set()
        self.shared: list[SharedRepository] = []

    async def all(self) -> list[SharedRepository]:
        return self.shared

    async def open_clusters(self) -> list[UUID]:
        return self.clusters

    async def sweep_ended(self) -> None:
        return None

    async def forget(self) -> int:
        return 0

    async def forget_sweeps(self) -> int:
        return 0

    async def due(self) -> list[UUID]:
        return []

    def log(self, repository: UUID, *, limit: int) -> list[CommitSummary]:
        return []

    async def get(self, cluster: UUID) -> None:
        return None

    def upkeep(self, repository: UUID) -> None:
        self.kept.add(repository)


def keeping(centre: Any) -> UpkeepActivities:
    return UpkeepActivities(
        *(centre,) * 5,
        repositories=centre,
        fleet=centre,
        ended_requests=centre,
        resealings=centre,
        upgrades=centre,
    )


@pytest.mark.parametrize("count", [1, 12, 1000])
async def test_every_repository_has_its_turn_at_keeping_in_shape_and_those_of_a_few_soon(count: int) -> None:
    centre: Any = Repositories()
    centre.clusters = [uuid4() for _ in range(count)]
    activities = keeping(centre)
    for _ in range(min(UPKEEP_SLOTS, math.ceil(count / LEAST_KEPT))):
        await activities.upkeep()
    assert len(centre.kept) == count


async def test_shared_repositories_have_their_turn_among_those_of_clusters() -> None:
    centre: Any = Repositories()
    centre.clusters = [uuid4() for _ in range(2 * LEAST_KEPT)]
    centre.shared = [SharedRepository(uuid4(), f"a{number}", "1", datetime.now(UTC)) for number in range(LEAST_KEPT)]
    activities = keeping(centre)
    for _ in range(3):
        await activities.upkeep()
    assert centre.kept == {*centre.clusters, *(each.uuid for each in centre.shared)}


class OldKeys(Repositories):
    """Clusters whose key is over 90 days old; some of their repositories cannot be read."""

    def __init__(self, due: list[UUID], *, broken: Mapping[UUID, Exception]) -> None:
        super().__init__()
        self.clusters = []
        self._due = due
        self._broken = broken
        self.begun: list[UUID] = []
        self.nudged: list[UUID] = []

    async def due(self) -> list[UUID]:
        return [cluster for cluster in self._due if cluster not in self.begun]

    async def get(self, cluster: UUID) -> Any:
        return SimpleNamespace(generation=1, certificate=SimpleNamespace(fingerprint="f2"))

    def head(self, repository: UUID) -> None:
        if repository in self._broken:
            raise self._broken[repository]

    async def begin(self, cluster: UUID, generation: int, secrets: list[str], *, actor: str, reason: str) -> Any:
        self.begun.append(cluster)
        return SimpleNamespace()

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        self.nudged.append(cluster)


@pytest.mark.parametrize(
    ("trouble", "rounds"),
    [(Stalled("The repository is damaged.", code="repository_damaged"), 2), (RuntimeError(), MOST_RESEALINGS + 1)],
)
async def test_repositories_that_cannot_be_read_keep_no_other_from_being_resealed(
    trouble: Exception, rounds: int
) -> None:
    """What nobody expects ends its round; the next one begins behind it."""
    broken, sound = [uuid4() for _ in range(MOST_RESEALINGS)], uuid4()
    centre = OldKeys([*broken, sound], broken=dict.fromkeys(broken, trouble))
    activities = keeping(centre)
    for _ in range(rounds):
        with suppress(RuntimeError):
            await activities.upkeep()
    assert (centre.begun, centre.nudged) == ([sound], [sound])


class StillFleet:
    """One cluster's workflow can no longer be read. ``failing``: one that takes no call at all."""

    def __init__(self, still: UUID, *, running: Iterable[UUID] = (), failing: UUID | None = None) -> None:
        self._still = still
        self._running = set(running)
        self._failing = failing
        self.begun: list[UUID] = []
        self.nudged: list[UUID] = []
        self.looked_at: list[UUID] = []

    async def running(self) -> set[UUID]:
        return self._running

    async def healthy(self) -> bool:
        return True

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        self._fail(cluster)
        self.nudged.append(cluster)

    def _fail(self, cluster: UUID) -> None:
        if cluster == self._failing:
            raise Waiting("Temporal does not answer (INVALID_ARGUMENT).")

    async def stands_still(self, cluster: UUID) -> bool:
        self._fail(cluster)
        self.looked_at.append(cluster)
        return cluster == self._still

    async def begin_anew(self, cluster: UUID) -> None:
        self.begun.append(cluster)


class Unfinished:
    """Clusters that have not taken what is wanted of them."""

    def __init__(self, clusters: list[UUID], under_way: Sequence[UUID] = (), *, is_slow: bool = False) -> None:
        self.clusters = clusters
        self.is_slow = is_slow
        self.under_way = list(under_way)
        self.open: list[UUID] | None = None

    async def unfinished(self, *, among: Collection[UUID] | None = None) -> list[UUID]:
        if among is None:
            return self.clusters
        return list(among) if self.is_slow else []

    async def underway(self) -> list[UUID]:
        return self.under_way

    async def open_clusters(self) -> list[UUID]:
        return self.clusters if self.open is None else self.open


def sweeping(clusters: Unfinished, fleet: StillFleet) -> UpkeepActivities:
    unused = cast(Any, None)
    return UpkeepActivities(
        cast(Any, clusters),
        unused,
        unused,
        unused,
        unused,
        repositories=unused,
        fleet=cast(Fleet, fleet),
        ended_requests=unused,
        resealings=unused,
        upgrades=unused,
    )


async def test_what_has_taken_all_and_stands_still_in_the_middle_is_begun_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is reminded at growing intervals only, and in the sweeps between nobody thinks of it."""
    still, waits, now = uuid4(), uuid4(), [0.0]
    fleet = StillFleet(still, running={still, waits})
    monkeypatch.setattr("activities.upkeep.time.monotonic", lambda: now[0])
    upkeep = sweeping(Unfinished([], under_way=[still, waits]), fleet)
    while not fleet.begun:
        await upkeep.nudge()
        now[0] += 2.0
        assert now[0] < 3 * LATE_SECONDS
    assert (fleet.begun, set(fleet.nudged)) == ([still], {still, waits})


async def test_a_sweep_begins_behind_those_who_were_told_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand edges come back: no sweep wakes more than the workers keep up with, and none is forgotten."""
    clusters = [uuid4() for _ in range(5 * waking.AT_ONCE)]
    monkeypatch.setattr(waking, "PATIENCE_SECONDS", 0.02)
    monkeypatch.setattr(waking, "LOOK_SECONDS", 0.005)
    monkeypatch.setattr("activities.upkeep.TELLING_SECONDS", 0.01)
    fleet = StillFleet(uuid4(), running=set(clusters))
    upkeep = sweeping(Unfinished(clusters, is_slow=True), fleet)
    for round_number in range(1, 6):
        result = await upkeep.nudge()
        assert result.nudged == waking.AT_ONCE
        assert len(fleet.nudged) == len(set(fleet.nudged)) == round_number * waking.AT_ONCE


async def test_those_who_wait_for_weeks_do_not_keep_others_from_being_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random.seed(20260301)
    waiting, still, now = [uuid4() for _ in range(MOST_LOOKS * 4)], uuid4(), [0.0]
    fleet = StillFleet(still, running={*waiting, still})
    monkeypatch.setattr("activities.upkeep.time.monotonic", lambda: now[0])
    upkeep = sweeping(Unfinished([*waiting, still]), fleet)
    await upkeep.nudge()
    now[0] = LATE_SECONDS
    for _ in range(5):
        fleet.looked_at.clear()
        await upkeep.nudge()
        assert len(fleet.looked_at) == MOST_LOOKS
        if fleet.begun:
            break
    assert fleet.begun == [still]


async def test_what_is_unfinished_for_long_and_stands_still_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    still, waits, young = uuid4(), uuid4(), uuid4()
    fleet, clusters, now = StillFleet(still, running={still, waits, young}), Unfinished([still, waits]), [0.0]
    monkeypatch.setattr("activities.upkeep.time.monotonic", lambda: now[0])
    upkeep = sweeping(clusters, fleet)
    assert (await upkeep.nudge()).begun_anew == 0
    assert fleet.looked_at == []
    now[0] = LATE_SECONDS
    clusters.clusters = [still, waits, young]
    fleet.nudged.clear()
    found = await upkeep.nudge()
    assert (found.begun_anew, found.nudged) == (1, 2)
    assert set(fleet.looked_at) == {still, waits}
    assert fleet.begun == [still]
    assert set(fleet.nudged) == {waits, young}


async def test_what_stands_still_though_nothing_is_wanted_of_it_is_found_in_its_turn() -> None:
    resting = [uuid4() for _ in range(MOST_IDLE_LOOKS * 3)]
    still = resting[-1]
    fleet, clusters = StillFleet(still, running=resting), Unfinished([])
    clusters.open = resting
    upkeep, rounds = sweeping(clusters, fleet), []
    for _ in range(3):
        rounds.append((await upkeep.nudge()).begun_anew)
        assert len(fleet.looked_at) == len(rounds) * MOST_IDLE_LOOKS
    assert set(fleet.looked_at) == set(resting)
    assert (sum(rounds), fleet.begun, fleet.nudged) == (1, [still], [])


async def test_a_stray_workflow_hides_none_that_is_missing() -> None:
    missing, present, stray = uuid4(), uuid4(), uuid4()
    fleet = StillFleet(uuid4(), running={present, stray})
    found = await sweeping(Unfinished([missing, present]), fleet).nudge()
    assert found.restarted == 1
    assert missing in fleet.nudged


@pytest.mark.usefixtures("no_pause")
async def test_a_cluster_that_takes_no_call_keeps_the_sweep_from_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    failing, still, waits, now = uuid4(), uuid4(), uuid4(), [0.0]
    fleet = StillFleet(still, running={failing, still, waits}, failing=failing)
    monkeypatch.setattr("activities.upkeep.time.monotonic", lambda: now[0])
    upkeep = sweeping(Unfinished([failing, still, waits]), fleet)
    await upkeep.nudge()
    now[0] = LATE_SECONDS
    assert (await upkeep.nudge()).begun_anew == 1
    assert fleet.begun == [still]
    assert waits in fleet.nudged
