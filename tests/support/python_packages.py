"""Packages of PyPI in an environment of their own, as a requirements file pins them; kept outside of the checkout.

For programs whose dependencies must not have a say in which ones Edgewright has.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

UV = Path(__file__).parents[2] / ".tools" / "bin" / "uv"
INSTALL_SECONDS = 300


def python_workshop(requirements: Path) -> Path:
    """The folder of the programs of an environment; made once on this machine, also for other processes.

    What cannot be installed fails the test. The mark is written last: an installation that was killed counts as none.
    """
    named = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = package_cache("pypi") / named
    folder.mkdir(parents=True, exist_ok=True)
    programs, mark = folder / "environment" / "bin", folder / "complete"
    with FileLock(folder / "lock"):
        if not mark.is_file():
            _run("venv", "--clear", "--no-project", "--python", sys.executable, programs.parent)
            _run(
                "pip", "install", "--python", programs / "python", "--require-hashes", "--requirements", requirements
            )
            mark.touch()
    return programs


def package_cache(registry: str) -> Path:
    """Where packages of a registry are kept; ``EDGEWRIGHT_COMPONENTS_DIR`` moves it."""
    override = os.environ.get("EDGEWRIGHT_COMPONENTS_DIR")
    return (Path(override) if override else user_cache_path("edgewright-components", appauthor=False)) / registry


def _run(*command: str | Path) -> None:
    # The machine's own certificates count too: factory networks have their own authority.
    environment = {**os.environ, "UV_SYSTEM_CERTS": "1", "UV_PYTHON_DOWNLOADS": "never"}
    done = subprocess.run(
        [UV, *command], env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    assert done.returncode == 0, f"uv {command[0]} failed:\n{done.stderr}"
