"""The same mistake ends with the same exit code, whoever finds it: the command line, its parser or the gateway."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, ServedCentre

from edgewright.ports.operators import Permission
from edgewright.sealing import SECRET_LIMIT

NOBODY = "179fdd25-708d-4eb1-a2a6-0f6884b7612f"
WRONG = "ew_0123456789abcdef_" + "A" * 43
FOREIGN = re.compile(
    r"Value error|Input should|String should|pydantic|httpx|jsonschema|[Tt]yper\b|[Cc]lick\b|Traceback|Errno|\^|\{\d"
)
"""What no reader should have to know: libraries, and regular expressions."""

MISTAKES: dict[str, tuple[int, list[list[str]]]] = {
    "a name that cannot be one": (
        2,
        [
            ["cluster", "create", "bad name"],
            ["api", "POST", "/v1/cluster", "-f", "name=bad name"],
            ["token", "create", "/", "-p", "read"],
            ["api", "POST", "/v1/token", "-f", "name=/", "-f", "permissions[]=read"],
            ["login", "http://127.0.0.1:1", "--context", "bad name"],
        ],
    ),
    "something required that is not there": (
        2,
        [
            ["cluster", "create"],
            ["api", "POST", "/v1/cluster", "-F", "bare=true"],
            ["cluster", "pause", "press-shop"],
            ["api", "POST", "/v1/token", "-f", "name=x"],
        ],
    ),
    "a word that is not one of those to choose from": (
        2,
        [
            ["cluster", "create", "x", "--accept", "maybe"],
            ["api", "POST", "/v1/cluster", "-f", "name=x", "-f", "accept=maybe"],
            ["token", "create", "x", "-p", "everything"],
            ["api", "POST", "/v1/token", "-f", "name=x", "-f", "permissions[]=everything"],
            ["completion", "csh"],
            ["api", "BREW", "/ping"],
        ],
    ),
    "an option or field that does not exist": (
        2,
        [
            ["cluster", "list", "--jsonn"],
            ["api", "POST", "/v1/cluster", "-f", "name=x", "-f", "nmae=y"],
        ],
    ),
    "a command or method that does not exist": (2, [["clutser"], ["cluster", "lst"], ["api", "PUT", "/v1/cluster"]]),
    "a label that cannot be one": (
        2,
        [
            ["cluster", "create", "x", "--label", "site"],
            ["cluster", "create", "x", "--label", "site=a b"],
            ["cluster", "create", "x", "--label", "a b=site"],
            ["api", "POST", "/v1/cluster", "-f", "name=x", "-f", "labels[site]=a b"],
        ],
    ),
    "a length of time that cannot be one": (
        2,
        [
            ["token", "create", "x", "-p", "read", "--expires-in", "soon"],
            ["token", "create", "x", "-p", "read", "--expires-in", "1s"],
            ["api", "POST", "/v1/token", "-f", "name=x", "-f", "permissions[]=read", "-F", "expires_in=1"],
            ["api", "POST", "/v1/token", "-f", "name=x", "-f", "permissions[]=read", "-f", "expires_in=soon"],
        ],
    ),
    "a number that is out of bounds": (
        2,
        [["cluster", "list", "--limit", "0"], ["api", "GET", "/v1/cluster", "-F", "limit=0"]],
    ),
    "a file that is not there": (
        2,
        [
            ["cluster", "create", "x", "--values", "/nonexistent.yaml"],
            ["secret", "put", "press-shop", "default/db", "k", "@/nonexistent"],
            ["api", "POST", "/v1/cluster", "--input", "/nonexistent"],
            ["login", "http://127.0.0.1:1", "--ca-bundle", "/nonexistent"],
        ],
    ),
    "a cluster that does not exist": (
        3,
        [
            ["cluster", "show", "no-such"],
            ["cluster", "show", NOBODY],
            ["secret", "list", "no-such"],
            ["secret", "list", NOBODY],
            ["api", "GET", f"/v1/cluster/{NOBODY}"],
        ],
    ),
    "a token that does not exist": (3, [["token", "revoke", "no-such"], ["api", "DELETE", f"/v1/token/{'0' * 16}"]]),
    "a context that does not exist": (
        3,
        [["context", "use", "no-such"], ["cluster", "list", "--context", "no-such"], ["logout", "--context", "x"]],
    ),
    "a name that is taken": (
        4,
        [
            ["cluster", "create", "press-shop"],
            ["cluster", "create", "PRESS-shop"],
            ["api", "POST", "/v1/cluster", "-f", "name=press-shop"],
        ],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_code_does_not_depend_on_the_finder(edgewright: CommandLine, centre: ServedCentre, mistake: str) -> None:
    centre.create("press-shop")
    code, commands = MISTAKES[mistake]
    for command in commands:
        shown = edgewright(*command)
        assert shown.code == code, (command, shown)
        first, *hints = shown.err.splitlines()
        assert first.startswith("edgewright: ") and first.endswith((".", "?")), (command, shown)
        assert FOREIGN.search(shown.err) is None, (command, shown)
        assert all(hint.startswith("  ") for hint in hints)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_error_is_json_where_json_is_asked_for(edgewright: CommandLine, centre: ServedCentre, mistake: str) -> None:
    centre.create("press-shop")
    code, commands = MISTAKES[mistake]
    for command in [each for each in commands if each[0] in {"cluster", "clutser"}]:
        plain = edgewright(*command)
        for asking in (["--json"], ["--json", "--context", "no-such"]) if code == 2 else (["--json"],):
            shown = edgewright(*command, *asking)
            error = json.loads(shown.err.splitlines()[-1])
            assert set(error) == {"code", "detail", "hint", "exit_code"}
            assert re.fullmatch(r"[a-z][a-z_]+", error["code"])
            assert error["exit_code"] == shown.code
            assert shown.out == ""
        shown = edgewright(*command, "--json")
        assert plain.err.splitlines()[0] == f"edgewright: {json.loads(shown.err.splitlines()[-1])['detail']}"


def test_no_gateway_is_unavailable_whoever_finds_it(edgewright: CommandLine) -> None:
    for variables in (
        {"EDGEWRIGHT_URL": "http://127.0.0.1:1"},
        {"EDGEWRIGHT_URL": "", "EDGEWRIGHT_TOKEN_FILE": ""},
    ):
        for command in (["cluster", "list"], ["api", "GET", "/v1/cluster"], ["token", "list"]):
            assert edgewright(*command, **variables).code == 5, (command, variables)


def test_no_way_in_is_not_allowed_whoever_finds_it(
    edgewright: CommandLine, token_file: Callable[..., str], tmp_path: Path
) -> None:
    wrong, empty = tmp_path / "wrong", tmp_path / "empty"
    wrong.write_text(WRONG)
    empty.write_text("")
    weak = token_file(Permission.SECRETS)
    for file in (str(wrong), str(empty), weak, "/nonexistent"):
        for command in (["cluster", "list"], ["api", "GET", "/v1/cluster"]):
            shown = edgewright(*command, EDGEWRIGHT_TOKEN_FILE=file)
            assert (shown.code, WRONG in shown.err) == (6, False), (command, file)
    assert edgewright("cluster", "list", EDGEWRIGHT_TOKEN_FILE="").code == 6


def test_setting_that_cannot_be_used_is_wrong_usage_everywhere(edgewright: CommandLine) -> None:
    for name, value in (
        ("EDGEWRIGHT_ALLOW_PLAIN_HTTP", "perhaps"),
        ("EDGEWRIGHT_URL", "nonsense"),
        ("EDGEWRIGHT_CA_BUNDLE", "/nonexistent"),
    ):
        url = {"EDGEWRIGHT_URL": "https://127.0.0.1:1"} if name == "EDGEWRIGHT_CA_BUNDLE" else {}
        shown = edgewright("cluster", "list", **{**url, name: value})
        assert (shown.code, name in shown.err) == (2, True), (name, shown)
        assert FOREIGN.search(shown.err) is None, shown


def test_value_that_is_too_large_is_wrong_usage_whoever_finds_it(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    uuid = centre.create("press-shop")
    large = b"x" * (SECRET_LIMIT + 1)
    by_command_line = edgewright("secret", "put", "press-shop", "default/db", "k", "-", typed=large)
    path = f"/v1/cluster/{uuid}/secret/default/db/k"
    by_gateway = edgewright("api", "PUT", path, "--input", "-", typed=large)
    assert (by_command_line.code, by_gateway.code) == (2, 2), (by_command_line, by_gateway)
