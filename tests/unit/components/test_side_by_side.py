"""Two commands at the same time, as `make` runs the linters beside the tests."""

import subprocess
import sys
import time
from pathlib import Path

from tools import side_by_side


def run(first: str, second: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, side_by_side.__file__, f"sh -c '{first}'", f"sh -c '{second}'"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_both_run_at_the_same_time_and_what_the_first_says_stays_together(tmp_path: Path) -> None:
    first = "echo one; touch first; until [ -e second ]; do sleep 0.05; done; echo two"
    second = "until [ -e first ]; do sleep 0.05; done; echo between; touch second"
    done = run(first, second, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "one\ntwo\n" in done.stdout
    assert "between\n" in done.stdout


def test_a_first_command_that_fails_ends_the_second_in_its_own_words(tmp_path: Path) -> None:
    done = run("echo no route to the modules; exit 3", "sleep 600 & echo $! >child; wait", tmp_path)
    assert done.returncode == 3
    assert "no route to the modules\n" in done.stdout
    assert "=== failed: sh -c 'echo no route" in done.stdout.splitlines()[-1]


def test_a_second_command_that_fails_ends_the_first_with_all_it_has_started(tmp_path: Path) -> None:
    done = run(
        "sleep 600 & echo $! >child; touch begun; wait", "until [ -e begun ]; do sleep 0.05; done; exit 4", tmp_path
    )
    assert done.returncode == 4
    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    while child.exists() and "Z" not in (child / "stat").read_text().split(")")[1][:3]:
        time.sleep(0.05)
