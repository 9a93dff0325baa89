"""Tokens are made, shown once, listed and revoked."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, ServedCentre

from edgewright.ports.operators import Permission


def test_stdout_has_the_token_alone_and_it_opens_what_it_may(
    edgewright: CommandLine, tmp_path: Path, centre: ServedCentre
) -> None:
    shown = edgewright.ok("token", "create", "ci", "--permission", "read", "-p", "read", "--expires-in", "30d")
    token = shown.out.removesuffix("\n")
    assert token not in shown.err
    assert "expires in 30 days" in shown.err
    file = tmp_path / "ci"
    file.write_text(shown.out)
    assert edgewright("cluster", "list", EDGEWRIGHT_TOKEN_FILE=str(file)).code == 0
    refused = edgewright("cluster", "create", "x", EDGEWRIGHT_TOKEN_FILE=str(file))
    assert (refused.code, "permission clusters" in refused.err) == (6, True)
    assert token not in refused.err
    assert token not in edgewright.ok("token", "list").out


def test_json_of_tokens_is_the_apis_document(edgewright: CommandLine) -> None:
    made = json.loads(edgewright.ok("token", "create", "ci", "-p", "secrets", "-p", "read", "--json").out)
    listed = json.loads(edgewright.ok("token", "list", "--json").out)
    assert (made["permissions"], made["expires_at"]) == (["read", "secrets"], None)
    del made["token"]
    assert made in listed["items"]


@pytest.mark.parametrize("named_by", ["id", "name"])
def test_revoked_token_is_refused(edgewright: CommandLine, tmp_path: Path, named_by: str) -> None:
    made = json.loads(edgewright.ok("token", "create", "ci", "-p", "read", "--json").out)
    file = tmp_path / "ci"
    file.write_text(made["token"])
    assert edgewright("cluster", "list", EDGEWRIGHT_TOKEN_FILE=str(file)).code == 0
    assert edgewright.ok("token", "revoke", made[named_by]).out == "The token ci is revoked.\n"
    assert edgewright("cluster", "list", EDGEWRIGHT_TOKEN_FILE=str(file)).code == 6
    assert "ci" not in edgewright.ok("token", "list").out.split()


def test_unknown_token_is_not_found_and_not_repeated(edgewright: CommandLine) -> None:
    for text in ("no-such", "..", "ew_0123456789abcdef_secret"):
        shown = edgewright("token", "revoke", text)
        assert (shown.code, text in shown.err) == (3, False)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ci"], 2),
        (["ci", "-p", "everything"], 2),
        (["ci", "-p", "read", "--expires-in", "1s"], 2),
        (["/", "-p", "read"], 2),
        (["taken", "-p", "read"], 4),
    ],
)
def test_mistake_makes_no_token(edgewright: CommandLine, arguments: list[str], code: int) -> None:
    edgewright.ok("token", "create", "taken", "-p", "read")
    shown = edgewright("token", "create", *arguments)
    assert (shown.code, shown.out) == (code, "")
    assert len(json.loads(edgewright.ok("token", "list", "--json").out)["items"]) == 2


def test_tokens_are_an_administrators_business(edgewright: CommandLine, token_file: Callable[..., str]) -> None:
    file = token_file(Permission.READ, Permission.CLUSTERS, Permission.SECRETS, Permission.PUSH)
    for arguments in (["list"], ["create", "x", "-p", "admin"], ["revoke", "x"]):
        shown = edgewright("token", *arguments, EDGEWRIGHT_TOKEN_FILE=file)
        assert (shown.code, "permission admin" in shown.err) == (6, True)
