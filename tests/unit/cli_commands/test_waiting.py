"""Whoever waits sees what for, and what is waited for goes on without them."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from command_line import CommandLine, ServedCentre, Terminal

from edgewright.cli.client import GatewayClient
from edgewright.cli.commands.cluster_wait import wait_for_all
from edgewright.cli.commands.naming import NamedCluster
from edgewright.cli.commands.sending import send_once
from edgewright.cli.commands.waiting import Goal, state_of, wait_for
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, StepName, StepState
from edgewright.domain.projection import StepRecord

CLUSTER = NamedCluster("6f1c1b5e-8a55-4a29-9c2b-0f6dbfd4a001", "press-shop")
UNDER_WAY = {"name": "press-shop", "desired": "present", "phase": "Commissioning", "steps": [], "waiting_for": ""}
PROBLEM = {"detail": "Not yet.", "code": "not_ready"}


def true(kind: ConditionType) -> tuple[Condition, ...]:
    return (Condition(type=kind, status=ConditionStatus.TRUE, reason="Reported", since=datetime.now(UTC)),)


def answering(answers: Iterator[Any]) -> GatewayClient:
    """A gateway that gives one answer after the other; an exception is a connection that fails."""

    def answer(request: httpx.Request) -> httpx.Response:
        given = next(answers)
        if isinstance(given, Exception):
            raise given
        assert isinstance(given, httpx.Response)
        return given

    return GatewayClient("http://127.0.0.1:1", None, transport=httpx.MockTransport(answer))


@pytest.mark.parametrize(
    ("goal", "kind"),
    [
        ("joined", ConditionType.JOINED),
        ("available", ConditionType.AVAILABLE),
        ("synced", ConditionType.SYNCED),
        ("healthy", ConditionType.HEALTHY),
    ],
)
def test_condition_is_waited_for_until_it_is_true(
    edgewright: CommandLine, centre: ServedCentre, goal: str, kind: ConditionType
) -> None:
    made = centre.create("press-shop")
    vain = edgewright("cluster", "wait", "press-shop", "--for", goal, "--timeout", "0s")
    assert (vain.code, vain.out) == (5, "")
    centre.project(made, conditions=true(kind))
    shown = edgewright.ok("cluster", "wait", str(made), "--for", goal)
    assert re.fullmatch(rf"press-shop is {goal}; waited \d+\.\d\d s\.\n", shown.out)


def test_wait_says_what_the_cluster_waits_for(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.centre.workflow.commissions = False
    made = centre.create("press-shop")
    step = StepRecord(name=StepName.CREATE_REPOSITORY, state=StepState.WAITING, attempts=3)
    centre.project(made, steps=(step,), waiting_for="the disk has room again")
    shown = edgewright("cluster", "wait", "press-shop", "--timeout", "0")
    state = "Commissioning · create_repository (attempt 3) · the disk has room again"
    assert shown.code == 5
    assert f"press-shop: {state}\n" in shown.err
    assert f"press-shop is not ready after 0 s: {state}" in shown.err


def test_each_change_is_one_line_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    not_yet = httpx.Response(503, json=PROBLEM)
    seen = [httpx.Response(200, json=UNDER_WAY | {"waiting_for": text}) for text in ("one", "one", "two")]
    rounds = [answer for each in seen for answer in (not_yet, each)]
    with answering(iter([*rounds, httpx.Response(200, json={"ready": True})])) as gateway:
        wait_for(gateway, CLUSTER, Goal.READY, known=UNDER_WAY | {"waiting_for": "none"}, seconds=30)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"press-shop: Commissioning · {text}" for text in ("none", "one", "two")]


def test_on_a_terminal_one_line_is_drawn_over(terminal: Terminal, centre: ServedCentre) -> None:
    centre.centre.workflow.commissions = False
    made = centre.create("press-shop")
    centre.project(made, waiting_for="the disk has room again")
    shown = terminal("cluster", "wait", "press-shop", "--timeout", "1s")
    assert shown.code == 5
    assert "press-shop  Commissioning · the disk has room again" in shown.out
    assert "\x1b[2K" in shown.out, "the line is erased before it is drawn again"


def test_a_step_is_named_once() -> None:
    step = {"name": "create_repository", "state": "waiting", "attempts": 2}
    known = UNDER_WAY | {"steps": [step], "waiting_for": "step create_repository, attempt 2"}
    assert state_of(known) == "Commissioning · step create_repository, attempt 2"


@pytest.mark.parametrize("goal", ["ready", "synced"])
def test_wait_for_what_cannot_come_ends_at_once(edgewright: CommandLine, centre: ServedCentre, goal: str) -> None:
    made = centre.create("press-shop")
    centre.do(centre.centre.gateway.wishes.request_deletion(made, actor="test"))
    shown = edgewright("cluster", "wait", "press-shop", "--for", goal)
    assert (shown.code, "is being deleted" in shown.err) == (4, True)
    assert "undelete press-shop" in shown.err


def test_ctrl_c_says_that_the_work_goes_on(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.centre.workflow.commissions = False
    centre.create("press-shop")
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from edgewright.cli.entry import main; main()"
    )
    variables = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
    variables.update({name: value for name, value in edgewright.environment.items() if value is not None})
    with subprocess.Popen(
        [sys.executable, "-c", program, "cluster", "wait", "press-shop"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stderr is not None
        assert waiting.stdout is not None
        assert waiting.stderr.readline().startswith("press-shop: Commissioning")
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(30) == ExitCode.INTERRUPTED
        said = waiting.stderr.read()
        assert "the work goes on at the centre" in said
        assert "Traceback" not in said
        assert waiting.stdout.read() == ""


def test_a_gateway_that_restarts_does_not_end_a_wait() -> None:
    answers = iter(
        [
            httpx.Response(503, json=PROBLEM),
            httpx.ConnectError("restarting"),
            httpx.Response(200, json={"ready": True}),
        ]
    )
    with answering(answers) as gateway:
        wait_for(gateway, CLUSTER, Goal.READY, known=UNDER_WAY, seconds=30)
    assert next(answers, None) is None


def test_a_cluster_that_vanishes_ends_a_wait() -> None:
    gone = httpx.Response(404, json={"detail": "There is no cluster.", "code": "cluster_unknown"})
    there = httpx.Response(200, json=UNDER_WAY | {"conditions": []})
    with answering(iter([there, gone])) as gateway, pytest.raises(CliError) as caught:
        wait_for(gateway, CLUSTER, Goal.JOINED, known=UNDER_WAY, seconds=30)
    assert caught.value.exit_code is ExitCode.NOT_FOUND


# --- several clusters --------------------------------------------------------------------------------------------


def reach(centre: ServedCentre, *names: str, kind: ConditionType = ConditionType.SYNCED) -> None:
    for name in names:
        centre.project(centre.uuid(name), conditions=true(kind))


def reached(shown: str) -> list[str]:
    return [line.partition(" is ")[0] for line in shown.splitlines()]


def test_several_clusters_are_told_one_by_one_as_they_get_there(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    for name in ("a", "b", "c"):
        centre.create(name)
    reach(centre, "b")

    def later() -> None:
        for seen, name in (("b", "c"), ("c", "a")):
            while f"{seen} is synced" not in edgewright.shown_so_far():
                assert not over.wait(0.02)
            reach(centre, name)

    over = threading.Event()
    teller = threading.Thread(target=later)
    teller.start()
    try:
        shown = edgewright.ok("cluster", "wait", "a", "B", str(centre.uuid("c")), "a", "--for", "synced")
    finally:
        over.set()
        teller.join()
    assert reached(shown.out) == ["b", "c", "a"]
    assert all(re.fullmatch(r"\w is synced; waited [\d.]+ s\.", line) for line in shown.out.splitlines())
    assert "3 clusters: 1 are synced" in shown.err


def test_labels_and_all_select_what_is_waited_for(edgewright: CommandLine, centre: ServedCentre) -> None:
    for name, site in (("a", "leeds"), ("b", "york"), ("c", "leeds")):
        centre.create(name, labels={"site": site, "line": name})
    reach(centre, "a", "c")
    assert reached(edgewright.ok("cluster", "wait", "--label", "site=leeds", "--for", "synced").out) == ["a", "c"]
    both = ["--label", "site=leeds", "--label", "line=c"]
    [line] = edgewright.ok("cluster", "wait", *both, "--for", "synced", "--json").out.splitlines()
    assert json.loads(line)["name"] == "c"
    assert reached(edgewright.ok("cluster", "wait", "--all").out) == ["a", "b", "c"]
    late = edgewright("cluster", "wait", "--all", "--for", "synced", "--timeout", "0")
    assert (late.code, reached(late.out)) == (5, ["a", "c"])
    assert "1 of 3 clusters is not synced after 0 s: b." in late.err
    assert "cluster wait b --for synced" in late.err
    none = edgewright("cluster", "wait", "--label", "site=hull")
    assert (none.code, "No cluster has these labels" in none.err) == (3, True)


@pytest.mark.parametrize("arguments", [[], ["a", "--all"], ["--label", "a=b", "--all"], ["--label", "a"]])
def test_what_is_to_be_waited_for_has_to_be_said(environment: dict[str, str | None], arguments: list[str]) -> None:
    shown = CommandLine(environment)("cluster", "wait", *arguments)
    assert (shown.code, shown.out) == (2, "")


def test_a_cluster_that_is_not_there_is_told_before_anything_is_waited_for(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    centre.create("press-shop")
    shown = edgewright("cluster", "wait", "press-shop", "pres-shop", "--for", "synced")
    assert (shown.code, shown.out, "Did you mean press-shop?" in shown.err) == (3, "", True)


def blocked(message: str = "Mend the template.") -> Condition:
    return Condition(
        type=ConditionType.BLOCKED,
        status=ConditionStatus.TRUE,
        reason="TemplateInvalid",
        message=message,
        since=datetime.now(UTC),
    )


def test_clusters_that_will_never_get_there_are_told_at_once_and_the_others_waited_for(
    edgewright: CommandLine, centre: ServedCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgewright.cli.commands.waiting.BLOCKED_SECONDS", 0.0)
    for name in ("deleting", "stuck", "slow"):
        centre.create(name)
    centre.do(centre.centre.gateway.wishes.request_deletion(centre.uuid("deleting"), actor="test"))
    centre.project(centre.uuid("stuck"), conditions=(blocked("Mend\x1b the template."),))
    shown = edgewright("cluster", "wait", "deleting", "stuck", "slow", "--for", "synced", "--timeout", "1s")
    assert shown.code == 5
    assert "deleting is being deleted" in shown.err
    assert "stuck is blocked and will not become synced until somebody acts: Mend? the template." in shown.err
    assert "1 of 3 clusters is not synced after 1 s: slow." in shown.err
    reach(centre, "slow")
    shown = edgewright("cluster", "wait", "deleting", "stuck", "slow", "--for", "synced")
    assert (shown.code, reached(shown.out)) == (4, ["slow"])
    assert "2 of 3 clusters did not become synced: deleting, stuck." in shown.err


@pytest.mark.parametrize(
    ("goal", "ready", "code"),
    [("ready", False, 4), ("synced", True, 4), ("joined", False, 4), ("joined", True, 5), ("available", True, 5)],
)
def test_a_blocked_cluster_is_waited_for_where_it_can_still_get_there(
    edgewright: CommandLine,
    centre: ServedCentre,
    monkeypatch: pytest.MonkeyPatch,
    goal: str,
    ready: bool,
    code: int,
) -> None:
    monkeypatch.setattr("edgewright.cli.commands.waiting.BLOCKED_SECONDS", 0.1)
    centre.create("press-shop")
    centre.project(centre.uuid("press-shop"), conditions=(blocked(),), ready=ready)
    shown = edgewright("cluster", "wait", "press-shop", "--for", goal, "--timeout", "2s")
    assert (shown.code, shown.out) == (code, "")
    assert ("Mend the template." in shown.err) or code == 5


def test_what_was_just_mended_is_not_given_up() -> None:
    stuck = UNDER_WAY | {"ready": False, "conditions": [json.loads(blocked().model_dump_json())]}
    answers = [httpx.Response(200, json=stuck)] * 3
    done = {"type": "Synced", "status": "True"}
    with answering(iter([*answers, httpx.Response(200, json=UNDER_WAY | {"conditions": [done]})])) as gateway:
        wait_for(gateway, CLUSTER, Goal.SYNCED, known=UNDER_WAY, seconds=30)


def test_a_gateway_that_restarts_does_not_end_a_wait_for_several() -> None:
    two = [CLUSTER, NamedCluster("6f1c1b5e-8a55-4a29-9c2b-0f6dbfd4a002", "line-4")]
    done = httpx.Response(200, json={"ready": True})
    arrived: list[str] = []
    with answering(iter([done, httpx.ConnectError("restarting"), httpx.ReadError("cut"), done])) as gateway:
        wait_for_all(gateway, two, Goal.READY, seconds=30, arrived=lambda each: arrived.append(each.text))
    assert arrived == ["press-shop", "line-4"]


# --- requests that are sent again ------------------------------------------------------------------------------


def recorded(*answers: Any) -> tuple[GatewayClient, list[str]]:
    """A gateway that gives these answers, and the idempotency keys that it sees."""
    keys: list[str] = []
    left = iter(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        given = next(left)
        if isinstance(given, Exception):
            raise given
        assert isinstance(given, httpx.Response)
        return given

    return GatewayClient("http://127.0.0.1:1", None, transport=httpx.MockTransport(answer)), keys


def test_request_whose_answer_is_lost_is_sent_again_with_the_same_key() -> None:
    busy = httpx.Response(503, json={"detail": "Under way.", "code": "first_request_under_way"})
    lost, starting = httpx.ReadError("cut"), httpx.ConnectError("restarting")
    gateway, keys = recorded(lost, starting, busy, httpx.Response(201, json={"uuid": "x"}))
    assert send_once(gateway, "POST", "/v1/cluster", body={"name": "x"}).json() == {"uuid": "x"}
    assert (len(keys), len(set(keys))) == (4, 1)


def test_request_of_a_token_that_is_too_fast_is_sent_again_when_the_gateway_says() -> None:
    fast = httpx.Response(429, headers={"Retry-After": "1"}, json={"detail": "x", "code": "too_many_requests"})
    gateway, keys = recorded(fast, httpx.Response(201, json={"uuid": "x"}))
    began = time.monotonic()
    assert send_once(gateway, "POST", "/v1/cluster", body={"name": "x"}).json() == {"uuid": "x"}
    assert (len(keys), len(set(keys))) == (2, 1)
    assert time.monotonic() - began >= 1.0


def test_another_invocation_has_another_key() -> None:
    gateway, keys = recorded(httpx.Response(201, json={}), httpx.Response(201, json={}))
    for _ in range(2):
        send_once(gateway, "POST", "/v1/cluster", body={"name": "x"})
    assert len(set(keys)) == 2


REFUSED = httpx.Response(409, json={"detail": "Taken.", "code": "name_taken"})
PATIENT = httpx.Response(503, headers={"Retry-After": "60"}, json={"detail": "No key.", "code": "no_certificate"})


@pytest.mark.parametrize(
    ("answer", "exit_code"),
    [
        (REFUSED, ExitCode.REFUSED),
        (PATIENT, ExitCode.UNAVAILABLE),
        (httpx.ConnectError("refused"), ExitCode.UNAVAILABLE),
    ],
    ids=["refused", "takes its time", "nobody listens"],
)
def test_what_trying_again_does_not_mend_is_told_at_once(answer: Any, exit_code: ExitCode) -> None:
    gateway, keys = recorded(answer)
    with pytest.raises(CliError) as caught:
        send_once(gateway, "POST", "/v1/cluster", body={"name": "x"})
    assert (caught.value.exit_code, len(keys)) == (exit_code, 1)


def test_trying_again_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewright.cli.commands.sending.PATIENCE_SECONDS", 0.5)
    gateway, keys = recorded(*[httpx.ReadError("cut")] * 5)
    with pytest.raises(CliError):
        send_once(gateway, "POST", "/v1/cluster", body={"name": "x"})
    assert 2 <= len(keys) < 5
