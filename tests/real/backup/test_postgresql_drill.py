"""A dump of PostgreSQL and a backup of the repositories, by the commands of `docs/backup.md`, while clients write.

Then everything is lost but Temporal's databases, which know too much; it is restored, and the checker looks at it.
"""

import shutil
from pathlib import Path

import pytest
from supervised import eventually

from tools.chaos.drill import Drill
from tools.chaos.production_centre import ChaosProductionCentre
from tools.production.documented import DocumentedCommands

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

SEED = 11


def test_what_was_answered_before_the_dump_holds_after_its_restore(tmp_path: Path) -> None:
    centre = ChaosProductionCentre(tmp_path / "lost")
    restored = ChaosProductionCentre(tmp_path / "restored", instead_of=centre)
    try:
        centre.start()
        drill, operator = Drill(centre, tmp_path, seed=SEED), DocumentedCommands(tmp_path / "operator")
        backup = drill.written_to_while(lambda: back_up(operator, centre))
        centre.stop()
        centre.postgresql.drop_database(centre.database)
        shutil.rmtree(centre.topology.home)

        restore(operator, restored, backup)
        drill.centre = restored
        drill.restored()
        restored.topology.start_temporal()
        done = operator.run("temporal workflow terminate", restored.topology)
        assert done.returncode == 0, done.stderr
        restored.topology.start_edgewright()
        assert drill.wrong() == []
    finally:
        restored.clear_up()
        centre.clear_up()


def back_up(operator: DocumentedCommands, centre: ChaosProductionCentre) -> Path:
    """First the dump, then the repositories."""
    dumped = operator.run("pg_dump", centre.topology)
    assert dumped.returncode == 0, dumped.stderr
    made = operator.run("./bin/edgewright admin backup", centre.topology)
    assert made.returncode == 0, made.stderr
    return Path(made.stdout.removeprefix("Backup: ").strip())


def restore(operator: DocumentedCommands, centre: ChaosProductionCentre, backup: Path) -> None:
    """Into an empty database, and onto an empty home."""
    centre.topology.make_databases()
    done = operator.run("pg_restore", centre.topology)
    assert done.returncode == 0, done.stderr

    def accepted() -> bool:
        """It refuses while the database says that a gateway was heard within the last 15 seconds."""
        done = operator.run("./bin/edgewright admin restore", centre.topology, backup=backup)
        assert done.returncode == 0 or "A gateway serves from this database" in done.stderr, done.stderr
        return done.returncode == 0

    eventually(accepted, seconds=120)
