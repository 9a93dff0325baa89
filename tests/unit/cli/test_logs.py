"""Logs stay bounded while somebody writes to them."""

import errno
from pathlib import Path

import pytest

from edgewright.cli.supervisor import bound_log, last_words


def test_small_log_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "part.log"
    log.write_text("line\n")
    assert not bound_log(log, largest=100)
    assert not bound_log(tmp_path / "absent.log")
    assert log.read_text() == "line\n"


def test_large_log_is_rotated_under_the_hands_of_its_writer(tmp_path: Path) -> None:
    log = tmp_path / "part.log"
    with log.open("ab", buffering=0) as writer:
        for number in range(4):
            writer.write(b"%d" % number * 200)
            assert bound_log(log, largest=100)
        writer.write(b"after")
    assert log.read_text() == "after"
    assert (tmp_path / "part.log.1").read_text() == "3" * 200
    assert (tmp_path / "part.log.2").read_text() == "2" * 200
    assert len(list(tmp_path.iterdir())) == 3


def test_log_that_does_not_fit_on_the_disk_twice_is_emptied_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_source: Path, target: Path) -> None:
        target.write_text("a part")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    log = tmp_path / "part.log"
    log.write_text("x" * 200)
    assert bound_log(log, largest=100)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("part.log", "")]


def test_last_words_are_the_last_line_that_says_something(tmp_path: Path) -> None:
    log = tmp_path / "part.log"
    log.write_bytes(b"x" * 9000 + b"\nTrace\nValueError: no\n\n  \n")
    assert last_words(log) == "ValueError: no"
    assert last_words(log, longest=5) == "Value"
    assert last_words(tmp_path / "absent.log") == ""
