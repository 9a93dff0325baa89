"""Readers of endpoints.json find what runs, and nothing that does not."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgewright.cli.endpoints import Endpoints, read_endpoints, remove_endpoints, write_atomically, write_endpoints


def endpoints(pid: int) -> Endpoints:
    return Endpoints("http://127.0.0.1:1", "127.0.0.1:2", "http://127.0.0.1:3", pid, "http://127.0.0.1:4/metrics")


def test_endpoints_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_endpoints(tmp_path, endpoints(os.getpid()))
    assert read_endpoints(tmp_path) == endpoints(os.getpid())
    assert json.loads((tmp_path / "endpoints.json").read_text()) == {
        "gateway": "http://127.0.0.1:1",
        "temporal": "127.0.0.1:2",
        "temporal_ui": "http://127.0.0.1:3",
        "pid": os.getpid(),
        "worker_metrics": "http://127.0.0.1:4/metrics",
        "external_url": "",
        "bind": "127.0.0.1",
        "ca_bundle": "",
    }


def test_there_are_no_endpoints_after_a_clean_stop(tmp_path: Path) -> None:
    write_endpoints(tmp_path, endpoints(os.getpid()))
    remove_endpoints(tmp_path)
    remove_endpoints(tmp_path)
    assert read_endpoints(tmp_path) is None


def test_endpoints_of_a_dead_process_count_for_nothing(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    write_endpoints(tmp_path, endpoints(dead.pid))
    assert read_endpoints(tmp_path) is None


def test_a_later_process_with_the_same_number_is_not_taken_for_the_writer(tmp_path: Path) -> None:
    write_endpoints(tmp_path, endpoints(os.getpid()))
    long_ago = time.time() - 30 * 86400
    os.utime(tmp_path / "endpoints.json", (long_ago, long_ago))
    assert read_endpoints(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"gateway": "http://x"}', '{"pid": "x"}', "\x00"])
def test_a_damaged_file_counts_for_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "endpoints.json").write_text(content)
    assert read_endpoints(tmp_path) is None


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_atomically(target, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(target, "\udcff")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_is_its_owners_alone_from_the_start(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", "text")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
