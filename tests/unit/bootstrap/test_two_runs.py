"""Two runs of a line on one cluster, one of them standing still or killed before any of its requests.

However they meet, the edge ends with what the centre knows, and a run that is refused takes nothing from another.
"""

import os
import random

import pytest
from bootstrap_edge import KubectlMachine
from bootstrap_runs import ANCHOR, DEAD, GOOD, MADE, READS, REQUESTS, BootstrapRun, Register, held_on, is_attached

KILLED = 20
"""Request before which a run is killed that leaves an anchor and no credentials."""
STOPS = range(READS, REQUESTS + 1)
PAIRS = 12
"""Tried of each meeting of two runs that both stop."""
SEED = os.environ.get("RACES_SEED", "16")


def drawn(meeting: str) -> list[tuple[int, int]]:
    """Where the first run stops, and where the second one does; no stop of either twice."""
    chance = random.Random(f"{SEED} {meeting}")
    return list(zip(sorted(chance.sample(STOPS, PAIRS)), chance.sample(STOPS, PAIRS), strict=True))


def test_a_run_makes_as_many_requests_as_are_tried(site: KubectlMachine, register: Register) -> None:
    run = BootstrapRun(site, GOOD)
    assert run.end()[0] == 0
    assert run.requests == REQUESTS
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1))
def test_a_line_that_was_pasted_twice_attaches_once(site: KubectlMachine, register: Register, at: int) -> None:
    first = BootstrapRun(site, GOOD, at=at)
    assert first.await_gate()
    assert BootstrapRun(site, GOOD).end()[0] == 0
    assert is_attached(site, register)
    living, register.spent = held_on(site), True  # the agent lives on it
    code, said = first.end()
    assert code == 0, said
    assert held_on(site) == living
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1))
def test_a_refused_run_takes_nothing_from_one_that_was_accepted_meanwhile(
    site: KubectlMachine, register: Register, at: int
) -> None:
    refused = BootstrapRun(site, DEAD, at=at)
    stands = refused.await_gate()  # it has fewer requests than one that is accepted
    assert BootstrapRun(site, GOOD).end()[0] == 0
    register.spent = True
    assert refused.end()[0] == 1 or not stands
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1))
def test_a_run_goes_on_although_another_was_refused_meanwhile(
    site: KubectlMachine, register: Register, at: int
) -> None:
    accepted = BootstrapRun(site, GOOD, at=at)
    assert accepted.await_gate()
    assert BootstrapRun(site, DEAD).end()[0] == 1
    code, said = accepted.end()
    assert code == 0, said
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1))
def test_a_killed_run_is_gone_on_with(site: KubectlMachine, register: Register, at: int) -> None:
    assert BootstrapRun(site, GOOD, at=at, then="kill").end()[0] != 0
    code, said = BootstrapRun(site, GOOD).end()
    assert code == 0, said
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1, 2))
def test_a_refused_run_beside_an_anchor_takes_nothing_from_one_that_was_accepted(
    site: KubectlMachine, register: Register, at: int
) -> None:
    """A run that was killed has left its anchor, so that the refused one undoes single Secrets."""
    assert BootstrapRun(site, GOOD, at=KILLED, then="kill").end()[0] != 0
    assert ANCHOR in site.cluster["objects"]
    assert held_on(site) is None
    refused = BootstrapRun(site, DEAD, at=at)
    stands = refused.await_gate()
    assert BootstrapRun(site, GOOD).end()[0] == 0
    register.spent = True
    assert refused.end()[0] == 1 or not stands
    assert is_attached(site, register)


@pytest.mark.parametrize(("at", "other_at"), drawn("pasted twice"))
def test_a_line_that_was_pasted_twice_attaches_once_wherever_both_stop(
    site: KubectlMachine, register: Register, at: int, other_at: int
) -> None:
    first = BootstrapRun(site, GOOD, at=at)
    assert first.await_gate()
    second = BootstrapRun(site, GOOD, at=other_at)
    second.await_gate()  # it may have ended: a run has fewer requests where another has done part of it
    code, said = first.end()
    assert code == 0, said
    assert is_attached(site, register)
    living, register.spent = held_on(site), True
    code, said = second.end()
    assert code == 0, said
    assert held_on(site) == living
    assert is_attached(site, register)


@pytest.mark.parametrize(("at", "other_at"), drawn("killed"))
def test_a_run_goes_on_although_another_was_killed_beside_it(
    site: KubectlMachine, register: Register, at: int, other_at: int
) -> None:
    first = BootstrapRun(site, GOOD, at=at)
    assert first.await_gate()
    BootstrapRun(site, GOOD, at=other_at, then="kill").end()
    code, said = first.end()
    assert code == 0, said
    assert is_attached(site, register)
    living, register.spent = held_on(site), True
    code, said = BootstrapRun(site, GOOD).end()
    assert code == 0, said
    assert held_on(site) == living
    assert is_attached(site, register)


