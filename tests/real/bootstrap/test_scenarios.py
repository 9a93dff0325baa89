"""Every scenario of the bootstrap script, under every shell that an edge is likely to have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from debian import debian_program

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

SCENARIOS = Path(__file__).parents[2] / "unit" / "bootstrap"
SHELLS = ("dash", "bash", "busybox")


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell != Path("/bin/sh").resolve().name])
def test_every_scenario_passes_under(shell: str) -> None:
    """Under this machine's ``sh`` it has passed in ``make test``, and so has what no shell has to do with."""
    folder = debian_program(shell).parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-k", shell, str(SCENARIOS)],
        env=os.environ | {"EDGEWRIGHT_TEST_SHELLS": shell, "PATH": f"{os.environ['PATH']}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "skipped" not in done.stdout
