"""A short chaos run on the production topology: whatever is killed, PostgreSQL included, nothing answered is lost."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tools.chaos.checker import check_stores
from tools.chaos.edge_keys import EdgeKey, read_keys
from tools.chaos.journal import JournalLine, read_lines
from tools.chaos.production_centre import ChaosProductionCentre
from tools.chaos.run import ChaosPlan, Ran, run
from tools.chaos.stores import Stores
from tools.chaos.verdict import broken_promises, report

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]  # it may have to build what is missing

SHORT = ChaosPlan(seed=77, kills=9, pace=2.5, seconds=60.0, patience=240.0)

CAUGHT = {"accounts": {"accounts_wrong"}, "addresses": {"address_wrong"}, "events": {"event_lost"}}
"""What the checker calls it when a row of PostgreSQL's is not there."""


def test_every_answered_request_holds_after_nine_kills(tmp_path: Path) -> None:
    ran = asyncio.run(run(tmp_path, SHORT, ChaosProductionCentre(tmp_path)))
    broken = broken_promises(ran)
    replay = f"make chaos TOPOLOGY=production SEED={SHORT.seed} KILLS={SHORT.kills} SECONDS={SHORT.seconds:.0f}"
    assert broken == [], "\n".join(
        [*broken, *report(ran), f"stores and journal are in {tmp_path}", f"the same wishes once more: {replay}"]
    )
    assert {"session", "postgresql", "temporal"} <= set(ran.kills)
    assert ran.put_back
    for table, names in CAUGHT.items():
        missed = names - {violation.name for violation in check_stores(without_one(ran.stores, table), *asked(ran))}
        assert not missed, f"a row of {table} that is gone is not noticed"


def without_one(stores: Stores, table: str) -> Stores:
    """The same stores, less one row of a cluster that is still there."""
    open_ones = {row["uuid"] for row in stores.tables["clusters"] if row["desired"] == "present"}
    gone = next(row for row in stores.tables[table] if row["cluster"] in open_ones)
    return replace(stores, tables={**stores.tables, table: [row for row in stores.tables[table] if row is not gone]})


def asked(ran: Ran) -> tuple[list[JournalLine], list[EdgeKey]]:
    return read_lines(ran.journal), read_keys(ran.keys)
