"""What a run of the tests leaves behind is ended, however the run ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from supervised import eventually, living

SUPPORT = Path(__file__).parents[1] / "support"
RUN = """
import subprocess, sys, time
from left_behind import watch_over_this_run
watch = watch_over_this_run()
before = subprocess.Popen([sys.executable, "-c", '''
import subprocess, time
print(subprocess.Popen(["sleep", "600"], env={}, start_new_session=True).pid, flush=True)
time.sleep(600)
'''], stdout=subprocess.PIPE, start_new_session=True)
print(before.pid, int(before.stdout.readline()), flush=True)
if "kill" in sys.argv:
    time.sleep(600)
watch.communicate()
"""


@pytest.mark.parametrize("ending", ["end", "kill"])
def test_whatever_bears_its_mark_and_what_that_has_started_is_ended(ending: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, ending],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    ) as run:
        assert run.stdout
        assert run.stderr
        started = [int(pid) for pid in run.stdout.readline().split()]
        assert len(started) == 2
        if ending == "kill":
            run.kill()
        eventually(lambda: not [pid for pid in started if living(pid)])
        said = run.stderr.read()
    assert said.startswith("ended what the tests have left behind: ")
    assert "sleep" in said
