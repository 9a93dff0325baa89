"""The documented upgrade and rollback, command by command, with the programs that people run."""

import os
import re
import signal
import sqlite3
from functools import partial
from pathlib import Path

import pytest
from embedded import EmbeddedEdgewright
from supervised import eventually

from edgewright.application.rendering import RENDERER_IN_FORCE
from edgewright.domain.rendering import RENDERER_VERSION
from edgewright.domain.wellknown import APP_INSTALLATION

pytestmark = pytest.mark.timeout(400)

PRODUCTION = Path(__file__).parents[2] / "docs" / "production.md"


def test_upgrade_and_rollback_go_as_documented(edgewright: EmbeddedEdgewright, tmp_path: Path) -> None:
    assert documented("rollback") == ["", "admin restore", "admin init", ""], "this test walks other commands"
    edgewright.up()
    edgewright.create("before")
    eventually(lambda: edgewright.is_ready("before"))
    backup = upgraded(edgewright, tmp_path)
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


def upgraded(edgewright: EmbeddedEdgewright, folder: Path) -> str:
    """Takes the steps of an upgrade; returns the backup of its first one."""
    assert documented("upgrade") == ["admin backup", "", "admin init", ""], "this test walks other commands"
    made = edgewright.command("admin", "backup", str(folder))
    assert made.returncode == 0, made.stderr

    os.kill(edgewright.children()["worker"], signal.SIGSTOP)  # one that ends would be started again
    edgewright.create("after")

    an_older_renderer_is_in_force(edgewright.home / "edgewright.db")
    at = edgewright.endpoints()
    of_its_own = {"EDGEWRIGHT_TEMPORAL_ADDRESS": at["temporal"], "EDGEWRIGHT_EXTERNAL_URL": at["gateway"]}
    initialised = edgewright.command("admin", "init", **of_its_own)
    assert initialised.returncode == 0, initialised.stdout + initialised.stderr
    edgewright.create("before-the-new-version-runs")

    for part in ("gateway", "worker"):
        edgewright.replace(part)
    for name in ("after", "before-the-new-version-runs"):
        eventually(partial(edgewright.is_ready, name))
    return made.stdout.partition("Backup: ")[2].split()[0]


def documented(way: str) -> list[str]:
    """The command of each step, without `edgewright`; empty: it has none."""
    table = PRODUCTION.read_text().partition("## Upgrade and rollback")[2].partition("\n\nThe programs")[0]
    column = [heading.strip() for heading in table.split("\n", 3)[2].split("|")].index(way)
    steps = [line.split("|")[column] for line in table.splitlines() if re.match(r"\| [0-9]", line)]
    steps = [step.replace("[backup](backup.md)", "`edgewright admin backup`") for step in steps]  # as it says there
    return [found[1] if (found := re.search(r"`edgewright ([^`]+)`", step)) else "" for step in steps]


def an_older_renderer_is_in_force(database: Path) -> None:
    """What the last ``admin init`` of an older version has left: no worker of this one renders anything."""
    with sqlite3.connect(database) as connection:
        older = f"json_set(body, '$.{RENDERER_IN_FORCE}', {RENDERER_VERSION - 1})"
        changed = connection.execute(f"UPDATE entries SET body = {older} WHERE app = ?", [APP_INSTALLATION.hex])
        assert changed.rowcount > 0
    connection.close()


def migrate_as_a_newer_version(database: Path) -> None:
    """A table and a column that this version does not know, and the number of their migration."""
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE of_a_newer_version (id INTEGER PRIMARY KEY, cluster CHAR(32))")
        connection.execute("ALTER TABLE clusters ADD COLUMN of_a_newer_version TEXT NOT NULL DEFAULT ''")
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
