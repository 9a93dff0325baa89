"""The bootstrap script under every shell that an edge is likely to have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from debian import debian_program

SCENARIOS = Path(__file__).parents[2] / "unit" / "bootstrap"


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_every_scenario_passes_under(shell: str) -> None:
    folder = debian_program(shell).parent
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", str(SCENARIOS)],
        env=os.environ | {"EDGEWRIGHT_TEST_SHELLS": shell, "PATH": f"{os.environ['PATH']}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "skipped" not in done.stdout
