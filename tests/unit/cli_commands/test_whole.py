"""All commands through HTTP: what they say of themselves, and what they say when no gateway answers them."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from command_line import CommandLine

from edgewright.cli.main import app, command_tree

GROUPS = ("agent", "chart", "cluster", "context", "repository", "secret", "template", "token", "upgrade")
ALONE = ("login", "logout", "api", "completion", "git-credential")
HEAVY = (
    "api",
    "workflows",
    "activities",
    "fastapi",
    "uvicorn",
    "temporalio",
    "sqlalchemy",
    "cryptography",
    "git",
    "yaml",
)


def commands() -> Iterator[tuple[str, str, Any]]:
    """Every command: its group, its name, and what Typer has made of it."""
    root: Any = typer.main.get_command(app)
    for group in GROUPS:
        for name, command in root.commands[group].commands.items():
            yield group, name, command


COMMANDS = [pytest.param(*each, id=f"{each[0]} {each[1]}") for each in commands()]


def test_every_command_of_the_contract_is_there() -> None:
    found: dict[str, set[str]] = {group: set() for group in GROUPS}
    for group, name, _ in commands():
        found[group].add(name)
    life = {
        "create",
        "set",
        "edit",
        "label",
        "wait",
        "bootstrap",
        "uninstall-script",
        "delete",
        "undelete",
        "recreate",
    }
    sight = {"list", "show", "timeline"}
    steering = {"accept", "reject", "certificate", "rotate", "revoke", "check-in", "pause", "resume", "retry", "skip"}
    assert found == {
        "agent": {"upgrade"},
        "chart": {"list", "push", "remove"},
        "repository": {"create", "list", "remove"},
        "template": {"list", "show", "put", "remove"},
        "cluster": life | sight | steering,
        "secret": {"put", "tls", "registry", "label", "annotate", "delete", "list", "reseal"},
        "token": {"create", "list", "revoke"},
        "context": {"list", "use", "show", "remove"},
        "upgrade": {"list", "cancel"},
    }


@pytest.mark.parametrize(("group", "name", "command"), COMMANDS)
def test_help_is_one_line_and_an_example_that_parses(group: str, name: str, command: Any) -> None:
    assert command.help
    assert len(command.help.strip().splitlines()) == 1
    intro, _, line = command.epilog.partition(": ")
    program, in_group, in_command, *arguments = shlex.split(line)
    assert (intro, program, in_group, in_command) == ("Example", "edgewright", group, name)
    command.make_context(name, arguments)


@pytest.mark.parametrize(("group", "name", "command"), COMMANDS)
def test_every_option_and_argument_explains_itself(group: str, name: str, command: Any) -> None:
    unexplained = [each.name for each in command.params if not getattr(each, "help", None)]
    assert unexplained == []


@pytest.mark.parametrize("name", ALONE)
def test_command_without_a_group_explains_itself(name: str) -> None:
    root: Any = typer.main.get_command(app)
    command = root.commands[name]
    assert len(command.help.strip().splitlines()) == 1
    assert f"edgewright {name}" in command.epilog
    assert [each.name for each in command.params if not getattr(each, "help", None)] == []


def paths() -> Iterator[tuple[str, ...]]:
    """All groups and commands."""

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name, child in getattr(command, "commands", {}).items():
            yield from below(child, (*path, name))

    return below(command_tree(), ())


VALUES_ARE_NO_OPTIONS = ("secret", "put")
"""It takes what looks like an option for a value in the wrong place, and does not repeat it."""
CORRECTED = [path for path in paths() if path != VALUES_ARE_NO_OPTIONS]


@pytest.mark.parametrize("path", CORRECTED, ids=" ".join)
def test_short_option_for_help_works_everywhere(environment: dict[str, str | None], path: tuple[str, ...]) -> None:
    shown = CommandLine(environment)(*path, "-h")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == CommandLine(environment)(*path, "--help").out


@pytest.mark.parametrize("path", CORRECTED, ids=" ".join)
def test_mistyped_word_is_corrected_everywhere(environment: dict[str, str | None], path: tuple[str, ...]) -> None:
    command: Any = command_tree()
    for name in path:
        command = command.commands[name]
    mistyped = [("--hel", "--help")]
    if children := getattr(command, "commands", None):
        child = max(children, key=len)
        mistyped.append((f"{child[:-1]}", child))
    for typo, meant in mistyped:
        shown = CommandLine(environment)(*path, typo)
        assert (shown.code, shown.out) == (2, ""), typo
        assert "Did you mean " in shown.err and meant in shown.err, shown.err


def test_whatever_goes_through_a_gateway_takes_a_context() -> None:
    without = {
        path
        for path in paths()
        if path and "--context" not in {option for each in _command(path).params for option in each.opts}
    }
    groups = {path for path in without if hasattr(_command(path), "commands")}
    assert {path[0] for path in without - groups} == {*("up", "down", "doctor", "agent-image", "admin", "completion")}


def _command(path: tuple[str, ...]) -> Any:
    command: Any = command_tree()
    for name in path:
        command = command.commands[name]
    return command


def test_help_shows_the_example(environment: dict[str, str | None]) -> None:
    shown = CommandLine(environment)("secret", "put", "--help")
    assert (shown.code, "edgewright secret put press-shop" in shown.out) == (0, True)


def test_help_needs_nothing_of_the_gateway() -> None:
    program = (
        "import sys; sys.argv = ['edgewright', '--help']\n"
        "from edgewright.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    assert "Commissions edge Kubernetes clusters" in shown.stdout
    assert shown.stderr == "[]\n"


CALLS = (
    ("cluster", "create", "x"),
    ("cluster", "list"),
    ("cluster", "delete", "x", "--yes"),
    ("cluster", "wait", "x"),
    ("cluster", "timeline", "x", "--follow"),
    ("secret", "put", "x", "default/db", "k", "-"),
    ("token", "list"),
)


def test_nothing_runs_here(environment: dict[str, str | None]) -> None:
    for call in CALLS:
        shown = CommandLine(environment)(*call)
        assert (shown.code, shown.out) == (5, ""), call
        assert "not running on this machine" in shown.err


def test_gateway_that_is_down_is_told_at_once(environment: dict[str, str | None], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("ew_0123456789abcdef_" + "A" * 43)
    down = {"EDGEWRIGHT_URL": "http://127.0.0.1:1", "EDGEWRIGHT_TOKEN_FILE": str(token)}
    for call in CALLS:
        shown = CommandLine({**environment, **down})(*call)
        assert (shown.code, shown.out) == (5, ""), call
        assert "Nothing answers at http://127.0.0.1:1" in shown.err
        assert len(shown.err.splitlines()) == 2


def test_wrong_token_is_not_allowed_and_not_shown(edgewright: CommandLine, tmp_path: Path) -> None:
    secret = "ew_0123456789abcdef_" + "A" * 43
    token = tmp_path / "token"
    token.write_text(secret)
    for call in CALLS:
        shown = edgewright(*call, EDGEWRIGHT_TOKEN_FILE=str(token))
        assert (shown.code, shown.out) == (6, ""), call
        assert "EDGEWRIGHT_TOKEN_FILE" in shown.err
        assert secret not in shown.err


def test_no_token_file_is_named(edgewright: CommandLine) -> None:
    shown = edgewright("cluster", "list", EDGEWRIGHT_TOKEN_FILE="")
    assert (shown.code, "EDGEWRIGHT_TOKEN_FILE" in shown.err) == (6, True)
