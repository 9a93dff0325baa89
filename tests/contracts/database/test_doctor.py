"""`doctor` says what the database knows to be wrong with the fleet, and nothing of a fleet that is in order."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from database_stores import Store

from edgewright.cli.checks import Check, CheckVerdict
from edgewright.cli.fleet_checks import MOST_NAMES, fleet_checks

EVERY = timedelta(seconds=30)


async def findings(store: Store) -> dict[str, Check]:
    return {check.name: check async for check in fleet_checks(store.database, EVERY)}


async def test_nothing_is_said_of_a_fleet_that_is_in_order(timed: Store) -> None:
    timed.clock.at = datetime.now(UTC)  # the store was made by the real clock
    await timed.create()
    await timed.edge_reports.keep_listening()
    await timed.edge_reports.sweep_ended()
    assert await findings(timed) == {}


async def test_a_sweep_that_stands_still_is_wrong(timed: Store) -> None:
    await timed.edge_reports.keep_listening()
    for _ in range(60):
        timed.clock.advance(seconds=10)
        await timed.edge_reports.keep_listening()
    found = (await findings(timed))["sweep"]
    assert (found.verdict, "600 s" in found.sentence) == (CheckVerdict.WRONG, True)
    assert "admin init" in found.fix


async def test_moments_in_the_future_are_a_warning_that_names_them(timed: Store) -> None:
    timed.clock.advance(days=400)
    await timed.edge_reports.sweep_ended()
    timed.clock.advance(days=-400)
    found = (await findings(timed))["moments"]
    assert (found.verdict, "the sweep" in found.sentence) == (CheckVerdict.WARNING, True)


async def test_clusters_that_have_drifted_are_named(timed: Store) -> None:
    for number in range(MOST_NAMES + 2):
        cluster = await timed.create(f"shop-{number:02}")
        await timed.steps.record_drift(cluster, "Put back.", event=uuid4())
    found = (await findings(timed))["drift"]
    assert found.verdict is CheckVerdict.WRONG
    assert "shop-00, shop-01" in found.sentence and found.sentence.endswith("shop-19 and 2 more.")
    assert "cluster get" in found.fix
