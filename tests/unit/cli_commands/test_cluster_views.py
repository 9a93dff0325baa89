"""Clusters are named, listed, shown and told about."""

import json
import re
import threading
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from command_line import CommandLine, ServedCentre, Terminal
from gateway_centre import fence_of
from troubled_fleet import CHOICES, ORDERS, make_fleet

from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, Phase, StepName, StepState
from edgewright.domain.events import EventKind, NewEvent
from edgewright.domain.projection import StepRecord
from edgewright.ports.operators import Permission


def names(shown: str) -> list[str]:
    """The first column without its title."""
    return [line.split()[0] for line in shown.splitlines()[1:]]


def fetched(centre: ServedCentre, path: str) -> Any:
    """A document straight from the gateway."""

    async def fetch() -> httpx.Response:
        admin = await centre.centre.operator(Permission.ADMIN)
        return await admin.get(path)

    return centre.do(fetch()).json()


def close(centre: ServedCentre, cluster: UUID) -> None:
    """Ends a cluster, as the last step of a deletion does."""

    async def end() -> None:
        await centre.centre.gateway.wishes.request_deletion(cluster, actor="test")
        await centre.centre.project(cluster, phase=Phase.DELETED, ready=False)
        row = await centre.centre.row(cluster)
        await centre.centre.steps.remove_central_entries(fence_of(row), StepName.REMOVE_SETUP_STATUS)

    centre.do(end())


# --- naming ----------------------------------------------------------------------------------------------------


