"""The home belongs to one user and to one `up` at a time."""

import subprocess
import sys
from pathlib import Path

import pytest

from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import exclusive_home, holder, prepare_home

HOLD = """
import sys
from pathlib import Path
from edgewright.cli.home import exclusive_home
with exclusive_home(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_home_is_made_for_its_owner_only(tmp_path: Path) -> None:
    prepare_home(tmp_path / "a" / "home")
    assert (tmp_path / "a" / "home").stat().st_mode & 0o777 == 0o700


def test_home_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    prepare_home(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(CliError, match="is a file"):
        prepare_home(tmp_path / "home")
    with pytest.raises(CliError, match="is a file"):
        prepare_home(tmp_path / "home" / "below")


def test_home_that_the_database_could_not_live_in_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="question mark"):
        prepare_home(tmp_path / "really?")
    assert list(tmp_path.iterdir()) == []


def test_second_holder_is_told_the_pid_of_the_first(tmp_path: Path) -> None:
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout and first.stdout.readline() == "held\n"
        assert holder(tmp_path) == first.pid
        with pytest.raises(CliError, match=f"process {first.pid} has it") as caught, exclusive_home(tmp_path):
            pass
        assert caught.value.exit_code == ExitCode.REFUSED
    finally:
        first.kill()
        first.communicate()
    with exclusive_home(tmp_path):
        pass
    assert holder(tmp_path) is None


def test_home_that_nobody_has_used_has_no_holder(tmp_path: Path) -> None:
    assert holder(tmp_path / "absent") is None
