"""`--output json|yaml|name` of every command that takes `--json`."""

import json
from typing import Any

import pytest
import yaml
from command_line import CommandLine, ServedCentre

from edgewright.cli.main import command_tree

WITHOUT_SHORT = [("secret", "put")]
"""A value in the wrong place may begin with -o."""


def leaves(command: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every command that is no group, with its path."""
    below = getattr(command, "commands", None)
    if below is None:
        return [(path, command)]
    return [leaf for name, child in below.items() for leaf in leaves(child, (*path, name))]


def test_whatever_takes_json_takes_output() -> None:
    taking = [(path, command) for path, command in leaves(command_tree()) if "--json" in options(command)]
    assert len(taking) > 40
    assert [path for path, command in taking if "--output" not in options(command)] == []
    assert [path for path, command in taking if "-o" not in options(command)] == WITHOUT_SHORT


def options(command: Any) -> set[str]:
    return {option for each in command.params for option in each.opts}


def test_a_change_is_shown_in_each_form(edgewright: CommandLine, centre: ServedCentre) -> None:
    created = edgewright.ok("cluster", "create", "press-shop", "-o", "yaml")
    cluster = centre.uuid("press-shop")
    shown = yaml.safe_load(created.out)
    assert (shown["name"], shown["uuid"]) == ("press-shop", str(cluster))
    assert "Created press-shop" in created.err
    changed = edgewright.ok("cluster", "set", "press-shop", "--label", "line=4", "--output", "json")
    assert json.loads(changed.out)["labels"] == {"line": "4"}
    again = edgewright.ok("cluster", "set", "press-shop", "--label", "line=5", "--json")
    assert json.loads(again.out)["labels"] == {"line": "5"}
    for arguments in (
        ("create", "line-4", "--wait"),
        ("label", "line-4", "a=b"),
        ("pause", "line-4", "--reason", "why"),
        ("resume", "line-4"),
        ("revoke", "line-4", "--yes"),
        ("check-in", "line-4", "--any-time"),
        ("recreate", "line-4", "--yes"),
        ("wait", "line-4"),
        ("delete", "line-4", "--yes"),
        ("undelete", "line-4"),
    ):
        assert edgewright.ok("cluster", *arguments, "-o", "name").out == "line-4\n", arguments


def test_lists_without_columns_of_their_own_take_it(edgewright: CommandLine, centre: ServedCentre) -> None:
    assert edgewright.ok("template", "list", "-o", "name").out == "edge-cluster\n"
    assert yaml.safe_load(edgewright.ok("residue", "-o", "yaml").out) == {"items": []}
    created = edgewright.ok("repository", "create", "press-line", "-o", "name")
    assert created.out == "press-line\n"


def test_events_are_a_stream_of_documents(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.create("press-shop")
    shown = edgewright.ok("events", "--cluster", "press-shop", "-o", "yaml")
    events = list(yaml.safe_load_all(shown.out))
    assert events[0]["kind"] == "cluster.created"
    lines = edgewright.ok("events", "--cluster", "press-shop", "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == events


@pytest.mark.parametrize("form", ["yaml", "name"])
def test_two_forms_contradict_each_other_and_nothing_is_done(edgewright: CommandLine, form: str) -> None:
    for arguments in (("--json", "-o", form), ("-o", form, "--json")):
        refused = edgewright("cluster", "create", "press-shop", *arguments)
        assert (refused.code, refused.out) == (2, "")
        assert json.loads(refused.err)["detail"] == f"--json and --output {form} contradict each other."
    assert json.loads(edgewright.ok("cluster", "list", "--json").out)["items"] == []


def test_a_form_that_there_is_not_is_named(edgewright: CommandLine) -> None:
    refused = edgewright("cluster", "create", "press-shop", "-o", "xml")
    assert (refused.code, refused.out) == (2, "")
    assert "json" in refused.err and "yaml" in refused.err


def test_what_is_shown_only_once_is_not_lost(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.create("press-shop")
    for arguments in (
        ("token", "create", "ci", "-p", "read"),
        ("webhook", "set", "https://alerts.example.com/edgewright"),
        ("cluster", "bootstrap", "press-shop"),
    ):
        refused = edgewright(*arguments, "-o", "name")
        assert (refused.code, refused.out) == (2, "")
        assert "nothing shows it later" in refused.err
    assert "ci" not in edgewright.ok("token", "list", "-o", "name").out.splitlines()
    token = yaml.safe_load(edgewright.ok("token", "create", "ci", "-p", "read", "-o", "yaml").out)
    assert token["token"].startswith("ew_")


def test_a_command_shows_its_own_form_and_not_that_of_the_one_before(edgewright: CommandLine) -> None:
    edgewright.ok("cluster", "create", "one", "-o", "name")
    assert json.loads(edgewright.ok("cluster", "create", "two", "--json").out)["name"] == "two"
