"""Upgrading many edges: never more at once than allowed, no further ones after a failure, and each is told of."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from upgrading_centre import (
    IMAGE,
    NAMES,
    NEW,
    NO_EDGE,
    OLD,
    SILENT,
    UpgradeDesk,
    UpgradingCentre,
    outcomes,
    problem,
    upgrade_desk,
)

from edgewright.cli.failures import ExitCode


@pytest.fixture(params=[1, 2, 3])
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def desk(environment: dict[str, str | None], tmp_path: Path, quick: None) -> Iterator[UpgradeDesk]:
    """Twenty edges."""
    with upgrade_desk(environment, tmp_path, UpgradingCentre(random.Random(7))) as opened:
        yield opened


def test_twenty_clusters_with_a_limit_of_five_never_have_six_under_way(desk: UpgradeDesk, seed: int) -> None:
    desk.centre.random.seed(seed)
    shown = desk("agent", "upgrade", "--all", "--at-once", "5", "--yes")
    assert shown.code == 0, shown
    assert desk.centre.most_under_way == 5, "the room that there is is used, and no more"
    assert desk.centre.states() == dict.fromkeys(NAMES, "done")
    assert outcomes(shown.out) == dict.fromkeys(NAMES, f"upgraded to {NEW}")
    assert shown.out.splitlines()[-1] == "20 clusters: 20 upgraded."
    assert sorted(outcomes(shown.err).values()) == [f"upgrading from {OLD} to {NEW}"] * 20
    assert len(desk.centre.begun) == 20


def test_several_clusters_are_limited_unless_somebody_says_otherwise(desk: UpgradeDesk) -> None:
    assert desk("agent", "upgrade", "--all", "--yes").code == 0
    assert {body["at_once"] for body in desk.centre.bodies()} == {5}
    assert desk.centre.most_under_way == 5


def test_upgrades_of_other_people_count_against_the_limit(desk: UpgradeDesk) -> None:
    desk.centre.others = 3
    assert desk("agent", "upgrade", "--all", "--at-once", "5", "--yes").code == 0
    assert desk.centre.most_under_way == 5
    assert len(desk.centre.begun) == 20


def test_after_a_failure_no_further_upgrade_begins(desk: UpgradeDesk, seed: int) -> None:
    desk.centre.random.seed(seed)
    desk.centre.ends["press-04"] = "fell_back"
    shown = desk("agent", "upgrade", "--all", "--at-once", "5", "--yes")
    assert shown.code == 1
    assert desk.centre.begun_after_a_failure == 0
    begun = set(desk.centre.begun)
    assert 5 <= len(begun) < 20
    assert desk.centre.states() == {name: "fell_back" if name == "press-04" else "done" for name in begun}
    told = outcomes(shown.out)
    assert told.pop("press-04") == f"fell back to {OLD}: The new agent?[31m could not call."
    assert told == dict.fromkeys(begun - {"press-04"}, f"upgraded to {NEW}")
    left = 20 - len(begun)
    assert f"{left + 1} of 20 clusters were not upgraded: press-04, " in shown.err
    assert f"({len(begun) - 1} upgraded, 1 fell back, {left} not begun)" in shown.err
    assert "--max-failures" in shown.err


def test_more_failures_are_borne_where_somebody_allows_them(desk: UpgradeDesk) -> None:
    desk.centre.ends |= {"press-01": "fell_back", "press-09": "failed"}
    shown = desk("agent", "upgrade", "--all", "--max-failures", "2", "--yes")
    assert shown.code == 1
    assert len(desk.centre.begun) == 20
    assert "2 of 20 clusters were not upgraded: " in shown.err
    assert "(18 upgraded, 1 fell back, 1 failed)" in shown.err


def test_clusters_that_refuse_are_told_of_and_do_not_stop_the_others(desk: UpgradeDesk) -> None:
    desk.centre.refused |= {"press-02": SILENT, "press-03": problem("flux_not_ours", "This Flux is somebody else's.")}
    shown = desk("flux", "upgrade", "--label", "site=sheffield", "--version", "2.7.4", "--yes")
    assert shown.code == 1
    assert {body["version"] for body in desk.centre.bodies()} == {"v2.7.4"}
    assert len(desk.centre.begun) == 18
    assert "press-02  left out: No heartbeat of this edge since 2031-02-03T04:05:06Z." in shown.err
    assert "press-03  left out: This Flux is somebody else's." in shown.err
    assert "2 of 20 clusters were not upgraded: press-02, press-03 (18 upgraded, 2 left out)." in shown.err
    assert any("label=site%3Dsheffield" in each.path for each in desk.centre.asked)


def test_a_cluster_without_an_edge_fails_only_if_it_was_named(desk: UpgradeDesk) -> None:
    desk.centre.refused["press-02"] = NO_EDGE
    chosen = desk("agent", "upgrade", "--all", "--yes")
    assert (chosen.code, chosen.out.splitlines()[-1]) == (0, "20 clusters: 19 upgraded, 1 without an edge.")
    meant = desk("agent", "upgrade", "press-01", "press-02", "--yes")
    assert (meant.code, "1 of 2 clusters was not upgraded: press-02" in meant.err) == (1, True)


def test_an_only_cluster_that_refuses_has_the_gateways_own_answer(desk: UpgradeDesk) -> None:
    desk.centre.refused["press-02"] = SILENT
    shown = desk("agent", "upgrade", "press-02", "--yes", "--json")
    assert (shown.code, shown.out) == (ExitCode.REFUSED, "")
    assert json.loads(shown.err.splitlines()[-1])["code"] == "edge_silent"
    assert desk.centre.bodies() == [
        {"component": "agent", "version": None, "at_once": None, "even_if_silent": False},
    ]


def test_what_the_centre_lacks_is_told_once(desk: UpgradeDesk) -> None:
    for name in NAMES:
        desk.centre.refused[name] = problem("flux_not_imported", "The centre has no Flux to give.", 404)
    shown = desk("flux", "upgrade", "--all", "--yes")
    assert (shown.code, shown.out) == (ExitCode.NOT_FOUND, "")
    assert "The centre has no Flux to give." in shown.err
    assert len(desk.centre.bodies()) == 1


def test_a_centre_that_cannot_upgrade_edges_is_told_of_once(desk: UpgradeDesk) -> None:
    for name in NAMES:
        desk.centre.refused[name] = problem("route_unknown", "There is nothing at this path.", 404)
    shown = desk("agent", "upgrade", "--all", "--yes")
    assert (shown.code, shown.out) == (ExitCode.REFUSED, "")
    assert "This centre is of a version that cannot upgrade edges." in shown.err
    assert len(desk.centre.bodies()) == 1


def test_the_same_command_again_does_only_what_is_left(desk: UpgradeDesk) -> None:
    desk.centre.ends["press-20"] = "fell_back"
    assert desk("agent", "upgrade", "--all", "--yes").code == 1
    desk.centre.begun.clear()
    desk.centre.ends.clear()
    shown = desk("agent", "upgrade", "--all", "--yes")
    assert shown.code == 0, shown
    assert desk.centre.begun == ["press-20"]
    told = outcomes(shown.out)
    assert told.pop("press-20") == f"upgraded to {NEW}"
    assert set(told.values()) == {f"has {NEW} already"}


def test_a_lost_answer_begins_no_second_upgrade(desk: UpgradeDesk) -> None:
    desk.centre.lost, desk.centre.away = 2, 2
    shown = desk("agent", "upgrade", "press-01", "press-02", "press-03", "--yes")
    assert shown.code == 0, shown
    assert desk.centre.begun == NAMES[:3]
    assert "The database is away. Trying again." in shown.err


def test_an_upgrade_that_another_one_has_replaced_is_no_longer_waited_for(desk: UpgradeDesk) -> None:
    desk.centre.ends |= {"press-01": "replaced"}
    shown = desk("agent", "upgrade", "press-01", "press-02", "--at-once", "1", "--yes")
    assert shown.code == 1
    assert outcomes(shown.out)["press-01"].startswith(f"no longer upgraded to {NEW}: ")
    assert desk.centre.states()["press-02"] == "done", "a change of mind is no failure of the version"


def test_after_one_was_called_off_no_further_upgrade_begins(desk: UpgradeDesk, seed: int) -> None:
    desk.centre.random.seed(seed)
    desk.centre.ends["press-04"] = "cancelled"
    shown = desk("agent", "upgrade", "--all", "--at-once", "5", "--max-failures", "10", "--yes")
    assert shown.code == 1
    assert 5 <= len(desk.centre.begun) < 20
    assert desk.centre.begun_after_a_failure == 0
    assert "1 called off, " in shown.err
    assert "Somebody has called an upgrade off, so no further one was begun." in shown.err
    assert outcomes(shown.out)["press-04"].startswith(f"no longer upgraded to {NEW}: ")


# --- asking before -------------------------------------------------------------------------------------------------


def test_nothing_begins_without_a_yes(desk: UpgradeDesk) -> None:
    piped = desk("agent", "upgrade", "--all")
    assert (piped.code, "Use --yes in scripts." in piped.err) == (2, True)
    refused = desk.at_a_terminal("agent", "upgrade", "--all", typed="n\n")
    assert (refused.code, "Nothing was changed." in refused.out) == (1, True)
    assert desk.centre.bodies() == []


def test_an_older_centre_that_does_not_say_what_it_offers_is_asked_all_the_same(desk: UpgradeDesk) -> None:
    desk.centre.lacks = "/v1/agent-image"
    asked = desk.at_a_terminal("agent", "upgrade", "press-07", typed="n\n")
    assert "Upgrade press-07 to the agent of this centre? [y/N]" in asked.out


def test_nothing_is_asked_where_the_centre_has_no_agent_to_give(desk: UpgradeDesk) -> None:
    desk.centre.offers_agent = False
    shown = desk.at_a_terminal("agent", "upgrade", "--all")
    assert (shown.code, desk.centre.bodies()) == (ExitCode.NOT_FOUND, [])
    assert "This centre has no image of the agent." in shown.out
    assert "[y/N]" not in shown.out


def test_the_question_says_how_many_and_from_which_versions_to_which(desk: UpgradeDesk) -> None:
    assert desk("agent", "upgrade", "press-05", "press-06", "--yes").code == 0
    asked = desk.at_a_terminal("agent", "upgrade", "--all", typed="n\n").out
    assert f"17 of 20 now: agent {OLD}" in asked
    assert f"2 of 20 now: agent {NEW}" in asked
    assert "1 of 20 now: agent of a version that is not known" in asked
    assert f"Upgrade 20 clusters, 5 at a time, to agent {NEW} ({IMAGE})? [y/N]" in asked
    one = desk.at_a_terminal("agent", "upgrade", "press-07", typed="y\n")
    assert one.code == 0
    assert f"Upgrade press-07 to agent {NEW} ({IMAGE})? [y/N]" in one.out
    assert f"press-07  upgraded to {NEW}" in one.out
    flux = desk.at_a_terminal("flux", "upgrade", "press-07", "press-08", typed="n\n").out
    assert "Upgrade 2 clusters, 5 at a time, to Flux v2.7.3? [y/N]" in flux


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("press-01", "--all"),
        ("--label", "site=x", "--all"),
        ("--label", "site"),
        ("--all", "--at-once", "0"),
        ("--all", "--at-once", "501"),
        ("--all", "--max-failures", "-1"),
        ("--all", "--timeout", "soon"),
        ("--all", "--no-wait", "--timeout", "5m"),
        ("--all", "--json", "--output", "yaml"),
    ],
    ids=" ".join,
)
def test_what_makes_no_upgrade_is_wrong_usage(desk: UpgradeDesk, arguments: tuple[str, ...]) -> None:
    for group in ("agent", "flux"):
        shown = desk(group, "upgrade", *arguments, "--yes")
        assert (shown.code, shown.out) == (2, ""), shown
    assert desk.centre.bodies() == []


def test_a_cluster_that_is_not_there_is_told_before_anything_begins(desk: UpgradeDesk) -> None:
    shown = desk("agent", "upgrade", "press-01", "pres-02", "$(rm -rf /)", "--yes")
    assert (shown.code, shown.out, desk.centre.bodies()) == (3, "", [])
    assert "Did you mean press-" in shown.err


# --- waiting, and not ----------------------------------------------------------------------------------------------


def test_without_waiting_as_many_begin_as_the_limit_allows(desk: UpgradeDesk) -> None:
    desk.centre.holds = True
    some = desk("agent", "upgrade", "--all", "--no-wait", "--yes")
    assert some.code == 1
    assert outcomes(some.out) == dict.fromkeys(NAMES[:5], f"upgrading from {OLD} to {NEW}")
    assert "(5 under way, 15 not begun)" in some.err
    assert "At most 5 upgrades may be under way; --at-once changes that." in some.err
    rest = desk("agent", "upgrade", "--all", "--no-wait", "--at-once", "20", "--yes")
    assert (rest.code, rest.out.splitlines()[-1]) == (0, "20 clusters: 20 under way.")
    assert len(desk.centre.begun) == 20


def test_a_wait_has_an_end_where_somebody_sets_one(desk: UpgradeDesk) -> None:
    desk.centre.holds = True
    shown = desk("agent", "upgrade", "--all", "--timeout", "0s", "--yes")
    assert shown.code == ExitCode.UNAVAILABLE
    assert "20 of 20 upgrades have not ended after 0 s." in shown.err
    assert "press-01, press-02, press-03, press-04, press-05: the upgrade goes on at the centre." in shown.err
    assert "Not begun: press-06, " in shown.err
    assert "upgrade list" in shown.err


def test_room_that_others_take_is_waited_for_in_words(desk: UpgradeDesk) -> None:
    desk.centre.others = 5
    shown = desk("agent", "upgrade", "--all", "--timeout", "1s", "--yes")
    assert shown.code == ExitCode.UNAVAILABLE
    assert "20 clusters: waiting for room: so many other upgrades are under way\n" in shown.err
    assert len(desk.centre.bodies()) == 1, "the gateway has said when to ask again"


def test_ctrl_c_says_that_what_has_begun_goes_on(desk: UpgradeDesk) -> None:
    desk.centre.holds = True
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from edgewright.cli.entry import main; main()"
    )
    variables = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
    variables.update({name: value for name, value in desk.environment.items() if value is not None})
    with subprocess.Popen(
        [sys.executable, "-c", program, "agent", "upgrade", "--all", "--yes"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        assert waiting.stdout is not None
        for name in NAMES[:5]:
            assert waiting.stderr.readline() == f"{name}  upgrading from {OLD} to {NEW}\n"
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(30) == ExitCode.INTERRUPTED
        said = waiting.stderr.read()
        assert "press-05: the upgrade goes on at the centre. Not begun: press-06, " in said
        assert "upgrade list" in said
        assert "upgrade cancel press-01 press-02 press-03 press-04 press-05` calls off what is under way." in said
        assert "Traceback" not in said
        assert waiting.stdout.read() == ""
    assert list(desk.centre.states().values()) == ["under_way"] * 5


# --- forms ---------------------------------------------------------------------------------------------------------


def test_machines_get_one_document_for_each_cluster(desk: UpgradeDesk) -> None:
    desk.centre.ends["press-03"] = "failed"
    shown = desk("agent", "upgrade", "press-01", "press-02", "press-03", "--yes", "--json")
    assert shown.code == 1
    documents = [json.loads(line) for line in shown.out.splitlines()]
    assert {each["name"]: each["state"] for each in documents} == {
        "press-01": "done",
        "press-02": "done",
        "press-03": "failed",
    }
    error = json.loads(shown.err.splitlines()[-1])
    assert (error["code"], error["exit_code"]) == ("failed", 1)
    alone = desk("agent", "upgrade", "press-01", "--yes", "--output", "json")
    assert json.loads(alone.out)["version"] == NEW
    assert desk("agent", "upgrade", "press-01", "--yes", "-o", "name").out == "press-01\n"


def test_on_a_terminal_one_line_tells_how_far_all_are(desk: UpgradeDesk) -> None:
    shown = desk.at_a_terminal("agent", "upgrade", "--all", "--yes")
    assert shown.code == 0, shown
    assert re.search(r"\d+ upgraded, \d under way, \d+ to go", shown.out)
    assert "20 clusters: 20 upgraded." in shown.out


# --- the list ------------------------------------------------------------------------------------------------------


def test_the_list_shows_what_passes_the_filters(desk: UpgradeDesk) -> None:
    assert "Nothing was upgraded yet." in desk("upgrade", "list").err
    desk.centre.ends["press-03"] = "fell_back"
    desk("agent", "upgrade", "--all", "--max-failures", "5", "--yes")
    all_of_them = desk("upgrade", "list", "-o", "name")
    assert all_of_them.out.splitlines() == NAMES, "pages are followed to the end"
    failed = desk("upgrade", "list", "--state", "fell_back")
    assert len(failed.out.splitlines()) == 2
    assert re.search(rf"press-03 +agent +{NEW} +fell_back ", failed.out)
    wide = desk("upgrade", "list", "--state", "fell_back", "-o", "wide").out
    assert re.search(rf"press-03 +agent +{OLD} +{NEW} +fell_back +2031-02-03T04:05:06Z +2031-02-03T04:15:06Z ", wide)
    assert "\x1b" not in failed.out
    one = desk("upgrade", "list", "--cluster", "press-04", "--component", "agent", "--json")
    assert [each["name"] for each in json.loads(one.out)["items"]] == ["press-04"]
    assert "No upgrade passes" in desk("upgrade", "list", "--component", "flux").err
    assert len(desk("upgrade", "list", "--limit", "4", "-o", "name").out.splitlines()) == 4
    assert desk("upgrade", "list", "--state", "fel_back").code == 2


# --- the agent itself ----------------------------------------------------------------------------------------------


def test_without_a_command_the_agent_runs_in_the_place_of_the_command_line(
    environment: dict[str, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    became: list[list[str]] = []

    def execv(_path: str, arguments: list[str]) -> None:
        became.append(arguments)

    monkeypatch.setattr("edgewright.cli.main.os.execv", execv)
    assert CommandLine(environment)("agent").code == 0
    assert became == [[sys.executable, "-P", "-m", "edgewright.agent"]]
    refused = CommandLine(environment)("--context", "munich", "agent")
    assert (refused.code, "a context has no meaning" in refused.err, len(became)) == (2, True, 1)
