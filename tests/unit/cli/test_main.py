"""The command line as a whole: it explains itself, and no expected trouble ends in a trace."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from edgewright import __version__
from edgewright.cli.main import app


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
    program = [sys.executable, "-c", "from edgewright.cli.entry import main; main()", *arguments]
    return subprocess.run(
        program,
        check=False,
        env={**kept, "EDGEWRIGHT_CONFIG": "/nonexistent", **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


def commands() -> list[tuple[str, ...]]:
    def below(command: object, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        children = getattr(command, "commands", {})
        return [path, *(found for name, child in children.items() for found in below(child, (*path, name)))]

    return below(typer.main.get_command(app), ())


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...]) -> None:
    command: object = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]  # type: ignore[attr-defined]  # groups only
    assert getattr(command, "help", None), f"{' '.join(path)} has no help text"


def test_version_is_the_products() -> None:
    shown = run("--version")
    assert (shown.returncode, shown.stdout) == (0, f"edgewright {__version__}\n")


def test_unknown_command_is_wrong_usage() -> None:
    assert run("no-such-command").returncode == 2


@pytest.mark.parametrize(
    ("variables", "sentence", "exit_code"),
    [
        ({"EDGEWRIGHT_GATEWAY_PORT": "high"}, "EDGEWRIGHT_GATEWAY_PORT", 2),
        ({"EDGEWRIGHT_ORGANISATION": "no spaces please"}, "EDGEWRIGHT_ORGANISATION", 2),
        ({"EDGEWRIGHT_HOME": "/dev/null/home"}, "/dev/null/home", 2),
        ({"PATH": "/nonexistent"}, "git is not on PATH", 1),
        ({"EDGEWRIGHT_TEMPORAL_BINARY": "/nonexistent/temporal"}, "EDGEWRIGHT_TEMPORAL_BINARY", 1),
    ],
)
def test_likely_mistake_ends_in_one_sentence_and_a_hint(
    tmp_path: Path, variables: dict[str, str], sentence: str, exit_code: int
) -> None:
    home = {"EDGEWRIGHT_HOME": str(tmp_path / "home")}
    ports = {f"EDGEWRIGHT_{name}_PORT": "0" for name in ("GATEWAY", "TEMPORAL", "TEMPORAL_UI")}
    shown = run("up", **{**home, **ports, **variables})
    assert sentence in shown.stderr
    assert "Traceback" not in shown.stderr
    assert len(shown.stderr.splitlines()) >= 2, "a hint follows the sentence"
    assert shown.returncode == exit_code


def test_down_without_anything_running_is_fine(tmp_path: Path) -> None:
    shown = run("down", EDGEWRIGHT_HOME=str(tmp_path))
    assert (shown.returncode, shown.stdout) == (0, f"Not running in {tmp_path}.\n")


IDLE = {"EDGEWRIGHT_GATEWAY_PORT": "0", "EDGEWRIGHT_TEMPORAL_PORT": "0", "EDGEWRIGHT_TEMPORAL_UI_PORT": "0"}


def test_doctor_says_in_one_sentence_that_nothing_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shown = run("doctor", EDGEWRIGHT_HOME=str(home), **IDLE)
    assert (shown.returncode, shown.stderr, len(shown.stdout.splitlines())) == (0, "", 1)
    assert shown.stdout.startswith(f"Edgewright is not running in {home}. Start it with `")
    listed = json.loads(run("doctor", "--json", EDGEWRIGHT_HOME=str(home), **IDLE).stdout)
    assert [check["name"] for check in listed[:2]] == ["running", "Python"]


def test_doctor_names_what_would_keep_it_from_starting(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    shown = run("doctor", EDGEWRIGHT_HOME=str(home), **IDLE)
    first, second, _, *found = shown.stdout.splitlines()
    assert shown.returncode == 1
    assert "is not running" in first
    assert second == "First fix what is wrong:"
    assert [line.split()[:2] for line in found if line.startswith("wrong")] == [["wrong", "home"]]
    assert f"chmod 700 {home}" in shown.stdout
    assert "ok " not in shown.stdout
