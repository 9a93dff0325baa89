"""Clusters are changed from the command line: fields, labels, in an editor; and their credentials revoked."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import CommandLine, ServedCentre, Shown, Terminal

from edgewright.cli.commands import cluster_changes
from edgewright.domain.cluster import AcceptancePolicy, CredentialState
from edgewright.domain.wellknown import OBJECT_DEFAULT_CHART

NASTY = "$(rm -rf /); `x` \x1b[2J"


# --- set ---------------------------------------------------------------------------------------------------------


def test_each_field_that_the_api_takes_can_be_set(
    edgewright: CommandLine, centre: ServedCentre, tmp_path: Path
) -> None:
    made = centre.create("press-shop", values={"keep": 1, "gone": 2}, labels={"site": "sheffield"})
    file = tmp_path / "values.yaml"
    file.write_text("gone: null\nimage: {tag: v2}\n")
    fields = ["--namespace", "factory", "--chart", str(OBJECT_DEFAULT_CHART), "--values", str(file), "--bare"]
    fields += ["--label", "line=4", "--accept", "manual", "--lease", "10m"]
    fields += ["--check-in", "Mon-Fri 22:00-06:00", "--check-in", "Sun 10:00-12:00", "--time-zone", "Europe/London"]
    shown = edgewright.ok("cluster", "set", "press-shop", *fields)
    assert shown.out == (
        "Changed namespace, chart, bare, values, labels, accept, lease_seconds, check_in of press-shop.\n"
    )
    row = centre.row(made)
    assert (row.spec.namespace, row.spec.chart, row.spec.bare) == ("factory", OBJECT_DEFAULT_CHART, True)
    assert row.spec.values == {"keep": 1, "image": {"tag": "v2"}}
    assert row.settings.labels == {"site": "sheffield", "line": "4"}
    assert (row.settings.accept, row.settings.lease_seconds) == (AcceptancePolicy.MANUAL, 600)
    assert row.settings.check_in is not None
    assert len(row.settings.check_in.windows) == 2


def test_fields_go_back_to_their_defaults(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create(
        "press-shop", bare=True, values={"a": 1}, labels={"a": "b"}, accept="manual", lease_seconds=60
    )
    gone = [option for field in cluster_changes.ClusterField for option in ("--unset", field)]
    assert "lease_seconds" in edgewright.ok("cluster", "set", "press-shop", *gone).out
    row = centre.row(made)
    assert (row.spec.bare, row.spec.values, row.settings.labels) == (False, {}, {})
    assert (row.settings.accept, row.settings.lease_seconds) == (AcceptancePolicy.AUTO, 300)


def test_a_change_that_changes_nothing_says_so(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop", lease_seconds=60)
    before = centre.row(made).change
    shown = edgewright.ok("cluster", "set", "PRESS-shop", "--lease", "1m")
    assert "was like that already" in shown.out
    assert centre.row(made).change == before
    assert (
        json.loads(edgewright.ok("cluster", "set", str(made), "--lease", "1m", "--json").out)["lease_seconds"] == 60
    )


SET_MISTAKES: tuple[tuple[list[str], int, str], ...] = (
    ([], 2, "Say what to change"),
    (["--time-zone", "UTC"], 2, "--check-in"),
    (["--lease", "1h", "--unset", "lease"], 2, "contradict"),
    (["--lease", "1s"], 2, "at least 10 s"),
    (["--lease", "31d"], 2, "at most 30 days"),
    (["--chart", "no-such-chart"], 2, "No Helm chart template"),
    (["--values", "/nonexistent.yaml"], 2, "cannot be read"),
    (["--label", "site"], 2, "key=value"),
    (["--unset", "name"], 2, "name"),
    (["--check-in", "always"], 2, "windows"),
)


@pytest.mark.parametrize(("options", "code", "sentence"), SET_MISTAKES)
def test_a_mistake_in_a_change_is_one_sentence(
    edgewright: CommandLine, centre: ServedCentre, options: list[str], code: int, sentence: str
) -> None:
    made = centre.create("press-shop")
    shown = edgewright("cluster", "set", "press-shop", *options)
    assert (shown.code, shown.out) == (code, ""), shown
    assert sentence in shown.err
    assert centre.row(made).change == 1


def test_values_that_are_no_text_are_wrong_usage(environment: dict[str, str | None], tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    shown = CommandLine(environment)("cluster", "set", "x", "--values", str(file))
    assert (shown.code, "not UTF-8" in shown.err) == (2, True)


@pytest.fixture
def overtaken(centre: ServedCentre, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Patches that somebody else sends after each look, one for each."""
    theirs: list[dict[str, Any]] = []
    look = cluster_changes.see_cluster

    def see(*arguments: Any) -> cluster_changes.SeenCluster:
        seen = look(*arguments)
        if theirs:
            wish = centre.centre.app.state.cluster_room.configurations
            centre.do(wish.change(centre.uuid(seen.cluster.text), theirs.pop(0), actor="token:other"))
        return seen

    monkeypatch.setattr(cluster_changes, "see_cluster", see)
    monkeypatch.setattr("edgewright.cli.commands.cluster_edit.see_cluster", see)
    return theirs