@pytest.mark.parametrize(("at", "other_at"), drawn("refused first"))
def test_a_run_goes_on_although_another_that_stood_beside_it_was_refused(
    site: KubectlMachine, register: Register, at: int, other_at: int
) -> None:
    refused = BootstrapRun(site, DEAD, at=at)
    refused.await_gate()
    accepted = BootstrapRun(site, GOOD, at=other_at)
    accepted.await_gate()
    assert refused.end()[0] == 1
    code, said = accepted.end()
    assert code == 0, said
    assert is_attached(site, register)


@pytest.mark.parametrize(("at", "other_at"), drawn("refused last"))
def test_a_run_that_is_refused_last_takes_nothing_wherever_both_stop(
    site: KubectlMachine, register: Register, at: int, other_at: int
) -> None:
    refused = BootstrapRun(site, DEAD, at=at)
    stands = refused.await_gate()
    accepted = BootstrapRun(site, GOOD, at=other_at)
    accepted.await_gate()
    code, said = accepted.end()
    assert code == 0, said
    register.spent = True
    assert refused.end()[0] == 1 or not stands
    assert is_attached(site, register)


def test_an_answer_that_was_lost_is_asked_for_again_though_the_token_was_spent_meanwhile(
    site: KubectlMachine, register: Register
) -> None:
    register.lost = True
    code, said = BootstrapRun(site, GOOD).end()
    assert code == 0, said
    assert is_attached(site, register)


def test_a_kind_that_another_run_has_only_just_brought_stops_no_rehearsal(
    site: KubectlMachine, register: Register
) -> None:
    """Kubernetes knows a new kind some time before it serves it."""
    site.put("Namespace/edgewright")  # else only rights count in a rehearsal
    site.set_cluster(unserved=True)
    code, said = BootstrapRun(site, GOOD).end()
    assert code == 0, said
    assert is_attached(site, register)


@pytest.mark.parametrize("going", [{"deleted": "2026-01-01T00:00:00Z"}, {"owner": "uid-of-an-anchor-before"}])
def test_a_namespace_that_goes_or_whose_owner_has_gone_is_waited_for(
    site: KubectlMachine, register: Register, going: dict[str, str]
) -> None:
    """The garbage collector comes for the second one some time later, and would take along what a run puts there."""
    site.put("Namespace/edgewright")
    objects = site.cluster["objects"]
    objects["Namespace/edgewright"] |= going
    site.set_cluster(objects=objects)
    code, said = BootstrapRun(site, GOOD).end()
    assert code == 0, said
    assert "is being deleted; waiting for it to go" in said
    assert is_attached(site, register)


def test_a_namespace_that_does_not_go_is_explained(site: KubectlMachine, register: Register) -> None:
    site.put("Namespace/edgewright")
    objects = site.cluster["objects"]
    objects["Namespace/edgewright"]["deleted"] = "2026-01-01T00:00:00Z"
    site.set_cluster(objects=objects, hangs=True)
    code, said = BootstrapRun(site, GOOD).end()
    assert code == 3
    assert "does not go" in said and "--uninstall" in said
    assert register.held is None


def test_another_run_that_has_not_ended_is_told_of(site: KubectlMachine, register: Register) -> None:
    assert BootstrapRun(site, GOOD, at=REQUESTS - 4, then="kill").end()[0] != 0
    assert "Another run has not ended here" in BootstrapRun(site, GOOD).end()[1]
    assert "Another run" not in BootstrapRun(site, GOOD).end()[1]


def test_the_run_that_draws_decides_for_all_that_start_with_it(site: KubectlMachine, register: Register) -> None:
    """No order of ours: they race."""
    runs = [BootstrapRun(site, GOOD) for _ in range(4)]
    assert [code for code, _ in [run.end() for run in runs]] == [0, 0, 0, 0]
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(MADE, REQUESTS + 1))
def test_whoever_has_changed_something_does_not_say_that_nothing_was(
    site: KubectlMachine, register: Register, at: int
) -> None:
    older = BootstrapRun(site, at=at)
    assert older.await_gate()
    assert ANCHOR in site.cluster["objects"]
    assert BootstrapRun(site, generation=2).end()[0] == 0
    living = held_on(site)
    code, said = older.end()
    assert "Nothing was changed" not in said
    assert held_on(site) == living
    assert code == 0 or "generation 2" in said


@pytest.mark.parametrize("at", range(MADE, REQUESTS, 2))
def test_a_late_run_of_an_older_line_takes_neither_generation_nor_mark_of_a_newer_one(
    site: KubectlMachine, register: Register, at: int
) -> None:
    assert BootstrapRun(site).end()[0] == 0
    older = BootstrapRun(site, at=at, generation=2)
    assert older.await_gate()
    assert BootstrapRun(site, at=REQUESTS - 1, then="kill", generation=3).end()[0] != 0
    anchor = site.cluster["objects"][ANCHOR]
    older.end()
    now = site.cluster["objects"][ANCHOR]
    assert anchor["run"] and now["run"] == anchor["run"]
    assert now["labels"]["edgewright.dev/generation"] == "3"
    assert BootstrapRun(site, generation=3).end()[0] == 0
    assert is_attached(site, register)
