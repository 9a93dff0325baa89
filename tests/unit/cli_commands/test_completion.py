"""What a shell is offered, asked as a shell asks; a gateway that is slow or away offers nothing, and says nothing."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import CommandLine, ServedCentre, Shown

from edgewright.cli.commands import completion

PATIENT = (
    "from edgewright.cli.commands import completion; completion.PATIENCE_SECONDS = 30;"
    "from edgewright.cli.entry import main; main()"
)
"""The command line on a machine under load, where nothing takes less than a second."""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is offered, not how soon."""
    monkeypatch.setattr(completion, "PATIENCE_SECONDS", 30.0)


def offered(environment: dict[str, str | None], line: str, *, shell: str = "bash") -> Shown:
    """What the completion script of a shell gets for a line."""
    words = line.split(" ")
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": line}
    return CommandLine(environment)(**asked, _EDGEWRIGHT_COMPLETE=f"complete_{shell}")


@pytest.fixture
def known(edgewright: CommandLine, centre: ServedCentre) -> dict[str, str | None]:
    for name in ("press-shop", "press-line", "paint-shop"):
        centre.create(name)
    for name in ("press-shop", "press-line"):
        edgewright.ok("repository", "create", name)
    return edgewright.environment


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("edgewright cluster show press-", ["press-line", "press-shop"]),
        ("edgewright cluster show ", ["paint-shop", "press-line", "press-shop"]),
        ("edgewright cluster recreate no-such", []),
        ("edgewright cluster retry press-shop populate", ["populate_repository"]),
        ("edgewright cluster create x --chart edge", ["edge-cluster"]),
        ("edgewright repository remove press-", ["press-line", "press-shop"]),
        ("edgewright repository remove helm", []),
        ("edgewright clu", ["cluster"]),
        ("edgewright cluster list --json --pha", ["--phase"]),
        ("edgewright --context loc", ["local"]),
        ("edgewright cluster list --context loc", ["local"]),
        ("edgewright context use loc", ["local"]),
    ],
)
def test_names_are_offered(patient: None, known: dict[str, str | None], line: str, words: list[str]) -> None:
    shown = offered(known, line)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.split() == words


def test_shell_that_can_shows_the_phase_beside_the_name(patient: None, known: dict[str, str | None]) -> None:
    shown = offered(known, "edgewright cluster show paint", shell="zsh")
    assert ('"paint-shop"' in shown.out, "Bootstrap" in shown.out) == (True, True), shown.out


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"EDGEWRIGHT_URL": "http://127.0.0.1:1"},
        {"EDGEWRIGHT_URL": "nonsense"},
        {"EDGEWRIGHT_TOKEN": "x", "EDGEWRIGHT_TOKEN_FILE": "/nonexistent"},
        {"EDGEWRIGHT_CONTEXT": "no-such"},
        {"EDGEWRIGHT_CONFIG": "/dev/null"},
        {"EDGEWRIGHT_ALLOW_PLAIN_HTTP": "perhaps"},
    ],
)
def test_failure_is_silent(environment: dict[str, str | None], variables: dict[str, str]) -> None:
    for line in ("edgewright cluster show x", "edgewright cluster create x --chart e"):
        shown = offered({**environment, **variables}, line)
        assert (shown.code, shown.out.strip(), shown.err) == (0, "", "")


def test_gateway_that_does_not_answer_is_given_up_after_a_second(environment: dict[str, str | None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        shown = offered({**environment, "EDGEWRIGHT_URL": silent_url}, "edgewright cluster show x")
        took = time.monotonic() - began
    assert (shown.code, shown.out.strip(), shown.err) == (0, "", "")
    assert took < 20, "a second, and what a machine under load adds; not the 30 s of a request"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_the_shells_own(environment: dict[str, str | None], shell: str, tmp_path: Path) -> None:
    shown = CommandLine(environment)("completion", shell)
    assert (shown.code, "_EDGEWRIGHT_COMPLETE" in shown.out) == (0, True)
    program = shutil.which(shell)
    if program is None:
        return
    script = tmp_path / "script"
    script.write_text(shown.out)
    assert subprocess.run([program, "-n", script], check=False, timeout=30).returncode == 0


def test_bash_completes_with_the_script(known: dict[str, str | None], tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "edgewright"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{PATIENT}" "$@"\n')
    program.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(CommandLine(known).ok("completion", "bash").out)
    ask = (
        f". {script}; COMP_WORDS=(edgewright cluster show press-s); COMP_CWORD=3; "
        "_edgewright_completion edgewright; echo ${COMPREPLY[@]}"
    )
    variables = {**os.environ, **{name: value for name, value in known.items() if value is not None}}
    variables["PATH"] = f"{folder}{os.pathsep}{variables['PATH']}"
    for name in [name for name, value in known.items() if value is None]:
        variables.pop(name, None)
    shown = subprocess.run([bash, "-c", ask], env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert (shown.stdout, shown.stderr) == ("press-shop\n", "")


def test_unknown_shell_is_wrong_usage(environment: dict[str, str | None]) -> None:
    assert CommandLine(environment)("completion", "csh").code == 2
