"""The sweep judges upgrades one by one: trouble with one of them stays with it, and leases do not wait for them."""

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from activities import upkeep
from activities.upkeep import UpkeepActivities
from edgewright.adapters.temporal import nudging
from edgewright.errors import Stalled, Waiting


class JudgingCentre:
    """Leases that expire, and upgrades under way, of which some cannot be judged.

    Args:
        away: the database answers nothing about upgrades.
    """

    def __init__(self, upgrades: list[UUID], *, broken: Sequence[UUID] = (), away: bool = False) -> None:
        self.upgrades = sorted(upgrades)
        self.broken = set(broken)
        self.away = away
        self.silent = uuid4()
        self.judged: list[UUID] = []
        self.nudged: list[UUID] = []

    async def mend_future(self) -> list[str]:
        return []

    async def expire_leases(self) -> list[UUID]:
        return [self.silent]

    async def expire_tokens(self) -> int:
        return 0

    async def under_way(self) -> list[UUID]:
        if self.away:
            raise Waiting("The database does not answer.")
        return self.upgrades

    async def judge(self, cluster: UUID) -> bool:
        self.judged.append(cluster)
        if cluster in self.broken:
            raise Stalled("It cannot be read.", code="components_unreadable")
        return True

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        self.nudged.append(cluster)

    async def healthy(self) -> bool:
        return True


def sweep_of(centre: JudgingCentre) -> UpkeepActivities:
    every = cast(Any, centre)
    unused = cast(Any, None)
    return UpkeepActivities(
        unused,
        unused,
        every,
        every,
        unused,
        repositories=unused,
        fleet=every,
        ended_requests=unused,
        resealings=unused,
        upgrades=every,
    )


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nudging, "PAUSE_SECONDS", 0.0)


async def test_an_upgrade_that_cannot_be_judged_keeps_the_sweep_from_no_other() -> None:
    under_way = [uuid4() for _ in range(5)]
    centre = JudgingCentre(under_way, broken=[under_way[0], under_way[3]])
    await sweep_of(centre).expire()
    assert set(centre.judged) == set(under_way)
    assert set(centre.nudged) == {centre.silent, *under_way} - centre.broken


async def test_an_expired_lease_is_told_though_no_upgrade_can_be_judged() -> None:
    centre = JudgingCentre([uuid4()], away=True)
    with pytest.raises(Waiting):
        await sweep_of(centre).expire()
    assert centre.nudged == [centre.silent]


async def test_each_of_many_upgrades_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MOST_JUDGED", 3)
    under_way = [uuid4() for _ in range(7)]
    centre = JudgingCentre(under_way, broken=under_way)
    sweep = sweep_of(centre)
    for _ in range(3):
        await sweep.expire()
    assert set(centre.judged) == set(under_way)
    assert len(centre.judged) == 9
