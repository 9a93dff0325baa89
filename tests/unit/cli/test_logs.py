"""Logs stay bounded while somebody writes to them, and tell why a program has ended."""

import errno
from pathlib import Path

import pytest

from edgewright.cli.part_logs import bound_log, log_size, log_tail, reason_in


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


def test_the_tail_is_of_the_newest_run_and_moves_no_cursor(tmp_path: Path) -> None:
    log = tmp_path / "part.log"
    log.write_bytes(b"ValueError: of an earlier run\n")
    since = log_size(log)
    with log.open("ab") as file:
        file.write(b"x" * 90_000 + b"\none\n\n  \n\x1b[2Jtwo\n")
    tail = log_tail(log, since=since)
    assert tail[-2:] == ["one", " [2Jtwo"]
    assert sum(map(len, tail)) < 20_000
    assert log_tail(log, since=10**9)[-1] == " [2Jtwo", "a log that was emptied meanwhile"
    assert log_tail(tmp_path / "absent.log") == []


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), ""),
        (("starting", "the file is not a database"), "the file is not a database"),
        (("Traceback (most recent call last):", "  File x", "sqlite3.DatabaseError: malformed", "bye"),
         "sqlite3.DatabaseError: malformed"),
        (('{"level": "error", "event": "old"}', "ModuleNotFoundError: No module named 'api'"),
         "ModuleNotFoundError: No module named 'api'"),
        (('{"level": "critical", "event": "cannot start", "detail": "No key.", "hint": "Make one."}',
          '{"level": "info", "event": "stopped"}'), "No key. Make one."),
        (('{"level": "error", "event": "x", "exception": "Traceback\\n  File\\nOSError: disk"}',), "OSError: disk"),
        (("level=ERROR msg=address in use", "bye"), "level=ERROR msg=address in use"),
        (("[1, 2]", "12", "null"), "null"),
    ],
)  # fmt: skip
def test_the_reason_is_found_among_other_lines(lines: tuple[str, ...], reason: str) -> None:
    assert reason_in(lines) == reason
