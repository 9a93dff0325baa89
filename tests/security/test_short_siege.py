"""The short form of `make siege`: every hostile caller beside a small fleet, which is neither starved nor robbed."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(900)

CHECKOUT = Path(__file__).parents[2]
SHORT = ["--edges", "10", "--interval", "4", "--rounds", "3", "--no-ratios"]
"""How much slower it becomes is for `make siege` to judge, on a machine that does nothing else."""


def test_no_hostile_caller_starves_a_fleet_or_takes_anything_away() -> None:
    command = [sys.executable, "-m", "bench.siege", *SHORT]
    ran = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=880, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
