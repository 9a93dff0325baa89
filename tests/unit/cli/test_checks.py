"""Doctor finds what is wrong with this machine, and says what to do about it."""

import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from edgewright.cli import checks
from edgewright.cli.checks import Check, CheckVerdict, machine_checks
from edgewright.settings import Settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("EDGEWRIGHT_")]:
        monkeypatch.delenv(name)
    tmp_path.chmod(0o700)
    return tmp_path


def examined(home: Path, **settings: Any) -> Sequence[Check]:
    ports = {"gateway_port": 0, "temporal_port": 0, "temporal_ui_port": 0}
    return list(machine_checks(Settings(**{"home": home, **ports, **settings})))


def found(findings: Sequence[Check], name: str) -> Check:
    return next(check for check in findings if check.name == name)


def test_good_machine_has_nothing_wrong(home: Path) -> None:
    assert [check for check in examined(home) if check.verdict is CheckVerdict.WRONG] == []


def test_everything_wrong_comes_with_a_fix(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.chmod(0o755)
    monkeypatch.setenv("PATH", "/nonexistent")
    findings = examined(home, tls_cert=home / "absent", tls_key=home / "absent", temporal_binary=home / "absent")
    wrong = [check for check in findings if check.verdict is not CheckVerdict.OK]
    assert {check.name for check in wrong} >= {"git", "home", "Temporal program", "EDGEWRIGHT_TLS_CERT"}
    assert all(check.fix for check in wrong)


def test_home_that_others_can_read_is_wrong(home: Path) -> None:
    home.chmod(0o750)
    check = found(examined(home), "home")
    assert check.verdict is CheckVerdict.WRONG
    assert check.fix == f"chmod 700 {home}"


def test_home_that_is_not_there_yet_is_fine(home: Path) -> None:
    assert found(examined(home / "later"), "home").verdict is CheckVerdict.OK


def test_taken_port_is_wrong_and_names_who_has_it(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        check = found(examined(home, gateway_port=taken.getsockname()[1]), "port of the gateway")
    assert check.verdict is CheckVerdict.WRONG
    assert str(os.getpid()) in check.sentence


def test_loopback_url_is_a_warning_only(home: Path) -> None:
    assert found(examined(home), "external URL").verdict is CheckVerdict.WARNING
    better = examined(home, external_url="https://edge.example.com")
    assert found(better, "external URL").verdict is CheckVerdict.OK


def test_misspelt_variable_is_pointed_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWRIGHT_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("EDGEWRIGHT_TOKEN_FILE", "x")
    assert found(examined(home), "variables").verdict is CheckVerdict.OK
    monkeypatch.setenv("EDGEWRIGHT_GATWAY_PORT", "1")
    check = found(examined(home), "variables")
    assert (check.verdict, "EDGEWRIGHT_GATWAY_PORT" in check.sentence) == (CheckVerdict.WARNING, True)


def test_clock_that_was_set_back_is_noticed(home: Path) -> None:
    (home / "edgewright.db").write_text("")
    ahead = time.time() + 3600
    os.utime(home / "edgewright.db", (ahead, ahead))
    assert found(examined(home), "clock").verdict is CheckVerdict.WRONG


@pytest.mark.parametrize(
    ("free", "verdict"), [(1024, CheckVerdict.WRONG), (10**9, CheckVerdict.WARNING), (10**11, CheckVerdict.OK)]
)
def test_little_disk_space_is_said_before_it_is_gone(
    home: Path, monkeypatch: pytest.MonkeyPatch, free: int, verdict: CheckVerdict
) -> None:
    class Usage:
        pass

    usage = Usage()
    usage.free = free  # type: ignore[attr-defined]  # the one field that is read
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _path: usage)  # type: ignore[attr-defined]  # its import
    assert found(examined(home), "disk").verdict is verdict