def test_cluster_is_named_by_name_in_any_case_or_by_uuid(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    centre.create("press-shop-2")
    centre.create("my-press-shop")
    for text in ("press-shop", "PRESS-SHOP", str(made), str(made).upper(), made.hex):
        assert json.loads(edgewright.ok("cluster", "show", text, "--json").out)["uuid"] == str(made)


def test_name_is_found_behind_many_that_contain_it(
    edgewright: CommandLine, centre: ServedCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgewright.cli.commands.naming.PAGE", 2)
    for name in ("a-x", "b-x", "c-x", "d-x"):
        centre.create(name)
    made = centre.create("x")
    assert json.loads(edgewright.ok("cluster", "show", "x", "--json").out)["uuid"] == str(made)


@pytest.mark.parametrize("verb", ["show", "wait", "bootstrap", "undelete", "accept", "reject", "resume", "timeline"])
def test_unknown_cluster_is_not_found(edgewright: CommandLine, verb: str) -> None:
    for text in ("press-shop", "../x", "", str(uuid4())):
        shown = edgewright("cluster", verb, text)
        assert (shown.code, shown.out) == (3, ""), (text, shown)
        assert "There is no cluster" in shown.err


def test_part_of_a_name_is_answered_with_the_whole(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.create("press-shop")
    shown = edgewright("cluster", "show", "press")
    assert (shown.code, "Did you mean press-shop?" in shown.err) == (3, True)


@pytest.mark.parametrize("typo", ["pres-shop", "press-shpo", "Prss-Shop", "press_shop", "press-shops"])
def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(
    edgewright: CommandLine, centre: ServedCentre, typo: str
) -> None:
    for name in ("press-shop", "paint-shop-in-the-south", "line-4"):
        centre.create(name)
    shown = edgewright("cluster", "show", typo)
    assert (shown.code, "Did you mean press-shop?" in shown.err) == (3, True), shown
    unlike = edgewright("cluster", "show", "warehouse")
    assert (unlike.code, "Did you mean" in unlike.err, "cluster list" in unlike.err) == (3, False, True)


def test_deleted_cluster_keeps_its_timeline_under_its_name(edgewright: CommandLine, centre: ServedCentre) -> None:
    first = centre.create("press-shop")
    close(centre, first)
    for text in ("press-shop", str(first)):
        gone = edgewright("cluster", "show", text)
        assert (gone.code, "The cluster press-shop was deleted at " in gone.err) == (3, True)
        assert f"cluster timeline {first}" in gone.err
    shown = edgewright.ok("cluster", "timeline", "press-shop")
    assert "The cluster press-shop was created." in shown.out
    second = centre.create("press-shop")
    events = json.loads(edgewright.ok("cluster", "timeline", "press-shop", "--json").out)["items"]
    assert {event["cluster"] for event in events} == {str(second)}, "a living cluster comes first"
    close(centre, second)
    several = edgewright("cluster", "timeline", "press-shop")
    assert several.code == 4
    assert {str(first), str(second)} <= set(several.err.split())


# --- the list ----------------------------------------------------------------------------------------------------


def test_piped_list_is_plain_columns_that_are_never_cut(edgewright: CommandLine, centre: ServedCentre) -> None:
    name, sentence = "p" * 63, "the edge to call, " * 9 + "at last"
    made = centre.create(name, labels={"site": "sheffield", "line": "4"})
    centre.project(made, waiting_for=sentence)
    for columns in ("20", "80"):
        shown = CommandLine({**edgewright.environment, "COLUMNS": columns}).ok("cluster", "list")
        header, line = shown.out.splitlines()
        assert header.split() == ["NAME", "PHASE", "AVAILABLE", "HEARD", "WAITING", "FOR"]
        assert line.split(maxsplit=4) == [name, "AwaitingBootstrap", "Unknown", "never", sentence]
    header, line = edgewright.ok("cluster", "list", "--output", "wide").out.splitlines()
    assert " ".join(header.split()) == (
        "NAME PHASE READY HEALTHY AVAILABLE SYNCED HELD HEARD LABELS UUID WAITING FOR"
    )
    wide = [name, "AwaitingBootstrap", "yes", "Unknown", "Unknown", "Unknown", "-", "never", "line=4,site=sheffield"]
    assert line.split(maxsplit=10) == [*wide, str(made), sentence]
    assert "\x1b" not in line


def test_list_is_drawn_on_a_terminal(terminal: Terminal, centre: ServedCentre) -> None:
    centre.create("press-shop")
    shown = terminal("cluster", "list")
    assert "\x1b[1m" in shown.out
    assert "press-shop" in shown.out


def test_list_follows_pages_filters_and_sorts(
    edgewright: CommandLine, centre: ServedCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgewright.cli.commands.naming.PAGE", 2)
    for name in ("a1", "b1", "c2", "d2", "e2"):
        centre.create(name, labels={"number": name[1], "letter": name[0]})
    centre.project(centre.uuid("c2"), ready=False)

    def listed(*options: str) -> list[str]:
        return names(edgewright.ok("cluster", "list", *options).out)

    assert listed() == ["a1", "b1", "c2", "d2", "e2"]
    assert listed("--sort", "-name") == ["e2", "d2", "c2", "b1", "a1"]
    assert listed("--name", "2") == ["c2", "d2", "e2"]
    assert listed("--label", "number=2", "--label", "letter=d") == ["d2"]
    assert listed("--not-ready") == ["c2"]
    assert listed("--ready", "--limit", "3") == ["a1", "b1", "d2"]
    assert listed("--phase", "awaitingbootstrap", "--limit", "1") == ["a1"]
    assert listed("--available") == []
    assert len(listed("--not-available")) == 5


def test_list_shows_trouble_first_and_says_what_wait_says(edgewright: CommandLine, centre: ServedCentre) -> None:
    for name in ("a-well", "b-blocked", "c-new"):
        centre.create(name)
    since = centre.row(centre.uuid("a-well")).created_at

    def states(name: str, *stated: tuple[ConditionType, ConditionStatus, str, str]) -> None:
        conditions = tuple(
            Condition(type=kind, status=status, reason=reason, message=message, since=since)
            for kind, status, reason, message in stated
        )
        centre.project(centre.uuid(name), conditions=conditions)

    unheard = (ConditionType.JOINED, ConditionStatus.FALSE, "AwaitingBootstrap", "Run the bootstrap line.")
    states("b-blocked", (ConditionType.BLOCKED, ConditionStatus.TRUE, "TemplateInvalid", "Mend the template."))
    states("c-new", unheard)
    shown = edgewright.ok("cluster", "list").out
    assert names(shown) == ["b-blocked", "a-well", "c-new"]
    assert shown.splitlines()[1].endswith("  blocked: Mend the template.")
    assert names(edgewright.ok("cluster", "list", "--sort", "name").out) == ["a-well", "b-blocked", "c-new"]
    assert names(edgewright.ok("cluster", "list", "--blocked").out) == ["b-blocked"]
    assert names(edgewright.ok("cluster", "list", "--healthy", "false").out) == ["b-blocked"]
    assert names(edgewright.ok("cluster", "list", "--healthy", "Unknown", "--not-paused").out) == ["a-well", "c-new"]
    for name in ("b-blocked", "c-new"):
        [item] = fetched(centre, f"/v1/cluster?name={name}")["items"]
        waited = edgewright("cluster", "wait", name, "--for", "joined", "--timeout", "0")
        assert item["waiting_for"]
        assert waited.err.splitlines()[0].endswith(f" · {item['waiting_for']}")
        assert item["waiting_for"] == fetched(centre, f"/v1/cluster/{centre.uuid(name)}")["waiting_for"]


@pytest.mark.parametrize(("sort", "order"), ORDERS.items())
def test_list_sorts_by_each_kind_of_trouble(
    edgewright: CommandLine, centre: ServedCentre, sort: str, order: str
) -> None:
    centre.do(make_fleet(centre.centre))
    assert names(edgewright.ok("cluster", "list", "--sort", sort).out) == order.split()


def test_list_filters_by_both_values_of_each_kind_of_trouble(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.do(make_fleet(centre.centre))
    for (kind, wanted), shown in CHOICES.items():
        if kind in {"healthy", "synced"}:
            option = [f"--{kind}", str(wanted)]
        else:
            option = [f"--{kind}" if wanted else f"--not-{kind}"]
        listed = names(edgewright.ok("cluster", "list", "--sort", "name", *option).out)
        assert listed == shown.split(), option


def test_json_list_is_the_apis_document(edgewright: CommandLine, centre: ServedCentre) -> None:
    for name in ("a", "b", "c"):
        centre.create(name)
    assert json.loads(edgewright.ok("cluster", "list", "--json").out) == fetched(centre, "/v1/cluster?sort=trouble")
    cut = json.loads(edgewright.ok("cluster", "list", "--json", "--limit", "2").out)
    assert cut == fetched(centre, "/v1/cluster?limit=2&sort=trouble")
    assert cut["next"]
    assert "more than these 2" in edgewright.ok("cluster", "list", "--limit", "2").err


def test_empty_list_leaves_stdout_empty(edgewright: CommandLine) -> None:
    shown = edgewright.ok("cluster", "list")
    assert (shown.out, "cluster create" in shown.err) == ("", True)
    assert "filters" in edgewright.ok("cluster", "list", "--name", "x").err
    assert json.loads(edgewright.ok("cluster", "list", "--json").out) == {"items": [], "next": None}


@pytest.mark.parametrize(
    "options", [["--phase", "Sleeping"], ["--sort", "colour"], ["--limit", "0"], ["--label", "x"]]
)
def test_filter_that_makes_no_sense_is_wrong_usage(environment: dict[str, str | None], options: list[str]) -> None:
    assert CommandLine(environment)("cluster", "list", *options).code == 2


# --- one cluster ---------------------------------------------------------------------------------------------------


def test_json_of_a_cluster_is_the_apis_document(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop", values={"umlaut": "ü"})
    shown = edgewright.ok("cluster", "show", "press-shop", "--json").out
    assert json.loads(shown) == fetched(centre, f"/v1/cluster/{made}")


def test_page_of_a_cluster_tells_all_that_is_known(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop", labels={"site": "sheffield"}, accept="manual")
    created = centre.row(made).created_at
    centre.project(
        made,
        waiting_for="room on the disk",
        conditions=(
            Condition(
                type=ConditionType.BLOCKED,
                status=ConditionStatus.TRUE,
                reason="TemplateInvalid",
                message="Mend the template.",
                since=created,
            ),
        ),
        steps=(
            StepRecord(
                name=StepName.POPULATE_REPOSITORY,
                state=StepState.BLOCKED,
                attempts=4,
                error="No room.",
                hint="Tidy up.",
            ),
        ),
    )
    shown = edgewright.ok("cluster", "show", "press-shop").out
    for text in (
        str(made),
        "AwaitingBootstrap",
        "room on the disk",
        "none (policy manual)",
        "site=sheffield",
        "/git/cluster/press-shop",
        f"/workflows/cluster-{made}",
        "Mend the template.",
        "No room. Tidy up.",
        "Steps",
        "Conditions",
    ):
        assert text in shown, text
    assert "Hosts" not in shown, "nothing is said about what is not known"


def test_what_others_wrote_cannot_steer_the_terminal(
    edgewright: CommandLine, terminal: Terminal, centre: ServedCentre
) -> None:
    made = centre.create("press-shop")
    centre.project(made, waiting_for="calm\x1b]0;owned\x07\x1b[2J\n\u202egnol")
    for shown in (
        edgewright.ok("cluster", "show", "press-shop").out,
        edgewright.ok("cluster", "list").out,
        terminal("cluster", "list").out,
    ):
        assert not {"\x1b]0;", "\x1b[2J", "\x07", "\u202e"} & set(re.findall(r"\x1b\]0;|\x1b\[2J|\x07|\u202e", shown))
        assert "calm?" in shown


# --- the timeline --------------------------------------------------------------------------------------------------


def test_timeline_tells_who_did_what_when_and_what_is_waited_for(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    made = centre.create("press-shop")
    step = StepRecord(name=StepName.CREATE_REPOSITORY, state=StepState.WAITING, attempts=3, error="The disk is full.")
    centre.project(made, steps=(step,))
    shown = edgewright.ok("cluster", "timeline", "press-shop")
    header, first, *_ = shown.out.splitlines()
    assert header.split() == ["WHEN", "WHO", "WHAT"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ +token:\S+ +The cluster press-shop was created\.", first)
    assert "create_repository is waiting after attempt 3: The disk is full." in shown.err


def test_json_timeline_is_the_apis_document(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    shown = json.loads(edgewright.ok("cluster", "timeline", "press-shop", "--json").out)
    assert shown == fetched(centre, f"/v1/cluster/{made}/timeline")


def test_followed_timeline_goes_on_until_the_cluster_is_deleted(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    made = centre.create("press-shop")
    other = centre.create("other")

    def tell(cluster: UUID, kind: EventKind, message: str, **detail: str) -> None:
        event = NewEvent(id=uuid4(), cluster=cluster, actor="centre", kind=kind, message=message, detail={**detail})
        centre.do(centre.centre.ports.audit.append(event))

    def live() -> None:
        while "was created" not in edgewright.shown_so_far():
            assert not over.wait(0.02)
        tell(other, EventKind.CLUSTER_CHANGED, "Another cluster's affair.")
        tell(made, EventKind.CLUSTER_CHANGED, "A change.")
        tell(made, EventKind.CLUSTER_DELETED, "Its name is free.")
        tell(made, EventKind.PHASE_CHANGED, "The end.", phase="Deleted")

    over = threading.Event()
    teller = threading.Thread(target=live)
    teller.start()
    try:
        shown = edgewright.ok("cluster", "timeline", "press-shop", "--follow", "--json")
    finally:
        over.set()
        teller.join()
    messages = [json.loads(line)["message"] for line in shown.out.splitlines()]
    assert messages == ["The cluster press-shop was created.", "A change.", "Its name is free.", "The end."]
    plain = edgewright.ok("cluster", "timeline", "press-shop", "-f")
    assert plain.out.splitlines()[-1].endswith("  centre  The end.")
