"""One answer to Prometheus, also when parts are out of reach; and how many series there can be."""

import httpx
import pytest
from gateway_centre import GatewayCentre

from api.metrics_port import serving_metrics
from api.scrape import CENSUS_SECONDS, Scrape
from edgewright.errors import Stalled, Waiting
from edgewright.ports.census import Counted


class CensusThatFails:
    """A database that can be taken away; counts how often it was asked."""

    def __init__(self) -> None:
        self.away = False
        self.asked = 0

    async def count(self) -> Counted:
        self.asked += 1
        if self.away:
            raise Waiting("The database is away.", code="database_unavailable")
        return Counted(staged=7)


class Hand:
    """A clock in the hand of the test."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def census(centre: GatewayCentre) -> CensusThatFails:
    census = CensusThatFails()
    object.__setattr__(centre.ports, "census", census)
    return census


def scrape_of(centre: GatewayCentre, census: CensusThatFails, clock: Hand) -> Scrape:
    """What a running gateway has counted, with another census and clock."""
    live = centre.app.state.live
    return Scrape(
        metrics=live.metrics,
        census=census,
        fleet=centre.fleet,
        heartbeats=live.heartbeats,
        held_beats=live.held_beats,
        places=live.places,
        clock=clock,
    )


async def test_database_out_of_reach_is_told_and_costs_its_own_series_only(
    centre: GatewayCentre, census: CensusThatFails
) -> None:
    clock = Hand()
    scrape = scrape_of(centre, census, clock)
    assert b"edgewright_secrets_staged 7.0" in await scrape.exposition()
    census.away, clock.at = True, CENSUS_SECONDS
    text = await scrape.exposition()
    assert b'edgewright_reachable{part="database"} 0.0' in text
    assert b"edgewright_secrets_staged" not in text
    assert b"edgewright_wrong_credentials_total" in text


async def test_fleet_is_counted_once_however_many_ask(centre: GatewayCentre, census: CensusThatFails) -> None:
    clock = Hand()
    scrape = scrape_of(centre, census, clock)
    for _ in range(5):
        await scrape.exposition()
    assert census.asked == 1
    clock.at = CENSUS_SECONDS
    await scrape.exposition()
    assert census.asked == 2


async def test_no_path_makes_a_series_of_its_own(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    async def series() -> set[str]:
        lines = (await admin.get("/metrics")).text.splitlines()
        return {line.rpartition(" ")[0] for line in lines if line.startswith("edgewright_http")}

    async def wander(word: str) -> None:
        for path in (f"/v1/cluster/{word}", f"/{word}", f"/git/cluster/{word}/info/refs", f"/v1/{word}/a"):
            await admin.get(path)
        await admin.request(word.upper(), "/ping")

    await series()
    await wander("first")
    before = await series()
    for word in ("second", "third"):
        await wander(word)
    assert await series() == before


async def test_metrics_port_that_is_taken_is_named(centre: GatewayCentre) -> None:
    live = centre.app.state.live
    async with serving_metrics(live.scrape, live.metrics, "127.0.0.1", 0):
        pass
    with pytest.raises(Stalled, match=r"Metrics cannot be served at 256\.0\.0\.1"):
        async with serving_metrics(live.scrape, live.metrics, "256.0.0.1", 1):
            pass