@pytest.mark.parametrize("patch", [{"values": {"theirs": 1}}, {"labels": {"theirs": "1"}}, {"lease_seconds": 90}])
def test_two_people_at_once_are_told(
    edgewright: CommandLine, centre: ServedCentre, overtaken: list[dict[str, Any]], patch: dict[str, Any]
) -> None:
    made = centre.create("press-shop")
    overtaken.append(patch)
    shown = edgewright("cluster", "set", "press-shop", "--lease", "1m")
    assert (shown.code, shown.out) == (4, "")
    assert "Somebody else has changed press-shop" in shown.err
    assert centre.row(made).settings.lease_seconds != 60
    edgewright.ok("cluster", "set", "press-shop", "--lease", "1m")


# --- labels ------------------------------------------------------------------------------------------------------


def test_labels_are_set_and_removed(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop", labels={"site": "sheffield", "line": "4"})
    shown = edgewright.ok("cluster", "label", "press-shop", "line-", "hall=2", "empty=", "dash=")
    assert shown.out == "Changed labels of press-shop.\n"
    assert centre.row(made).settings.labels == {"site": "sheffield", "hall": "2", "empty": "", "dash": ""}
    again = edgewright.ok("cluster", "label", "press-shop", "line-", "hall=2")
    assert "was like that already" in again.out
    assert "has no label line" in again.err


def test_a_label_with_another_value_is_changed_on_request_only(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop", labels={"site": "sheffield"})
    refused = edgewright("cluster", "label", "press-shop", "site=leeds", "line=4")
    assert (refused.code, refused.out) == (4, "")
    assert "site=sheffield" in refused.err
    assert "--overwrite" in refused.err
    assert centre.row(made).settings.labels == {"site": "sheffield"}
    edgewright.ok("cluster", "label", "press-shop", "site=leeds", "--overwrite")
    assert centre.row(made).settings.labels == {"site": "leeds"}


@pytest.mark.parametrize("labels", [["site"], ["-"], ["=x"], ["a=1", "a=2"], ["a=1", "a-"], []])
def test_a_label_that_is_none_is_wrong_usage(environment: dict[str, str | None], labels: list[str]) -> None:
    shown = CommandLine(environment)("cluster", "label", "press-shop", *labels)
    assert (shown.code, shown.out) == (2, "")
    assert "Traceback" not in shown.err


def test_labels_of_two_people_at_once_are_both_kept(
    edgewright: CommandLine, centre: ServedCentre, overtaken: list[dict[str, Any]]
) -> None:
    made = centre.create("press-shop")
    overtaken += [{"labels": {"theirs": "1"}}, {"values": {"a": 1}}]
    edgewright.ok("cluster", "label", "press-shop", "ours=1")
    assert centre.row(made).settings.labels == {"theirs": "1", "ours": "1"}
    overtaken.append({"labels": {"site": "leeds"}})
    contradicted = edgewright("cluster", "label", "press-shop", "site=sheffield")
    assert (contradicted.code, "site=leeds" in contradicted.err) == (4, True)


def test_labels_cannot_steer_a_terminal_or_a_shell(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    shown = edgewright("cluster", "label", "press-shop", f"site={NASTY}")
    assert "\x1b" not in shown.out + shown.err
    assert centre.row(made).settings.labels == ({"site": NASTY} if shown.code == 0 else {})
    shown = edgewright("cluster", "label", "press-shop", "site=x")
    assert "\x1b" not in shown.out + shown.err


# --- in an editor ------------------------------------------------------------------------------------------------


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor: a Python program whose body a test writes; ``file`` and ``text`` are what it was opened with."""
    body, program = tmp_path / "body.py", tmp_path / "an editor.py"
    program.write_text(
        "import pathlib, sys\n"
        "file = pathlib.Path(sys.argv[-1]); text = file.read_text()\n"
        f"log = pathlib.Path({str(tmp_path / 'opened')!r})\n"
        "round = len(log.read_text().splitlines()) if log.exists() else 0\n"
        "log.open('a').write(f'{file}\\n')\n"
        f"exec(pathlib.Path({str(body)!r}).read_text())\n"
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("VISUAL", f"{sys.executable} '{program}' --wait")
    return body


def kept(tmp_path: Path) -> list[Path]:
    return sorted(tmp_path.glob("edgewright-*.yaml"))


def test_what_is_saved_in_the_editor_is_the_change(
    edgewright: CommandLine, centre: ServedCentre, tmp_path: Path, editor: Path
) -> None:
    made = centre.create("press-shop", values={"größe": "1\x07", "gone": 1, "on": "yes"}, labels={"site": "leeds"})
    editor.write_text(
        "assert text.startswith('# The cluster press-shop.'), text\n"
        "import yaml; held = yaml.safe_load(text)\n"
        "assert held['values'] == {'größe': '1\\x07', 'gone': 1, 'on': 'yes'}, held\n"
        "assert not pathlib.Path(file).stat().st_mode & 0o077\n"
        "del held['values']['gone'], held['lease_seconds']\n"
        "held['labels']['line'] = '4'\n"
        "held['check_in'] = {'windows': ['22:00-06:00'], 'time_zone': 'UTC'}\n"
        "file.write_text('# mine\\n' + yaml.safe_dump(held))\n"
    )
    shown = edgewright.ok("cluster", "edit", "press-shop")
    assert shown.out == "Changed values, labels, check_in of press-shop.\n"
    row = centre.row(made)
    assert row.spec.values == {"größe": "1\x07", "on": "yes"}
    assert row.settings.labels == {"site": "leeds", "line": "4"}
    assert kept(tmp_path) == []


@pytest.mark.parametrize("body", ["pass", "file.write_text('')", "file.write_text('# only this\\n' + text)"])
def test_what_is_saved_unchanged_or_empty_changes_nothing(
    edgewright: CommandLine, centre: ServedCentre, tmp_path: Path, editor: Path, body: str
) -> None:
    made = centre.create("press-shop")
    editor.write_text(body)
    assert "You changed nothing" in edgewright.ok("cluster", "edit", "press-shop").out
    assert (centre.row(made).change, kept(tmp_path)) == (1, [])
    assert json.loads(edgewright.ok("cluster", "edit", "press-shop", "--json").out)["uuid"] == str(made)


EDIT_MISTAKES = (
    ("{", 2, "not YAML"),
    ("- a", 2, "does not hold a mapping"),
    ("lables: {}", 2, "no field called lables"),
    ("labels: {line: 4}", 2, "label line is not text"),
    ("namespace: edgewright\nvalues: {a: null}", 2, "/values/a cannot be set to null"),
    ("namespace: Not a namespace", 2, "namespace"),
    ("namespace: edgewright\nlease_seconds: 1", 2, "lease_seconds"),
)


@pytest.mark.parametrize(("text", "code", "sentence"), EDIT_MISTAKES)
def test_without_a_terminal_a_mistake_ends_the_edit_and_keeps_the_text(
    edgewright: CommandLine, centre: ServedCentre, tmp_path: Path, editor: Path, text: str, code: int, sentence: str
) -> None:
    made = centre.create("press-shop")
    editor.write_text(f"file.write_text({text!r})")
    shown = edgewright("cluster", "edit", "press-shop")
    assert (shown.code, shown.out) == (code, ""), shown
    assert sentence in shown.err
    [file] = kept(tmp_path)
    assert f"Your text is kept in {file}." in shown.err
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == (text, 0o600)
    assert centre.row(made).change == 1
    if "lables" in text:
        assert "Did you mean labels?" in shown.err


def test_on_a_terminal_a_mistake_opens_the_editor_again(
    terminal: Terminal, centre: ServedCentre, tmp_path: Path, editor: Path
) -> None:
    made = centre.create("press-shop", lease_seconds=60)
    editor.write_text(
        "if round == 0: file.write_text(text.replace('lease_seconds: 60', 'lease_seconds: 5'))\n"
        "else:\n"
        "    assert '# Refused: ' in text and 'lease_seconds: 5' in text, text\n"
        "    assert text.count('# The cluster') == 1\n"
        "    file.write_text(text.replace('lease_seconds: 5', 'lease_seconds: 50'))\n"
    )
    shown = terminal("cluster", "edit", "press-shop")
    assert (shown.code, "Changed lease_seconds of press-shop." in shown.out) == (0, True), shown
    assert (centre.row(made).settings.lease_seconds, kept(tmp_path)) == (50, [])


def test_a_mistake_that_is_left_as_it_is_ends_the_edit(
    terminal: Terminal, centre: ServedCentre, tmp_path: Path, editor: Path
) -> None:
    centre.create("press-shop")
    editor.write_text("if round == 0: file.write_text('{')")
    shown = terminal("cluster", "edit", "press-shop")
    assert (shown.code, "not YAML" in shown.out) == (2, True)
    assert len(kept(tmp_path)) == 1
    assert len((tmp_path / "opened").read_text().splitlines()) == 2


def test_a_change_by_somebody_else_keeps_the_text_of_the_edit(
    edgewright: CommandLine, centre: ServedCentre, tmp_path: Path, editor: Path, overtaken: list[dict[str, Any]]
) -> None:
    made = centre.create("press-shop", lease_seconds=60)
    overtaken.append({"labels": {"theirs": "1"}})
    editor.write_text("file.write_text(text.replace('lease_seconds: 60', 'lease_seconds: 90'))")
    shown = edgewright("cluster", "edit", "press-shop")
    assert (shown.code, shown.out) == (4, "")
    assert "Somebody else has changed press-shop" in shown.err
    [file] = kept(tmp_path)
    assert str(file) in shown.err
    assert yaml.safe_load(file.read_text())["lease_seconds"] == 90
    assert centre.row(made).settings.lease_seconds == 60


def edited_with(edgewright: CommandLine, monkeypatch: pytest.MonkeyPatch, value: str | None) -> Shown:
    for variable in ("VISUAL", "EDITOR"):
        monkeypatch.setenv(variable, value or " ")
    return edgewright("cluster", "edit", "press-shop")


@pytest.mark.parametrize(
    ("value", "code", "sentence"),
    [
        (None, 2, "neither VISUAL nor EDITOR is set"),
        ("'unbalanced", 2, "quotation mark"),
        ("/no/such/editor", 2, "cannot be started"),
        ("false", 1, "exit code 1"),
    ],
)
def test_an_editor_that_does_not_work_is_told(
    edgewright: CommandLine,
    centre: ServedCentre,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    value: str | None,
    code: int,
    sentence: str,
) -> None:
    made = centre.create("press-shop")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    shown = edited_with(edgewright, monkeypatch, value)
    assert (shown.code, shown.out, sentence in shown.err) == (code, "", True), shown
    assert (kept(tmp_path), "kept" in shown.err) == ([], False), "nothing was typed"
    assert centre.row(made).change == 1


# --- revoke ------------------------------------------------------------------------------------------------------


def test_revoked_credentials_are_refused_and_a_fresh_line_lets_the_edge_in(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    made = centre.create("press-shop")
    edge = centre.do(centre.centre.register(made))
    assert edgewright("cluster", "revoke", "press-shop").code == 2, "there is nobody to ask"

    def heartbeat(headers: dict[str, str]) -> int:
        sent = centre.centre.client(headers).post("/v1/agent/heartbeat", json={"nonce": "n"})
        return centre.do(sent).status_code

    assert heartbeat(edge.as_agent) == 200
    shown = edgewright.ok("cluster", "revoke", "press-shop", "--yes")
    assert shown.out == "Revoked 2 credentials of press-shop.\n"
    assert "cluster bootstrap press-shop" in shown.err
    assert heartbeat(edge.as_agent) == 401
    assert heartbeat(centre.do(centre.centre.register(made)).as_agent) == 200
    assert json.loads(edgewright.ok("cluster", "revoke", "press-shop", "--yes", "--json").out) == {"revoked": 2}
    assert "had no credentials" in edgewright.ok("cluster", "revoke", "press-shop", "-y").out


def test_revoking_asks_and_says_what_follows(terminal: Terminal, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    edge = centre.do(centre.centre.register(made))
    shown = terminal("cluster", "revoke", "press-shop", typed="n\n")
    assert shown.code == 1
    assert "neither fetch its repository nor report" in shown.out
    held = centre.do(centre.centre.ports.edge_access.credentials(edge.cluster))
    assert {each.state for each in held} == {CredentialState.ACTIVE}
    assert terminal("cluster", "revoke", "press-shop", typed="y\n").code == 0
