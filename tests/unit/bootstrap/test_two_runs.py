"""Two runs of a line on one cluster, one of them standing still or killed before any of its requests.

However they meet, the edge ends with what the centre knows, and a run that is refused takes nothing from another.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

GOOD, DEAD = "reg.good", "reg.replaced"
SECRETS = ("flux-secrets", "edgewright-agent")
READS = 5
"""Requests with which a run begins: version, rights, identity; where it stands then makes no difference."""
KILLED = 18
"""Request before which a run is killed that leaves an anchor and no credentials."""
REQUESTS = 32
"""Of a run on a cluster on which nothing is yet; a test below counts them."""


@dataclass
class Register:
    """What a centre knows of one cluster: as ``EdgeRegistration`` and ``CredentialProof`` of the product have it."""

    held: tuple[str, str] | None = None
    spent: bool = False
    lost: bool = False
    """The answer to the next registration is a proxy's."""

    def decide(self, request):
        if request["authorization"] == f"Bearer {DEAD}":
            return 403, {"code": "token_replaced", "detail": "The registration token was replaced by a newer one."}
        offered = request["flux_secret"], request["agent_secret"]
        if self.spent and offered != self.held:
            return 403, {"code": "token_spent", "detail": "The registration token was used already."}
        self.held = offered
        if self.lost:
            self.lost, self.spent = False, True
            return 504, {"detail": "The proxy has given up."}
        return 200, {"state": "accepted", "short_code": "7KQ-2MX"}


@pytest.fixture
def register(centre):
    made = Register()
    centre.decide = made.decide
    return made


class Run:
    """One run, up to where it stands still, or is killed.

    Args:
        at: the number of the request before which it does.
    """

    def __init__(self, site, token: str, *, at: int = 0, then: str = "stand") -> None:
        self._gate = site.folder / f"gate-{time.monotonic_ns()}"
        gated = {"GATE_FILE": str(self._gate), "GATE_AT": str(at), "GATE": then}
        self._running = subprocess.Popen(
            [*site.shell, "-s", "--", "--yes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=site.environment(**gated),
            start_new_session=True,
            text=True,
        )
        assert self._running.stdin
        self._running.stdin.write(site.render(token=token))
        self._running.stdin.close()
        self._running.stdin = None

    def await_gate(self) -> bool:
        """Whether it stands still; False: it has ended before."""
        while not Path(f"{self._gate}.reached").exists():
            if self._running.poll() is not None:
                return False
            time.sleep(0.005)
        return True

    def end(self) -> tuple[int, str]:
        """Lets it go on; its exit code, and all that it has said."""
        Path(f"{self._gate}.open").touch()
        try:
            said = "".join(self._running.communicate(timeout=60))
        finally:
            if self._running.poll() is None:
                os.killpg(self._running.pid, signal.SIGKILL)
        return self._running.returncode, said

    @property
    def requests(self) -> int:
        return self._gate.stat().st_size


def held_on(site) -> tuple[str, str] | None:
    """The credentials that the edge lives on."""
    found = [site.secret(name) for name in SECRETS]
    return None if None in found else (found[0]["password"], found[1]["password"])


def is_attached(site, register) -> bool:
    there = {"ClusterRole/edgewright-anchor", "Namespace/edgewright", "Kustomization/edgewright/self-link"}
    return there <= site.cluster["objects"].keys() and held_on(site) == register.held is not None


def test_a_run_makes_as_many_requests_as_are_tried(site, register) -> None:
    run = Run(site, GOOD)
    assert run.end()[0] == 0
    assert run.requests == REQUESTS
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1))
def test_a_line_that_was_pasted_twice_attaches_once(site, register, at: int) -> None:
    first = Run(site, GOOD, at=at)
    assert first.await_gate()
    assert Run(site, GOOD).end()[0] == 0
    assert is_attached(site, register)
    living, register.spent = held_on(site), True  # the agent lives on it
    code, said = first.end()
    assert code == 0, said
    assert held_on(site) == living
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1))
def test_a_refused_run_takes_nothing_from_one_that_was_accepted_meanwhile(site, register, at: int) -> None:
    refused = Run(site, DEAD, at=at)
    stands = refused.await_gate()  # it has fewer requests than one that is accepted
    assert Run(site, GOOD).end()[0] == 0
    register.spent = True
    assert refused.end()[0] == 1 or not stands
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1))
def test_a_run_goes_on_although_another_was_refused_meanwhile(site, register, at: int) -> None:
    accepted = Run(site, GOOD, at=at)
    assert accepted.await_gate()
    assert Run(site, DEAD).end()[0] == 1
    code, said = accepted.end()
    assert code == 0, said
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1))
def test_a_killed_run_is_gone_on_with(site, register, at: int) -> None:
    assert Run(site, GOOD, at=at, then="kill").end()[0] != 0
    code, said = Run(site, GOOD).end()
    assert code == 0, said
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1, 2))
def test_a_refused_run_beside_an_anchor_takes_nothing_from_one_that_was_accepted(site, register, at: int) -> None:
    """A run that was killed has left its anchor, so that the refused one undoes single Secrets."""
    assert Run(site, GOOD, at=KILLED, then="kill").end()[0] != 0
    assert "ClusterRole/edgewright-anchor" in site.cluster["objects"]
    assert held_on(site) is None
    refused = Run(site, DEAD, at=at)
    stands = refused.await_gate()
    assert Run(site, GOOD).end()[0] == 0
    register.spent = True
    assert refused.end()[0] == 1 or not stands
    assert is_attached(site, register)


def test_an_answer_that_was_lost_is_asked_for_again_though_the_token_was_spent_meanwhile(site, register) -> None:
    register.lost = True
    code, said = Run(site, GOOD).end()
    assert code == 0, said
    assert is_attached(site, register)


@pytest.mark.parametrize("going", [{"deleted": "2026-01-01T00:00:00Z"}, {"owner": "uid-of-an-anchor-before"}])
def test_a_namespace_that_goes_or_whose_owner_has_gone_is_waited_for(site, register, going: dict[str, str]) -> None:
    """The garbage collector comes for the second one some time later, and would take along what a run puts there."""
    site.put("Namespace/edgewright")
    objects = site.cluster["objects"]
    objects["Namespace/edgewright"] |= going
    site.set_cluster(objects=objects)
    code, said = Run(site, GOOD).end()
    assert code == 0, said
    assert "is being deleted; waiting for it to go" in said
    assert is_attached(site, register)


def test_a_namespace_that_does_not_go_is_explained(site, register) -> None:
    site.put("Namespace/edgewright")
    objects = site.cluster["objects"]
    objects["Namespace/edgewright"]["deleted"] = "2026-01-01T00:00:00Z"
    site.set_cluster(objects=objects, hangs=True)
    code, said = Run(site, GOOD).end()
    assert code == 3
    assert "does not go" in said and "--uninstall" in said
    assert register.held is None


def test_another_run_that_has_not_ended_is_told_of(site, register) -> None:
    assert Run(site, GOOD, at=REQUESTS - 4, then="kill").end()[0] != 0
    assert "Another run has not ended here" in Run(site, GOOD).end()[1]
    assert "Another run" not in Run(site, GOOD).end()[1]


def test_the_run_that_draws_decides_for_all_that_start_with_it(site, register) -> None:
    """No order of ours: they race."""
    runs = [Run(site, GOOD) for _ in range(4)]
    assert [code for code, _ in [run.end() for run in runs]] == [0, 0, 0, 0]
    assert is_attached(site, register)
