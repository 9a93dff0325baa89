"""On SQLite one gateway serves; a second one says why it does not."""

import json
import sqlite3
from pathlib import Path

import pytest
from lone_gateway import DidNotStart, lone_gateway

from edgewright.adapters.database.engine.sole_gateway import sole_gateway
from edgewright.errors import Stalled, Waiting


def test_second_gateway_on_one_sqlite_file_refuses_to_start_and_says_why(tmp_path: Path) -> None:
    with lone_gateway(tmp_path / "home") as first:
        with pytest.raises(DidNotStart) as refusal, lone_gateway(tmp_path / "home"):
            pass
        said = json.loads(str(refusal.value).splitlines()[-1])
        assert said["code"] == "second_gateway"
        assert f"process {first.process.pid}" in said["detail"]
        assert "PostgreSQL" in said["hint"]
        assert first.api("GET", "/v1/cluster").status_code == 200


def test_killed_gateway_leaves_its_place_to_the_next(tmp_path: Path) -> None:
    with lone_gateway(tmp_path / "home") as first:
        first.process.kill()
        first.process.wait(20)
        with lone_gateway(tmp_path / "home") as second:
            assert second.api("GET", "/v1/cluster").status_code == 200


def test_request_that_died_with_its_gateway_is_answered_by_the_next_at_once(tmp_path: Path) -> None:
    wish = {"json": {"name": "half-done"}, "headers": {"Idempotency-Key": "k"}}
    with lone_gateway(tmp_path / "home") as first:
        made = first.api("POST", "/v1/cluster", **wish)
        assert made.status_code == 201
        first.process.kill()
        first.process.wait(20)
        with sqlite3.connect(tmp_path / "home" / "edgewright.db") as database:
            assert database.execute("UPDATE idempotency_keys SET status = 0, body = 'null'").rowcount == 1
        database.close()
        with lone_gateway(tmp_path / "home") as second:
            again = second.api("POST", "/v1/cluster", **wish)
            assert (again.status_code, again.json()["uuid"]) == (201, made.json()["uuid"])


def test_one_file_has_one_holder_whatever_the_way_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewright.adapters.database.engine.sole_gateway.HANDOVER_SECONDS", 0)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with sole_gateway(f"sqlite+aiosqlite:///{tmp_path}/real/edgewright.db"):
        with pytest.raises(Stalled), sole_gateway(f"sqlite:///{tmp_path}/link/edgewright.db"):
            pass
        with sole_gateway(f"sqlite:///{tmp_path}/real/other.db"), sole_gateway("postgresql://nobody@nowhere/x"):
            pass


def test_folder_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(Waiting) as refusal, sole_gateway(f"sqlite:///{tmp_path}/missing/edgewright.db"):
        pass
    assert refusal.value.code == "database_unavailable"
