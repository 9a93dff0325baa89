"""Upgrading many edges: never more at once than allowed, no further ones after a failure, and each is told of."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_DNS, uuid5

import pytest
from command_line import CommandLine, Terminal
from scripted_centre import ReceivedRequest, Reply, scripted_centre

from edgewright.cli.failures import ExitCode
from edgewright.domain.wellknown import APP_CLUSTER_STATUS, CLASS_EDGE_CLUSTER

NAMES = [f"press-{number:02}" for number in range(1, 21)]
OLD, NEW = "0.3.0", "0.4.0"
STATUSES = f"/v1/app/{APP_CLUSTER_STATUS}"
TOKEN = "ew_0123456789abcdef_" + "A" * 43


def problem(code: str, detail: str, status: int = 409) -> Reply:
    return Reply(status, {"code": code, "detail": detail, "title": detail, "status": status})


SILENT = problem("edge_silent", "No heartbeat of this edge since 2031-02-03T04:05:06Z.")
NO_EDGE = problem("edge_not_attached", "No edge is attached to this cluster.")


def uuid_of(name: str) -> str:
    return str(uuid5(NAMESPACE_DNS, name))


@dataclass
class UpgradingCentre:
    """A centre that keeps the limit itself, and edges that prove their upgrades in random order.

    Args:
        ends: how an upgrade ends, where not with a proof.
        refused: which clusters it refuses, and why.
        others: upgrades of other people that are under way all the time.
        lost: so many answers to POST never arrive, although the upgrade has begun.
        holds: nothing is proven.
    """

    random: random.Random
    names: list[str] = field(default_factory=lambda: list(NAMES))
    ends: dict[str, str] = field(default_factory=dict)
    refused: dict[str, Reply] = field(default_factory=dict)
    others: int = 0
    lost: int = 0
    holds: bool = False
    away: int = 0
    upgrades: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    asked: list[ReceivedRequest] = field(default_factory=list)
    most_under_way: int = 0
    begun_after_a_failure: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, request: ReceivedRequest) -> Reply:
        with self._lock:
            answer = self._answer(request)
            return Reply(answer.status, answer.body, {"Content-Type": "application/json", **answer.headers})

    def states(self) -> dict[str, str]:
        return {name: str(each["state"]) for name, each in self.upgrades.items()}

    def bodies(self) -> list[Any]:
        return [each.body for each in self.asked if each.method == "POST"]

    def _answer(self, request: ReceivedRequest) -> Reply:
        url = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.asked.append(request)
        if request.method == "POST":
            return self._begin(self._name(url.path.split("/")[3]), request.body)
        match url.path:
            case "/ping":
                return Reply(200, {"version": NEW})
            case "/v1/flux":
                return Reply(200, {"version": "v2.7.3"})
            case "/v1/upgrade":
                return self._page(query)
            case "/v1/cluster":
                found = [self._cluster(name) for name in self.names if query.get("name", "") in name]
                return Reply(200, {"items": found, "next": None})
            case path if path.startswith("/v1/cluster/"):
                return Reply(200, self._cluster(self._name(path.split("/")[3])))
            case path if path == f"{STATUSES}/class/{CLASS_EDGE_CLUSTER}/search":
                program = query["@now"].removeprefix("versions.")
                return Reply(200, [{"uuid": uuid_of(n), "now": self._version(n, program)} for n in self.names[1:]])
            case path if path.startswith(f"{STATUSES}/object/"):
                name = self._name(path.split("/")[-1])
                return Reply(200, {"versions": {"agent": self._version(name, "agent")}})
        return problem("not_found", f"Nothing is at {url.path}.", 404)

    def _version(self, name: str, program: str) -> str:
        if self.states().get(name) == "done":
            return str(self.upgrades[name]["version"])
        return OLD if program == "agent" else "v2.7.0"

    def _name(self, uuid: str) -> str:
        return next(name for name in self.names if uuid_of(name) == uuid)

    def _cluster(self, name: str) -> dict[str, Any]:
        return {"uuid": uuid_of(name), "name": name, "phase": "Active", "desired": "present"}

    def _under_way(self) -> list[str]:
        return [name for name, state in self.states().items() if state == "under_way"]

    def _begin(self, name: str, body: Any) -> Reply:
        if name in self.refused:
            return self.refused[name]
        present = self.upgrades.get(name)
        if present is not None and present["state"] in {"under_way", "done"}:
            return Reply(200, present)
        if body["at_once"] is not None and len(self._under_way()) + self.others >= body["at_once"]:
            refused = problem("upgrade_limit_reached", "So many are under way.")
            return Reply(refused.status, refused.body, {"Retry-After": "30"})
        before, version = (OLD, NEW) if body["component"] == "agent" else ("v2.7.0", body["version"] or "v2.7.3")
        self.upgrades[name] = {
            "cluster": uuid_of(name),
            "name": name,
            "component": body["component"],
            "version": version,
            "before": before,
            "state": "under_way",
            "since": "2031-02-03T04:05:06Z",
            "ended_at": None,
            "reason": "",
        }
        self.begun.append(name)
        self.begun_after_a_failure += bool({"fell_back", "failed"} & set(self.states().values()))
        self.most_under_way = max(self.most_under_way, len(self._under_way()) + self.others)
        if self.lost:
            self.lost -= 1
            return problem("not_serving", "The database is away.", 503)
        return Reply(202, self.upgrades[name])

    def _page(self, query: dict[str, str]) -> Reply:
        if self.away:
            self.away -= 1
            return problem("not_serving", "The database is away.", 503)
        if query.get("state") == "under_way" and not self.holds:
            for name in self.random.sample(self._under_way(), self.random.randint(0, min(3, len(self._under_way())))):
                self._prove(name)
        items = [
            each
            for each in self.upgrades.values()
            if all(str(each[field]) == query[field] for field in ("component", "state", "cluster") if field in query)
        ]
        begin = int(query.get("after", 0))
        end = begin + min(int(query["limit"]), 3)  # short pages, as a centre may answer
        return Reply(200, {"items": items[begin:end], "next": str(end) if end < len(items) else None})

    def _prove(self, name: str) -> None:
        ending = self.ends.get(name, "done")
        reason = "" if ending == "done" else "The new agent\x1b[31m could not call."
        self.upgrades[name] |= {"state": ending, "ended_at": "2031-02-03T04:15:06Z", "reason": reason}


@dataclass
class Desk:
    """A centre, and the command line that goes to it."""

    centre: UpgradingCentre
    environment: dict[str, str | None]

    def __call__(self, *arguments: str) -> Any:
        return CommandLine(self.environment)(*arguments)

    def at_a_terminal(self, *arguments: str, typed: str = "") -> Any:
        return Terminal(self.environment)(*arguments, typed=typed)


@contextmanager
def desk_of(environment: dict[str, str | None], folder: Path, centre: UpgradingCentre) -> Iterator[Desk]:
    token = folder / "token"
    token.write_text(TOKEN)
    with scripted_centre(centre.reply) as served:
        yield Desk(centre, {**environment, "EDGEWRIGHT_URL": served.url, "EDGEWRIGHT_TOKEN_FILE": str(token)})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks again at once."""
    monkeypatch.setattr("edgewright.cli.commands.upgrading.FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("edgewright.cli.commands.upgrading.LONGEST_PAUSE_SECONDS", 0.005)


@pytest.fixture(params=[1, 2, 3])
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def desk(environment: dict[str, str | None], tmp_path: Path, quick: None) -> Iterator[Desk]:
    """Twenty edges."""
    with desk_of(environment, tmp_path, UpgradingCentre(random.Random(7))) as opened:
        yield opened


def outcomes(shown: str) -> dict[str, str]:
    """What is told of each cluster, from the lines of a result."""
    return dict(line.split("  ", 1) for line in shown.splitlines() if "  " in line)


def test_twenty_clusters_with_a_limit_of_five_never_have_six_under_way(desk: Desk, seed: int) -> None:
    desk.centre.random.seed(seed)
    shown = desk("agent", "upgrade", "--all", "--at-once", "5", "--yes")
    assert shown.code == 0, shown
    assert desk.centre.most_under_way == 5, "the room that there is is used, and no more"
    assert desk.centre.states() == dict.fromkeys(NAMES, "done")
    assert outcomes(shown.out) == dict.fromkeys(NAMES, f"upgraded to {NEW}")
    assert shown.out.splitlines()[-1] == "20 clusters: 20 upgraded."
    assert sorted(outcomes(shown.err).values()) == [f"upgrading from {OLD} to {NEW}"] * 20
    assert len(desk.centre.begun) == 20


def test_several_clusters_are_limited_unless_somebody_says_otherwise(desk: Desk) -> None:
    assert desk("agent", "upgrade", "--all", "--yes").code == 0
    assert {body["at_once"] for body in desk.centre.bodies()} == {5}
    assert desk.centre.most_under_way == 5


def test_upgrades_of_other_people_count_against_the_limit(desk: Desk) -> None:
    desk.centre.others = 3
    assert desk("agent", "upgrade", "--all", "--at-once", "5", "--yes").code == 0
    assert desk.centre.most_under_way == 5
    assert len(desk.centre.begun) == 20


def test_after_a_failure_no_further_upgrade_begins(desk: Desk, seed: int) -> None:
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


def test_more_failures_are_borne_where_somebody_allows_them(desk: Desk) -> None:
    desk.centre.ends |= {"press-01": "fell_back", "press-09": "failed"}
    shown = desk("agent", "upgrade", "--all", "--max-failures", "2", "--yes")
    assert shown.code == 1
    assert len(desk.centre.begun) == 20
    assert "2 of 20 clusters were not upgraded: " in shown.err
    assert "(18 upgraded, 1 fell back, 1 failed)" in shown.err


def test_clusters_that_refuse_are_told_of_and_do_not_stop_the_others(desk: Desk) -> None:
    desk.centre.refused |= {"press-02": SILENT, "press-03": problem("flux_not_ours", "This Flux is somebody else's.")}
    shown = desk("flux", "upgrade", "--label", "site=sheffield", "--version", "2.7.4", "--yes")
    assert shown.code == 1
    assert {body["version"] for body in desk.centre.bodies()} == {"v2.7.4"}
    assert len(desk.centre.begun) == 18
    assert "press-02  left out: No heartbeat of this edge since 2031-02-03T04:05:06Z." in shown.err
    assert "press-03  left out: This Flux is somebody else's." in shown.err
    assert "2 of 20 clusters were not upgraded: press-02, press-03 (18 upgraded, 2 left out)." in shown.err
    assert any("label=site%3Dsheffield" in each.path for each in desk.centre.asked)


def test_a_cluster_without_an_edge_fails_only_if_it_was_named(desk: Desk) -> None:
    desk.centre.refused["press-02"] = NO_EDGE
    chosen = desk("agent", "upgrade", "--all", "--yes")
    assert (chosen.code, chosen.out.splitlines()[-1]) == (0, "20 clusters: 19 upgraded, 1 without an edge.")
    meant = desk("agent", "upgrade", "press-01", "press-02", "--yes")
    assert (meant.code, "1 of 2 clusters was not upgraded: press-02" in meant.err) == (1, True)


def test_an_only_cluster_that_refuses_has_the_gateways_own_answer(desk: Desk) -> None:
    desk.centre.refused["press-02"] = SILENT
    shown = desk("agent", "upgrade", "press-02", "--yes", "--json")
    assert (shown.code, shown.out) == (ExitCode.REFUSED, "")
    assert json.loads(shown.err.splitlines()[-1])["code"] == "edge_silent"
    assert desk.centre.bodies() == [
        {"component": "agent", "version": None, "at_once": None, "even_if_silent": False},
    ]


def test_what_the_centre_lacks_is_told_once(desk: Desk) -> None:
    for name in NAMES:
        desk.centre.refused[name] = problem("flux_not_imported", "The centre has no Flux to give.", 404)
    shown = desk("flux", "upgrade", "--all", "--yes")
    assert (shown.code, shown.out) == (ExitCode.NOT_FOUND, "")
    assert "The centre has no Flux to give." in shown.err
    assert len(desk.centre.bodies()) == 1


def test_the_same_command_again_does_only_what_is_left(desk: Desk) -> None:
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


def test_a_lost_answer_begins_no_second_upgrade(desk: Desk) -> None:
    desk.centre.lost, desk.centre.away = 2, 2
    shown = desk("agent", "upgrade", "press-01", "press-02", "press-03", "--yes")
    assert shown.code == 0, shown
    assert desk.centre.begun == NAMES[:3]
    assert "The database is away. Trying again." in shown.err


def test_an_upgrade_that_another_one_has_replaced_is_no_longer_waited_for(desk: Desk) -> None:
    desk.centre.ends |= {"press-01": "replaced"}
    shown = desk("agent", "upgrade", "press-01", "press-02", "--at-once", "1", "--yes")
    assert shown.code == 1
    assert outcomes(shown.out)["press-01"].startswith(f"no longer upgraded to {NEW}: ")
    assert desk.centre.states()["press-02"] == "done", "a change of mind is no failure of the version"


# --- asking before -------------------------------------------------------------------------------------------------


def test_nothing_begins_without_a_yes(desk: Desk) -> None:
    piped = desk("agent", "upgrade", "--all")
    assert (piped.code, "Use --yes in scripts." in piped.err) == (2, True)
    refused = desk.at_a_terminal("agent", "upgrade", "--all", typed="n\n")
    assert (refused.code, "Nothing was changed." in refused.out) == (1, True)
    assert desk.centre.bodies() == []


def test_the_question_says_how_many_and_from_which_versions_to_which(desk: Desk) -> None:
    assert desk("agent", "upgrade", "press-05", "press-06", "--yes").code == 0
    asked = desk.at_a_terminal("agent", "upgrade", "--all", typed="n\n").out
    assert f"17 of 20 now: agent {OLD}" in asked
    assert f"2 of 20 now: agent {NEW}" in asked
    assert "1 of 20 now: agent of a version that is not known" in asked
    assert f"Upgrade 20 clusters, 5 at a time, to the agent of this centre, which is {NEW}? [y/N]" in asked
    one = desk.at_a_terminal("agent", "upgrade", "press-07", typed="y\n")
    assert one.code == 0
    assert f"Upgrade press-07 to the agent of this centre, which is {NEW}? [y/N]" in one.out
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
def test_what_makes_no_upgrade_is_wrong_usage(desk: Desk, arguments: tuple[str, ...]) -> None:
    for group in ("agent", "flux"):
        shown = desk(group, "upgrade", *arguments, "--yes")
        assert (shown.code, shown.out) == (2, ""), shown
    assert desk.centre.bodies() == []


def test_a_cluster_that_is_not_there_is_told_before_anything_begins(desk: Desk) -> None:
    shown = desk("agent", "upgrade", "press-01", "pres-02", "$(rm -rf /)", "--yes")
    assert (shown.code, shown.out, desk.centre.bodies()) == (3, "", [])
    assert "Did you mean press-" in shown.err


# --- waiting, and not ----------------------------------------------------------------------------------------------


def test_without_waiting_as_many_begin_as_the_limit_allows(desk: Desk) -> None:
    desk.centre.holds = True
    some = desk("agent", "upgrade", "--all", "--no-wait", "--yes")
    assert some.code == 1
    assert outcomes(some.out) == dict.fromkeys(NAMES[:5], f"upgrading from {OLD} to {NEW}")
    assert "(5 under way, 15 not begun)" in some.err
    assert "At most 5 upgrades may be under way; --at-once changes that." in some.err
    rest = desk("agent", "upgrade", "--all", "--no-wait", "--at-once", "20", "--yes")
    assert (rest.code, rest.out.splitlines()[-1]) == (0, "20 clusters: 20 under way.")
    assert len(desk.centre.begun) == 20


def test_a_wait_has_an_end_where_somebody_sets_one(desk: Desk) -> None:
    desk.centre.holds = True
    shown = desk("agent", "upgrade", "--all", "--timeout", "0s", "--yes")
    assert shown.code == ExitCode.UNAVAILABLE
    assert "20 of 20 upgrades have not ended after 0 s." in shown.err
    assert "press-01, press-02, press-03, press-04, press-05: the upgrade goes on at the centre." in shown.err
    assert "Not begun: press-06, " in shown.err
    assert "upgrade list" in shown.err


def test_room_that_others_take_is_waited_for_in_words(desk: Desk) -> None:
    desk.centre.others = 5
    shown = desk("agent", "upgrade", "--all", "--timeout", "1s", "--yes")
    assert shown.code == ExitCode.UNAVAILABLE
    assert "20 clusters: waiting for room: so many other upgrades are under way\n" in shown.err
    assert len(desk.centre.bodies()) == 1, "the gateway has said when to ask again"


def test_ctrl_c_says_that_what_has_begun_goes_on(desk: Desk) -> None:
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
        assert "Traceback" not in said
        assert waiting.stdout.read() == ""
    assert list(desk.centre.states().values()) == ["under_way"] * 5


# --- forms ---------------------------------------------------------------------------------------------------------


def test_machines_get_one_document_for_each_cluster(desk: Desk) -> None:
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


def test_on_a_terminal_one_line_tells_how_far_all_are(desk: Desk) -> None:
    shown = desk.at_a_terminal("agent", "upgrade", "--all", "--yes")
    assert shown.code == 0, shown
    assert re.search(r"\d+ upgraded, \d under way, \d+ to go", shown.out)
    assert "20 clusters: 20 upgraded." in shown.out


# --- the list ------------------------------------------------------------------------------------------------------


def test_the_list_shows_what_passes_the_filters(desk: Desk) -> None:
    assert "Nothing was upgraded yet." in desk("upgrade", "list").err
    desk.centre.ends["press-03"] = "fell_back"
    desk("agent", "upgrade", "--all", "--max-failures", "5", "--yes")
    all_of_them = desk("upgrade", "list", "-o", "name")
    assert all_of_them.out.splitlines() == NAMES, "pages are followed to the end"
    failed = desk("upgrade", "list", "--state", "fell_back")
    assert len(failed.out.splitlines()) == 2
    assert re.search(rf"press-03 +agent +{OLD} +{NEW} +fell_back ", failed.out)
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
