"""The documented rollback, command by command, with the programs that people run."""

import re
import sqlite3
from pathlib import Path

import pytest
from embedded import EmbeddedEdgewright
from supervised import eventually

pytestmark = pytest.mark.timeout(400)

PRODUCTION = Path(__file__).parents[2] / "docs" / "production.md"


def test_rollback_goes_as_documented(edgewright: EmbeddedEdgewright, tmp_path: Path) -> None:
    assert documented_rollback() == ["", "admin restore", "admin init", ""], "this test walks other commands"
    edgewright.up()
    edgewright.create("before")
    eventually(lambda: edgewright.is_ready("before"))
    made = edgewright.command("admin", "backup", str(tmp_path))
    assert made.returncode == 0, made.stderr
    backup = made.stdout.partition("Backup: ")[2].split()[0]
    edgewright.create("after")
    assert edgewright.interrupt() == 0

    migrate_as_a_newer_version(edgewright.home / "edgewright.db")
    edgewright.begin()
    eventually(edgewright.ended)
    assert "of a newer Edgewright" in edgewright.said()
    assert "restore the backup" in edgewright.said()

    restored = edgewright.command("admin", "restore", backup)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    edgewright.up()
    assert edgewright.command("admin", "init").returncode == 0, "as the compose file does"
    eventually(lambda: edgewright.is_ready("before"))
    assert [each["name"] for each in edgewright.api("GET", "/v1/cluster").json()["items"]] == ["before"]
    edgewright.create("goes-on")
    eventually(lambda: edgewright.is_ready("goes-on"))
    assert edgewright.interrupt() == 0


def documented_rollback() -> list[str]:
    """The command of each step, without `edgewright`; empty: it has none."""
    table = PRODUCTION.read_text().partition("## Upgrade and rollback")[2].partition("\n\nThe programs")[0]
    steps = [line.split("|")[3] for line in table.splitlines() if re.match(r"\| [0-9]", line)]
    return [found[1] if (found := re.search(r"`edgewright ([^`]+)`", step)) else "" for step in steps]


def migrate_as_a_newer_version(database: Path) -> None:
    """A table and a column that this version does not know, and the number of their migration."""
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE of_a_newer_version (id INTEGER PRIMARY KEY, cluster CHAR(32))")
        connection.execute("ALTER TABLE clusters ADD COLUMN of_a_newer_version TEXT NOT NULL DEFAULT ''")
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
