"""`doctor` names who still uses the old way to the centre, and says when nobody does."""

from pathlib import Path
from typing import Any

import pytest
from database_stores import Store

from edgewright.cli.checks import Check, CheckVerdict
from edgewright.cli.fleet_checks import door_checks
from edgewright.domain.reach import Reach
from edgewright.ports.edge_reports import Heartbeat
from edgewright.settings import Settings

OLD, NEW = "https://old.example.com", "https://new.example.com"


async def checks(store: Store, **settings: Any) -> list[Check]:
    return await door_checks(store.edge_reports, Settings(**settings))


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EDGEWRIGHT_EXTERNAL_URL", "EDGEWRIGHT_NEXT_EXTERNAL_URL", "EDGEWRIGHT_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


async def test_a_move_is_followed_to_its_end(timed: Store) -> None:
    cluster = await timed.commissioned("press-shop")
    await timed.registered(cluster)
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1, reach=Reach(OLD, None, "It is away."))])
    assert await checks(timed) == []
    [settled] = await checks(timed, external_url=OLD)
    assert (settled.verdict, OLD in settled.sentence) == (CheckVerdict.OK, True)
    [under_way] = await checks(timed, external_url=OLD, next_external_url=NEW)
    assert under_way.verdict is CheckVerdict.WARNING
    assert f"press-shop (uses {OLD}, last heard" in under_way.sentence and "It is away." in under_way.sentence
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1, reach=Reach(NEW))])
    [ready] = await checks(timed, external_url=OLD, next_external_url=NEW)
    assert (ready.verdict, "NEXT" in (ready.fix or "")) == (CheckVerdict.WARNING, True)
    [done] = await checks(timed, external_url=NEW)
    assert done.verdict is CheckVerdict.OK


async def test_an_edge_that_a_compromised_gateway_has_moved_is_named_as_long_as_it_is_heard(timed: Store) -> None:
    cluster = await timed.commissioned("press-shop")
    await timed.registered(cluster)
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1, reach=Reach("https://thief.example.com"))])
    [named] = await checks(timed, external_url=OLD)
    assert named.verdict is CheckVerdict.WARNING
    assert "press-shop (uses https://thief.example.com, last heard" in named.sentence


async def test_certificates_count_too_and_have_to_be_readable(timed: Store, tmp_path: Path) -> None:
    cluster = await timed.commissioned("press-shop")
    await timed.registered(cluster)
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1, reach=Reach(OLD))])
    bundle = tmp_path / "ca.pem"
    [wrong] = await checks(timed, external_url=OLD, next_ca_bundle=bundle)
    assert wrong.verdict is CheckVerdict.WRONG
    bundle.write_text("PEM")
    [missing] = await checks(timed, external_url=OLD, next_ca_bundle=bundle)
    assert (missing.verdict, "press-shop" in missing.sentence) == (CheckVerdict.WARNING, True)
