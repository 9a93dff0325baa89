"""A bootstrap line and its uninstallation at the same time: neither says that it is done when it is not."""

import pytest
from bootstrap_edge import KubectlMachine
from bootstrap_runs import ANCHOR, MADE, READS, REQUESTS, BootstrapRun, Register, is_attached

UNINSTALLS = 38
"""Requests of an uninstallation; a test below counts them."""
ENDS = 37
"""The request with which it deletes the anchor; it only looks afterwards."""
MARKS = 12
"""The request with which it marks the anchor."""


def ours(site: KubectlMachine) -> list[str]:
    """What bears our mark on the cluster."""
    objects = site.cluster["objects"]
    return [key for key, held in objects.items() if "edgewright.dev/cluster" in held["labels"]]


def test_an_uninstallation_makes_as_many_requests_as_are_tried(site: KubectlMachine, register: Register) -> None:
    assert BootstrapRun(site).end()[0] == 0
    leaving = BootstrapRun(site, uninstalls=True)
    code, said = leaving.end()
    assert code == 0, said
    assert leaving.requests == UNINSTALLS
    asked = [call["args"] for call in site.calls][-UNINSTALLS:]
    assert "edgewright.dev/run=uninstall" in asked[MARKS - 1]
    assert "delete" in asked[ENDS - 1] and "--raw" in asked[ENDS - 1]
    assert ours(site) == []


@pytest.mark.parametrize("at", range(READS, REQUESTS + 1))
def test_a_run_notices_that_everything_was_taken_away_meanwhile(
    site: KubectlMachine, register: Register, at: int
) -> None:
    run = BootstrapRun(site, at=at)
    assert run.await_gate()
    code, said = BootstrapRun(site, uninstalls=True).end()
    assert code == 0, said
    assert ours(site) == []
    code, said = run.end()
    if code != 0:
        assert code == 3
        assert "run the same line again" in said and "Done" not in said
        assert BootstrapRun(site).end()[0] == 0
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(MADE, REQUESTS + 1))
def test_a_run_that_goes_on_while_an_uninstallation_does_ends_as_one_of_them_says(
    site: KubectlMachine, register: Register, at: int
) -> None:
    run = BootstrapRun(site, at=at)
    assert run.await_gate()
    leaving = BootstrapRun(site, at=MARKS + 1, uninstalls=True)
    assert leaving.await_gate()
    code, said = run.end()
    assert (code, "An --uninstall has begun here" in said) == (6, True), said
    assert "Nothing was changed" not in said
    code, said = leaving.end()
    assert code == 0, said
    assert ours(site) == []
    assert BootstrapRun(site).end()[0] == 0
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, ENDS + 1))
def test_a_line_that_is_run_while_an_uninstallation_stands_still_waits_or_goes_with_it(
    site: KubectlMachine, register: Register, at: int
) -> None:
    assert BootstrapRun(site).end()[0] == 0
    leaving = BootstrapRun(site, at=at, uninstalls=True)
    assert leaving.await_gate()
    code, said = BootstrapRun(site).end()
    if at > MARKS:
        assert (code, "let it end, or run it again" in said) == (6, True)
    code, said = leaving.end()
    assert code == 0, said
    assert ours(site) == []
    assert BootstrapRun(site).end()[0] == 0
    assert is_attached(site, register)


@pytest.mark.parametrize("at", range(READS, ENDS + 1))
def test_an_uninstallation_that_was_killed_is_gone_on_with(site: KubectlMachine, register: Register, at: int) -> None:
    assert BootstrapRun(site).end()[0] == 0
    assert BootstrapRun(site, at=at, then="kill", uninstalls=True).end()[0] != 0
    code, said = BootstrapRun(site, uninstalls=True).end()
    assert code == 0, said
    assert ours(site) == []


def test_an_anchor_that_somebody_has_changed_meanwhile_stays(site: KubectlMachine, register: Register) -> None:
    """Such as a run of an earlier version of the line, which does not wait."""
    assert BootstrapRun(site).end()[0] == 0
    leaving = BootstrapRun(site, at=ENDS, uninstalls=True)
    assert leaving.await_gate()
    objects = site.cluster["objects"]
    objects[ANCHOR] |= {"run": "abc", "version": "999"}
    site.set_cluster(objects=objects)
    code, said = leaving.end()
    assert (code, "was run meanwhile" in said) == (3, True)
    assert ANCHOR in site.cluster["objects"]
