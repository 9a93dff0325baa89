"""What one git has held, although it let go of it since."""

import subprocess
import sys

import psutil

from bench.running_centre import most_held

HELD = 64 * 2**20
HOLDS_AND_LETS_GO = f"held = bytearray({HELD}); del held; print('ready', flush=True); input()"


def test_the_most_that_a_process_held_is_told_after_it_let_go() -> None:
    command = [sys.executable, "-c", HOLDS_AND_LETS_GO]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        found = psutil.Process(process.pid)
        assert most_held(found) * 1e6 >= HELD
        process.communicate("\n")
    assert most_held(found) == 0.0
