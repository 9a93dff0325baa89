"""Which versions of the schema a program knows."""

import subprocess
import sys
from pathlib import Path

from alembic.script import ScriptDirectory

from edgewright.adapters.database import migrations


def test_file_names_tell_the_history_of_the_schema() -> None:
    """One line of versions, each named by the number that its file begins with."""
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert migrations.known_revisions() == tuple(reversed([each.revision for each in scripts.walk_revisions()]))
    assert scripts.get_heads() == [migrations.known_revisions()[-1]]


def test_worker_and_gateway_start_without_what_only_migrates() -> None:
    """It takes a twentieth of the processor time of their start."""
    program = "import api.__main__, worker, sys; print([name for name in sys.modules if name in ('alembic', 'mako')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
