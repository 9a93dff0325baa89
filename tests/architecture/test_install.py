"""The units in docs/examples/systemd can be installed as docs/install.md says."""

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main

from edgewright.cli.main import app
from edgewright.settings import Settings

PROGRAM = "/opt/edgewright/"
UNITS = ("edgewright.service", "edgewright-backup.service", "edgewright-backup.timer")
ASSIGNMENT = re.compile(r"^(?:# )?(EDGEWRIGHT_[A-Z_]+)=(.*)$", re.MULTILINE)


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "docs" / "examples" / "systemd"


def parsed(unit: Path) -> configparser.ConfigParser:
    """A unit file without lists, which is all that ours are."""
    parser = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",), delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign] # names keep their case
    parser.read_string(unit.read_text("utf-8"))
    return parser


def check_with_systemd(unit: Path) -> str:
    """What systemd itself says against a unit, where it is installed."""
    if shutil.which("systemd-analyze") is None:
        return ""
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr + ("" if done.returncode == 0 else f"exit code {done.returncode}")


def test_systemd_has_nothing_to_say_about_the_units(root: Path, folder: Path, tmp_path: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {*UNITS, "environment"}
    for name in UNITS:  # the program is where this checkout is
        (tmp_path / name).write_text((folder / name).read_text("utf-8").replace(PROGRAM, f"{root}/"))
    assert {name: check_with_systemd(tmp_path / name) for name in UNITS} == dict.fromkeys(UNITS, "")


@pytest.mark.parametrize("name", [name for name in UNITS if name.endswith(".service")])
def test_a_service_runs_a_command_that_there_is_as_a_user_without_privileges(folder: Path, name: str) -> None:
    service = parsed(folder / name)["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program == f"{PROGRAM}bin/edgewright"
    command: Any = typer.main.get_command(app)
    while words and hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context(name, words)
    assert (service["User"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("edgewright", "yes", "strict")
    assert service["EnvironmentFile"] == "/etc/edgewright/environment"


def test_the_service_may_write_where_its_settings_say(folder: Path) -> None:
    environment = dict(ASSIGNMENT.findall((folder / "environment").read_text("utf-8")))
    home = environment["EDGEWRIGHT_HOME"]
    assert f"/var/lib/{parsed(folder / 'edgewright.service')['Service']['StateDirectory']}" == home
    backup = parsed(folder / "edgewright-backup.service")["Service"]
    written = shlex.split(backup["ReadWritePaths"])
    assert set(written) == {home, shlex.split(backup["ExecStart"])[-1]}


def test_the_example_settings_are_taken_all_of_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ASSIGNMENT.findall((folder / "environment").read_text("utf-8"))
    for name, value in given:
        monkeypatch.setenv(name, value)
    settings = Settings()
    known = {f"EDGEWRIGHT_{name.upper()}" for name in Settings.model_fields}
    assert {name for name, _ in given} <= known
    assert (settings.external_url, settings.gateway_port) == ("https://edge.example.com", 443)
    assert settings.tls_cert and settings.tls_key and settings.external_url_is_loopback is False


def test_the_page_names_every_file_beside_the_units(root: Path, folder: Path) -> None:
    page = (root / "docs" / "install.md").read_text("utf-8")
    assert f"{PROGRAM}docs/examples/systemd/environment" in page
    assert f"{PROGRAM}docs/examples/systemd/edgewright*" in page
    assert {path.name for path in folder.glob("edgewright*")} == set(UNITS)
    assert "systemctl enable --now edgewright.service edgewright-backup.timer" in page
