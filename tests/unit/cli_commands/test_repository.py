"""Repositories that people push to, from the command line."""

import json
from pathlib import Path
from uuid import UUID

from command_line import CommandLine, ServedCentre, Terminal

from edgewright.ports.git_server import CommitMessage


def test_a_repository_is_made_once_listed_and_removed_after_a_yes(
    edgewright: CommandLine, terminal: Terminal, centre: ServedCentre
) -> None:
    made = edgewright.ok("repository", "create", "press-line")
    assert made.out == "Created the repository shared/press-line.\n"
    assert "Push to it: git push " in made.err and made.err.endswith("/git/shared/press-line HEAD:main\n")
    assert edgewright.ok("repository", "create", "press-line").out == (
        "The repository shared/press-line is there already.\n"
    )
    body = json.loads(edgewright.ok("repository", "create", "press-line", "--json").out)
    git, uuid = centre.centre.git, UUID(body["uuid"])
    header, charts, line = edgewright.ok("repository", "list").out.splitlines()
    assert header.split() == ["NAME", "PUSHED", "BY", "COMMIT", "MADE"]
    assert (charts.split()[:3], line.split()[:2]) == (["helm-charts", "the", "centre"], ["press-line", "you"])
    assert "none yet" in line

    message = CommitMessage("First", "test")
    head = git.commit(uuid, {"a": b"1"}, message, expected_head=None)
    assert head[:12] in edgewright.ok("repository", "list").out
    wide = edgewright.ok("repository", "list", "-o", "wide").out
    assert all(shown in wide for shown in (head, str(uuid), "/git/shared/press-line"))
    assert edgewright.ok("repository", "list", "-o", "name").out == "helm-charts\npress-line\n"
    assert "Push to it" not in edgewright.ok("repository", "create", "press-line").err

    unasked = edgewright("repository", "remove", "press-line")
    assert (unasked.code, "needs a confirmation" in unasked.err) == (2, True)
    terminal("repository", "remove", "press-line", typed="n\n")
    assert git.exists(uuid)
    assert edgewright.ok("repository", "remove", "press-line", "--yes").out == (
        "Removed the repository shared/press-line; it is kept in the centre's archive.\n"
    )
    assert not git.exists(uuid)


def test_one_that_a_cluster_names_is_removed_if_that_is_ignored(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    edgewright.ok("repository", "create", "press-line")
    uuid = UUID(json.loads(edgewright.ok("cluster", "create", "press-shop", "--json").out)["uuid"])
    git = centre.centre.git
    files = {"by-hand/line.yaml": b"url: https://centre.example/git/shared/press-line\n"}
    git.commit(uuid, files, CommitMessage("By hand", "test"), expected_head=git.head(uuid))
    refused = edgewright("repository", "remove", "press-line", "--yes")
    assert (refused.code, refused.out) == (4, "")
    assert "The cluster press-shop names this repository in by-hand/line.yaml." in refused.err
    assert "--ignore-by-hand" in refused.err
    edgewright.ok("repository", "remove", "press-line", "--ignore-by-hand", "--yes")
    assert edgewright.ok("repository", "list", "-o", "name").out == "helm-charts\n"


def test_mistakes_are_told_in_words(edgewright: CommandLine, tmp_path: Path) -> None:
    marked = tmp_path / "marked"
    for name, code in (("Press", 2), (f"$(touch {marked})", 2), ("-", 2), ("helm-charts", 4)):
        refused = edgewright("repository", "create", name)
        assert (refused.code, refused.out) == (code, ""), refused
        assert "shared repository" in refused.err.lower()
    assert not marked.exists()
    unknown = edgewright("repository", "remove", "pres-line", "--yes")
    assert (unknown.code, "repository list" in unknown.err) == (3, True)
    assert edgewright("repository", "remove", "helm-charts", "--yes").code == 6
    as_json = edgewright("repository", "create", "Press", "--json")
    assert json.loads(as_json.err.splitlines()[-1])["code"] == "name_invalid"
