"""Lists fit a terminal, and say the same to machines in the form that these ask for."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from command_line import CommandLine, ServedCentre, Terminal

from edgewright.cli.commands.durations import ago, ahead
from edgewright.cli.commands.screen import Column, show_table, show_yaml, table_lines
from edgewright.domain.cluster import Phase

NOW = datetime(2031, 2, 3, 12, tzinfo=UTC)
LONG_NAME = "press-shop-" + "x" * 52
LONG_SENTENCE = "The repository has no room for another commit, because its disk is full to the last byte."
STEERING = "\x1b[31m \x7f \x85 \x9b31m \u202e \u2066 \u200f \u2028 \ufeff"


@pytest.fixture
def narrow(terminal: Terminal) -> Terminal:
    """A terminal of 80 columns."""
    return Terminal({**terminal.environment, "COLUMNS": "80", "NO_COLOR": None})


def seen(shown: str) -> list[str]:
    """The lines without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()


# --- times ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.9, "now"),
        (1, "1s ago"),
        (12, "12s ago"),
        (59.9, "59s ago"),
        (60, "1m ago"),
        (3 * 60 + 59, "3m ago"),
        (5 * 3600, "5h ago"),
        (2 * 86400 + 86399, "2d ago"),
        (7 * 86400 - 1, "6d ago"),
        (7 * 86400, "2031-01-27"),
        (400 * 86400, "2029-12-30"),
    ],
)
def test_past_moment_is_told_by_its_distance_then_by_its_date(seconds: float, said: str) -> None:
    assert ago((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == said


@pytest.mark.parametrize("seconds", [0, 1, 300, 10**7])
def test_clock_that_is_behind_sees_no_future(seconds: int) -> None:
    assert ago((NOW + timedelta(seconds=seconds)).isoformat(), NOW) == "now"


def test_moment_of_another_time_zone_is_the_same_moment() -> None:
    assert ago("2031-02-03T17:27:00+05:30", NOW) == "3m ago"
    assert ago("2031-01-01T01:00:00+05:30", NOW) == "2030-12-31"


def test_moment_ahead_is_told_by_its_distance_and_is_over_when_it_has_passed() -> None:
    said = [ahead((NOW + timedelta(seconds=seconds)).isoformat(), NOW) for seconds in (-5, 0, 12, 7200, 8 * 86400)]
    assert said == ["now", "now", "in 12s", "in 2h", "2031-02-11"]


def test_no_moment_is_told_as_nothing() -> None:
    assert [ago(None), ago(""), ahead(None)] == ["", "", ""]


# --- 80 columns ----------------------------------------------------------------------------------------------------


def test_line_fits_the_terminal_and_wide_shows_what_was_cut(narrow: Terminal, centre: ServedCentre) -> None:
    made = centre.create(LONG_NAME)
    centre.project(made, waiting_for=LONG_SENTENCE)
    header, line = seen(narrow("cluster", "list").out)
    assert max(map(len, (header, line))) <= 80
    assert line.startswith("press-shop-xxx") and line.count("…") == 2
    assert header.index("WAITING FOR") == line.index("The repository")
    _, line = seen(narrow("cluster", "list", "-o", "wide").out)
    assert LONG_NAME in line and LONG_SENTENCE in line and str(made) in line


def test_short_cells_are_not_cut(narrow: Terminal, centre: ServedCentre) -> None:
    centre.create("press-shop")
    assert "…" not in narrow("cluster", "list").out


def test_page_of_a_cluster_is_folded_and_loses_nothing(narrow: Terminal, centre: ServedCentre) -> None:
    made = centre.create("press-shop", labels={f"label-{number}": "value" for number in range(12)})
    centre.project(made, waiting_for=LONG_SENTENCE)
    lines = seen(narrow("cluster", "show", "press-shop").out)
    page = " ".join(" ".join(lines).split())
    assert LONG_SENTENCE in page
    urls = [line for line in lines if len(line) > 80]
    assert all(re.fullmatch(r"\S+ +\S+", line) for line in urls), "a URL stays in one piece, to be opened"


def test_timeline_is_folded_and_loses_nothing(narrow: Terminal, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    shown = seen(narrow("cluster", "timeline", "press-shop").out)
    assert max(map(len, shown)) <= 80
    assert "The cluster press-shop was created." in " ".join(" ".join(shown).split())
    wide = narrow("cluster", "timeline", "press-shop", "-o", "wide").out
    assert "cluster.created" in wide
    assert str(made) not in wide


def test_table_without_a_wide_form_is_folded_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "24")  # without it, Rich takes a dumb terminal for one of 80 columns
    monkeypatch.setenv("TERM", "dumb")
    url = "https://registry.example.com/a/path/that/is/longer/than/a/line"
    show_table(("who", "what"), [("press-shop", f"fetches from {url}, and tries again in a while"), ("x", "")])
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == ["WHO         WHAT", "press-shop  fetches from", f"            {url},"]
    assert all(len(line) <= 40 for line in shown if url not in line)
    assert shown[-1] == "x           -"


def test_cells_of_wide_letters_are_measured_as_the_terminal_does() -> None:
    columns = (Column("name", lambda item: str(item["name"]), long=True), Column("x", lambda _: "y"))
    [_, line] = table_lines(columns, [{"name": "漢字" * 20}], room=30)
    assert line.cell_len <= 30
    assert line.plain.endswith("  y")


# --- forms for machines --------------------------------------------------------------------------------------------


LISTS = (
    ("cluster", "list"),
    ("cluster", "show", "press-shop"),
    ("cluster", "timeline", "press-shop"),
    ("secret", "list", "press-shop"),
    ("token", "list"),
)


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_every_form_is_of_the_apis_document(
    edgewright: CommandLine, centre: ServedCentre, command: tuple[str, ...]
) -> None:
    centre.create("press-shop", labels={"site": "sheffield"})
    document = json.loads(edgewright.ok(*command, "--json").out)
    assert json.loads(edgewright.ok(*command, "-o", "json").out) == document
    assert json.loads(edgewright.ok(*command, "--json", "-o", "json").out) == document
    assert yaml.safe_load(edgewright.ok(*command, "-o", "yaml").out) == document
    refused = edgewright(*command, "--json", "-o", "yaml")
    assert (refused.code, refused.out) == (2, "")
    assert "--json and --output yaml" in refused.err


def test_names_are_shown_one_a_line_and_once(edgewright: CommandLine, centre: ServedCentre) -> None:
    for name in ("press-shop", "paint-shop"):
        centre.create(name)
    assert edgewright.ok("cluster", "list", "-o", "name").out == "paint-shop\npress-shop\n"
    assert edgewright.ok("cluster", "show", "PRESS-SHOP", "-o", "name").out == "press-shop\n"
    edgewright.ok("token", "create", "ci", "-p", "read")
    assert "ci" in edgewright.ok("token", "list", "-o", "name").out.splitlines()
    assert edgewright.ok("secret", "list", "press-shop", "-o", "name").out == ""


def test_list_without_anything_has_no_names(edgewright: CommandLine) -> None:
    assert edgewright.ok("cluster", "list", "-o", "name").out == ""
    assert edgewright.ok("cluster", "list", "-o", "yaml").out == "items: []\nnext: null\n"


def test_form_that_is_not_there_is_wrong_usage(environment: dict[str, str | None]) -> None:
    assert CommandLine(environment)("cluster", "list", "-o", "xml").code == 2


def test_yaml_holds_nothing_that_steers_a_terminal_and_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    document = {
        "plain": "näch 漢字",
        f"key {STEERING}": [f"value {STEERING}", "yes", "2031-02-03", "a\nb", None, 1.5],
    }
    show_yaml(document)
    shown = capsys.readouterr().out
    assert [letter for letter in shown if not letter.isprintable() and letter != "\n"] == []
    assert yaml.safe_load(shown) == document
    show_yaml({"plain": "näch 漢字"})
    assert capsys.readouterr().out == "plain: näch 漢字\n"


# --- colours -------------------------------------------------------------------------------------------------------


def trouble(centre: ServedCentre) -> None:
    centre.project(centre.create("press-shop"), phase=Phase.DETACHING)


def test_what_should_be_noticed_has_a_colour_on_a_terminal(narrow: Terminal, centre: ServedCentre) -> None:
    trouble(centre)
    assert "\x1b[33mDetaching" in narrow("cluster", "list").out


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_who_wants_no_colour_gets_none(narrow: Terminal, centre: ServedCentre, variables: dict[str, str]) -> None:
    trouble(centre)
    shown = Terminal({**narrow.environment, **variables})("cluster", "list").out
    assert re.findall(r"\x1b\[[0-9;]*3[0-9][0-9;]*m", shown) == []
    assert "Detaching" in shown
    assert variables.get("TERM") is None or "\x1b" not in shown


def test_pipe_and_file_get_text_only_whatever_variables_say(
    edgewright: CommandLine, narrow: Terminal, centre: ServedCentre, tmp_path: Path
) -> None:
    trouble(centre)
    forced = {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "CLICOLOR_FORCE": "1"}
    for command in (("cluster", "list"), ("cluster", "show", "press-shop")):
        assert "\x1b" not in edgewright(*command, **forced).out
        assert "\x1b" not in Terminal({**narrow.environment, **forced})(*command, out=tmp_path / "out").out
