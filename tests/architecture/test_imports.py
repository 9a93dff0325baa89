"""Importing a module does nothing, and the import rules bite."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

OBSERVER = Path(__file__).with_name("observed_import.py")
PACKAGES = ("activities", "api", "edgewright", "workflows")


def _observe(root: Path, modules: list[str], folder: Path) -> list[str]:
    """What the bodies of the modules do when they are imported in an empty folder, in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, OBSERVER, root, *modules],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    seen: list[str] = json.loads(done.stdout)
    return seen


def _is_migration_environment(path: Path) -> bool:
    """Alembic executes its ``env.py`` as a script within a migration; it is not meant to be imported."""
    return path.name == "env.py" and path.parent.name == "migrations"


def _name(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_importing_a_module_does_nothing(root: Path, product_modules: list[Path], tmp_path: Path) -> None:
    names = [_name(root, path) for path in product_modules if not _is_migration_environment(path)]
    assert _observe(root, names, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_module_that_does_something_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "greedy.py").write_text(
        "import os, socket, subprocess, sys\n"
        "from pathlib import Path\n"
        "subprocess.run([sys.executable, '-c', ''], check=True)\n"
        "socket.socket().close()\n"
        "Path(__file__).read_text()\n"
        "os.environ.get('EDGEWRIGHT_HOME')\n"
    )
    seen = _observe(tmp_path, ["greedy"], tmp_path)
    assert {line.split(": ")[1].split()[0] for line in seen} >= {
        "subprocess.Popen",
        "socket.__new__",
        "open",
        "environment",
    }


VIOLATIONS = {
    "edgewright/domain/tainted.py": "import socket\n",
    "edgewright/errors.py": "from edgewright import domain\n",
    "edgewright/messages/tainted.py": "import httpx\n",
    "edgewright/ports/tainted.py": "import sqlalchemy\n",
    "edgewright/adapters/tainted.py": "from edgewright import application\n",
    "edgewright/application/tainted.py": "import sqlalchemy\n",
    "edgewright/cli/tainted.py": "from edgewright.adapters.database import access\nimport activities\n",
    "edgewright/tainted.py": "",
    "api/routes/tainted.py": "from edgewright import settings\nfrom api import live\n",
    "workflows/tainted.py": "import worker\n",
    "activities/tainted.py": "from tools import chaos\n",
    "api/first.py": "from api import second\n",
    "api/second.py": "from api import first\n",
}
"""One breach of each contract in ``pyproject.toml``."""


def _lint_imports(folder: Path) -> str:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache", "--no-logo"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.stdout + done.stderr


def test_every_import_rule_bites(root: Path, tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "charts"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    (tmp_path / "worker.py").touch()
    for name, text in VIOLATIONS.items():
        with (tmp_path / name).open("a") as file:
            file.write(text)
    verdicts = [
        line for line in _lint_imports(tmp_path).splitlines() if line.rstrip().endswith((")", "KEPT", "BROKEN"))
    ]
    assert [line for line in verdicts if " KEPT" in line] == []
    contracts = (root / "pyproject.toml").read_text("utf-8").count("[[tool.importlinter.contracts]]")
    assert sum(" BROKEN" in line for line in verdicts) == contracts
