"""The bootstrap line, acceptance, and the verbs that steer."""

import json
import subprocess
from pathlib import Path
from uuid import UUID

import pytest
from command_line import CommandLine, ServedCentre, Terminal
from edge_cluster.certificates import Authority
from reporting_agent import certificate
from small_images import publish_small

from edgewright.adapters.agent_image.layout import ImageLayout
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.bootstrap import render_uninstall
from edgewright.domain.cluster import Acceptance, Desired, StepName, StepState
from edgewright.domain.projection import StepRecord


@pytest.fixture
def pending(centre: ServedCentre) -> UUID:
    """A cluster whose edge has registered and waits for an answer."""
    made = centre.create("press-shop", accept="manual")
    centre.do(centre.centre.register(made))
    assert centre.row(made).acceptance is Acceptance.PENDING
    return made


def test_stdout_has_the_bootstrap_line_alone(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    shown = edgewright.ok("cluster", "bootstrap", "press-shop")
    line = shown.out.removesuffix("\n")
    assert line.startswith(f"curl -sSL 'http://127.0.0.1:8484/v1/cluster/{made}/bootstrap?token=")
    assert line.endswith("' | sh -")
    assert "\n" not in line
    checked = subprocess.run(["sh", "-n"], input=shown.out, text=True, check=False, capture_output=True, timeout=30)
    assert checked.returncode == 0
    assert "(in 1 h)" in shown.err
    assert "Warning:" in shown.err
    assert "only reachable from this machine" in shown.err
    for told in ("flux import VERSION", "up --share", "agent-image build"):
        assert told in shown.err
    assert line.partition("token=")[2].removesuffix("' | sh -") not in shown.err


def test_bootstrap_line_of_a_private_authority_is_one_line_that_says_so(
    edgewright: CommandLine, centre: ServedCentre, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = Authority(tmp_path).identity.certificate.read_text()
    centre.centre.offer(ca_bundle=bundle)
    centre.create("press-shop")
    shown = edgewright.ok("cluster", "bootstrap", "press-shop")
    line = shown.out.removesuffix("\n")
    assert "\n" not in line
    assert " | curl --cacert /dev/stdin -sSL 'http" in line
    assert line.endswith("' | sh -")
    assert "carries the centre's CA bundle" in shown.err
    assert "characters" not in shown.err
    assert json.loads(edgewright.ok("cluster", "bootstrap", "press-shop", "--json").out)["ca_bundle"] == bundle


def test_nodes_that_must_trust_the_centre_to_pull_the_agent_are_named(
    edgewright: CommandLine, centre: ServedCentre, tmp_path: Path
) -> None:
    publish_small(layout := ImageLayout(tmp_path / "agent-image"))
    centre.create("press-shop")
    centre.centre.offer(images=layout)
    assert "must trust its CA" not in edgewright.ok("cluster", "bootstrap", "press-shop").err
    bundle = Authority(tmp_path).identity.certificate.read_text()
    centre.centre.offer(images=layout, ca_bundle=bundle)
    told = edgewright.ok("cluster", "bootstrap", "press-shop").err
    assert "Nodes pull the agent from 127.0.0.1:8484 and must trust its CA, too" in told
    assert "No agent" not in told


def test_a_line_that_is_longer_than_terminals_take_says_so(
    edgewright: CommandLine, centre: ServedCentre, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = Authority(tmp_path).identity.certificate.read_text() * 20
    centre.centre.offer(ca_bundle=bundle)
    centre.create("press-shop")
    assert "takes no more than 4,095 when they are pasted" in edgewright.ok("cluster", "bootstrap", "press-shop").err


def test_uninstall_script_is_printed_without_a_centre(
    edgewright: CommandLine, centre: ServedCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEWRIGHT_URL", "http://127.0.0.1:1")
    assert edgewright.ok("cluster", "uninstall-script").out == render_uninstall()


def test_a_line_for_a_cluster_that_is_gone_names_the_uninstall_script(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    for name in ("never-was", "6f5c1c1e-0000-4000-8000-3f0f5f5f9a99"):
        assert "cluster uninstall-script" in edgewright("cluster", "bootstrap", name).err


def test_bootstrap_line_lives_as_long_as_is_wished(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.create("press-shop")
    assert "(in 2 h)" in edgewright.ok("cluster", "bootstrap", "press-shop", "--expires-in", "2h").err
    document = json.loads(edgewright.ok("cluster", "bootstrap", "press-shop", "--json").out)
    agent = {"agent_image", "agent_image_served"}
    assert set(document) == {"url", "command", "expires_at", "warning", "flux", "ca_bundle"} | agent


def test_check_in_windows_are_set_shown_and_taken_back(edgewright: CommandLine, centre: ServedCentre) -> None:
    centre.create("press-shop")
    shown = edgewright.ok("cluster", "check-in", "press-shop", "00:00-24:00", "--time-zone", "Europe/London")
    assert shown.out == "press-shop calls 00:00-24:00 (Europe/London); a window is open now.\n"
    assert "00:00-24:00 (Europe/London)" in edgewright.ok("cluster", "show", "press-shop").out
    refused = edgewright("cluster", "check-in", "press-shop", "00:00-24:00", "--time-zone", "Europe/Atlantis")
    assert (refused.code, "There is no time zone Europe/Atlantis." in refused.err) == (2, True), refused.err
    assert edgewright("cluster", "check-in", "press-shop").code == 2
    assert edgewright("cluster", "check-in", "press-shop", "00:00-24:00", "--any-time").code == 2
    assert edgewright.ok("cluster", "check-in", "press-shop", "--any-time").out == "press-shop calls at any time.\n"
    assert "check-in" not in edgewright.ok("cluster", "show", "press-shop").out


def test_a_certificate_that_waits_for_an_admin_is_shown_and_confirmed(
    edgewright: CommandLine, centre: ServedCentre
) -> None:
    made, ports = centre.create("press-shop"), centre.centre.ports
    door = EdgeStatusDoor(ports.directory, ports.edge_reports, ports.config)
    body = {"hosts": [], "kubeseal_cert": certificate()}
    proposal = door.record(made, body, merge=False, actor="temporal", generation=None, proposes=True)
    centre.do(proposal)
    proposed = centre.row(made).proposed
    assert proposed is not None
    assert f"{proposed.fingerprint}, by a signal" in edgewright.ok("cluster", "show", "press-shop").out
    assert edgewright("cluster", "certificate", "press-shop", "0" * 64).code == 4
    assert centre.row(made).certificate is None
    edgewright.ok("cluster", "certificate", "press-shop", proposed.fingerprint)
    used = centre.row(made).certificate
    assert (used and used.fingerprint, centre.row(made).proposed) == (proposed.fingerprint, None)
    assert "by a signal" not in edgewright.ok("cluster", "show", "press-shop").out


@pytest.mark.parametrize("life", ["8d", "59s", "0", "never", "1 h"])
def test_bootstrap_line_lives_a_minute_to_a_week(environment: dict[str, str | None], life: str) -> None:
    shown = CommandLine(environment)("cluster", "bootstrap", "press-shop", "--expires-in", life)
    assert (shown.code, "--expires-in" in shown.err) == (2, True)


@pytest.mark.parametrize(("answer", "acceptance"), [("y", Acceptance.ACCEPTED), ("n", Acceptance.PENDING)])
def test_accept_shows_the_short_code_and_asks(
    terminal: Terminal, centre: ServedCentre, pending: UUID, answer: str, acceptance: Acceptance
) -> None:
    code = centre.row(pending).short_code
    assert code
    shown = terminal("cluster", "accept", "press-shop", typed=f"{answer}\n")
    assert code in shown.err
    assert centre.row(pending).acceptance is acceptance
    assert shown.code == (0 if answer == "y" else 1)


def test_accept_without_a_terminal_wants_yes(edgewright: CommandLine, centre: ServedCentre, pending: UUID) -> None:
    assert edgewright("cluster", "accept", "press-shop", typed="y\n").code == 2
    assert centre.row(pending).acceptance is Acceptance.PENDING
    assert edgewright.ok("cluster", "accept", "press-shop", "--yes").out == "press-shop is accepted.\n"
    assert centre.row(pending).acceptance is Acceptance.ACCEPTED


def test_reject_kills_the_registration(edgewright: CommandLine, centre: ServedCentre, pending: UUID) -> None:
    assert edgewright.ok("cluster", "reject", "press-shop").out == "press-shop is rejected.\n"
    assert centre.row(pending).acceptance is Acceptance.REJECTED


def test_credentials_are_rotated_all_or_by_role(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    centre.do(centre.centre.register(made))
    assert "replace: flux." in edgewright.ok("cluster", "rotate", "press-shop", "--role", "flux").out
    both = json.loads(edgewright.ok("cluster", "rotate", "press-shop", "--json").out)
    assert both == {"roles": ["agent", "flux"]}


@pytest.mark.parametrize("verb", ["accept", "reject", "rotate"])
def test_nobody_has_registered(edgewright: CommandLine, centre: ServedCentre, verb: str) -> None:
    centre.create("press-shop")
    shown = edgewright("cluster", verb, "press-shop")
    assert (shown.code, shown.out) == (4, "")


def test_pause_and_resume(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    edgewright.ok("cluster", "pause", "press-shop", "--reason", "change freeze")
    assert (centre.row(made).paused, centre.row(made).paused_reason) == (True, "change freeze")
    assert "yes: change freeze" in edgewright.ok("cluster", "show", "press-shop").out
    resumed = json.loads(edgewright.ok("cluster", "resume", "press-shop", "--json").out)
    assert resumed["pause"] == {"paused": False, "reason": ""}


def test_verbs_that_need_a_reason_say_so(environment: dict[str, str | None]) -> None:
    for arguments in (["pause", "press-shop"], ["skip", "press-shop", "await_goodbye"]):
        shown = CommandLine(environment)("cluster", *arguments)
        assert (shown.code, "--reason" in shown.err) == (2, True)


def test_step_is_retried_and_skipped(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    steps = tuple(
        StepRecord(name=name, state=StepState.WAITING, attempts=5)
        for name in (StepName.AWAIT_EMPTY, StepName.AWAIT_GOODBYE)
    )
    centre.project(made, steps=steps)
    edgewright.ok("cluster", "retry", "press-shop", "Await-Empty")
    edgewright.ok("cluster", "skip", "press-shop", "await_goodbye", "--reason", "scrapped")
    projection = centre.row(made).projection
    assert projection is not None
    states = {step.name: (step.state, step.skipped_because) for step in projection.steps}
    assert states == {StepName.AWAIT_EMPTY: ("pending", ""), StepName.AWAIT_GOODBYE: ("skipped", "scrapped")}


def test_step_that_cannot_be_steered_says_why(edgewright: CommandLine, centre: ServedCentre) -> None:
    made = centre.create("press-shop")
    not_waiting = edgewright("cluster", "retry", "press-shop", "create_repository")
    assert (not_waiting.code, "does not wait" in not_waiting.err) == (4, True)
    not_skippable = edgewright("cluster", "skip", "press-shop", "create_repository", "--reason", "x")
    assert (not_skippable.code, "cannot be skipped" in not_skippable.err) == (4, True)
    unknown = edgewright("cluster", "retry", "press-shop", "make_coffee")
    assert (unknown.code, "await_goodbye" in unknown.err) == (3, True)
    mistyped = edgewright("cluster", "retry", "press-shop", "await-godbye")
    assert (mistyped.code, "Did you mean await_goodbye?" in mistyped.err) == (3, True)
    assert centre.row(made).desired is Desired.PRESENT
