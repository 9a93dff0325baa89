"""`--wait` ends when the edge has opened what was put or labelled, and else says why it does not."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from command_line import CommandLine

from edgewright.cli.client import GatewayClient
from edgewright.cli.commands.naming import NamedCluster
from edgewright.cli.commands.secret_waiting import wait_until_opened
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.kubernetes_names import SecretReference

CLUSTER = NamedCluster("6f1c1b5e-8a55-4a29-9c2b-0f6dbfd4a001", "press-shop")
HEARD = {"type": "Available", "status": "True", "reason": "LeaseCurrent", "message": ""}
SILENT = {"type": "Available", "status": "Unknown", "reason": "LeaseExpired", "message": "Last heard yesterday."}
SYNCED = {"type": "Synced", "status": "True", "reason": "UpToDate", "message": ""}
FAILED = {
    "type": "Synced",
    "status": "False",
    "reason": "ApplyFailed",
    "message": "Flux cannot apply x: no namespace",
}
TAKEN = 'failed update: Resource "db" already exists and is not managed by SealedSecret'

Item = dict[str, Any]


def item(state: str | None, refusal: str | None = None) -> Item:
    said = {"namespace": "default", "name": "db", "key": "k", "refusal": refusal}
    return said if state is None else {**said, "edge_state": state}


def waits(items: Iterator[Item | None], *conditions: dict[str, str], desired: str = "present") -> None:
    """Waits at a gateway that shows the Secret like that, one look after the other; None: it is gone."""
    shown = {"name": "press-shop", "phase": "Active", "desired": desired, "steps": [], "waiting_for": ""}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/secret"):
            assert dict(request.url.params) == {"namespace": "default", "name": "db"}
            found = next(items)
            return httpx.Response(200, json={"items": [] if found is None else [found]})
        return httpx.Response(200, json={**shown, "conditions": list(conditions or (HEARD, SYNCED))})

    with GatewayClient("http://127.0.0.1:1", None, transport=httpx.MockTransport(answer)) as gateway:
        wait_until_opened(gateway, CLUSTER, SecretReference("default", "db"), seconds=1.5)


def failure(wait: Callable[[], None]) -> CliError:
    with pytest.raises(CliError) as failed:
        wait()
    return failed.value


def test_each_step_on_the_way_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    waits(iter([item("sealed"), item("sealed"), item("applied"), item("opened")]))
    assert capsys.readouterr().err.splitlines() == [
        "press-shop: Active",
        "press-shop: committed, and not on the edge yet",
        "press-shop: on the edge, and not opened yet",
    ]


def test_a_state_that_only_a_newer_gateway_knows_is_waited_through(capsys: pytest.CaptureFixture[str]) -> None:
    waits(iter([item("unwrapped"), item("opened")]))
    assert "press-shop: unwrapped\n" in capsys.readouterr().err


def test_a_refusal_ends_it_with_the_controllers_sentence() -> None:
    failed = failure(lambda: waits(iter([item("sealed"), item("refused", TAKEN)])))
    assert failed.exit_code is ExitCode.REFUSED
    assert failed.sentence == f"The edge of press-shop does not open default/db: {TAKEN}"
    assert "put the value again" in str(failed.hint)
    assert "it does not say why" in failure(lambda: waits(iter([item("refused")]))).sentence


def test_a_silent_edge_is_named_and_waited_for() -> None:
    failed = failure(lambda: waits(iter(lambda: item("unknown"), None), SILENT, SYNCED))
    assert failed.exit_code is ExitCode.UNAVAILABLE
    assert "has not opened default/db after 1.50 s: " in failed.sentence
    assert "the edge is silent: Last heard yesterday." in failed.sentence
    assert "secret list press-shop" in str(failed.hint)


def test_what_keeps_the_commit_back_is_said() -> None:
    failed = failure(lambda: waits(iter(lambda: item("sealed"), None), HEARD, FAILED))
    assert "committed, and not on the edge yet · Flux cannot apply x: no namespace" in failed.sentence


@pytest.mark.parametrize("state", ["unknown", None])
def test_an_agent_or_a_gateway_that_does_not_tell_is_not_waited_for(state: str | None) -> None:
    failed = failure(lambda: waits(iter([item(state)])))
    assert (failed.exit_code, failed.code) == (ExitCode.REFUSED, "secret_state_unknown")
    assert "fresh bootstrap line" in str(failed.hint)


def test_what_is_deleted_meanwhile_is_not_waited_for() -> None:
    assert "Somebody has deleted default/db" in failure(lambda: waits(iter([None]))).sentence
    gone = failure(lambda: waits(iter([item("sealed")]), desired="deleted"))
    assert (gone.exit_code, "is being deleted" in gone.sentence) == (ExitCode.REFUSED, True)


def changes(states: Iterator[str | None], *, items: str = "opened") -> None:
    """Waits for labels, at a gateway that says this of the Secret with them; None: it says nothing of them."""
    shown = {"name": "press-shop", "phase": "Active", "desired": "present", "steps": [], "waiting_for": ""}

    def answer(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/secret"):
            return httpx.Response(200, json={**shown, "conditions": [HEARD, SYNCED]})
        state = next(states)
        secret = {"namespace": "default", "name": "db", **({} if state is None else {"edge_state": state})}
        return httpx.Response(200, json={"items": [item(items, TAKEN)], "secrets": [secret]})

    with GatewayClient("http://127.0.0.1:1", None, transport=httpx.MockTransport(answer)) as gateway:
        wait_until_opened(gateway, CLUSTER, SecretReference("default", "db"), seconds=1.5, values_stay=True)


def test_labels_have_not_arrived_because_the_values_are_opened(capsys: pytest.CaptureFixture[str]) -> None:
    changes(iter(["sealed", "applied", "opened"]))
    assert capsys.readouterr().err.splitlines()[1:] == [
        "press-shop: committed, and not on the edge yet",
        "press-shop: on the edge, and not opened yet",
    ]
    late = failure(lambda: changes(iter(lambda: "sealed", None)))
    assert "has not changed default/db after 1.50 s: committed, and not on the edge yet" in late.sentence
    assert TAKEN in failure(lambda: changes(iter(["refused"]), items="refused")).sentence


@pytest.mark.parametrize("state", ["unknown", None])
def test_labels_of_which_agent_or_gateway_say_nothing_are_not_waited_for(state: str | None) -> None:
    failed = failure(lambda: changes(iter([state])))
    assert (failed.exit_code, failed.code) == (ExitCode.REFUSED, "secret_state_unknown")
    assert "does not say which labels and annotations arrive" in failed.sentence


def test_a_dry_run_has_nothing_to_wait_for(edgewright: CommandLine) -> None:
    shown = edgewright("secret", "put", "press-shop", "default/db", "k", "-", "--wait", "--dry-run", typed="v")
    assert (shown.code, "nothing to wait for" in shown.err) == (2, True)
    shown = edgewright("secret", "label", "press-shop", "default/db", "app=press", "--wait", "--dry-run")
    assert (shown.code, "nothing to wait for" in shown.err) == (2, True)
