"""Upgrading edges through a real gateway."""

import json
import re
import threading

import pytest
from command_line import CommandLine, ServedCentre, Terminal
from gateway_centre import EdgeCredentials
from reporting_agent import beat
from upgrading_centre import NEW, OLD, outcomes

from edgewright.bootstrap import AgentPod
from edgewright.cli.failures import ExitCode
from edgewright.ports.operators import Permission

RUNS = {"agent": OLD, "agent-image": f"registry.example.com/agent:{OLD}", "kubernetes": "v1.33.1", "flux": "v2.6.0"}
"""What the agents of the edges report."""


@pytest.fixture
def edges(centre: ServedCentre) -> dict[str, EdgeCredentials]:
    """Three attached edges and a cluster without one, at a centre that offers a newer agent."""
    centre.centre.offer(agent=AgentPod(f"registry.example.com/agent:{NEW}"))
    names = ("press", "weld", "paint")
    attached = {name: centre.do(centre.centre.register(centre.create(name), uid=name)) for name in names}
    centre.create("demo")
    for edge in attached.values():
        report(centre, edge)
    return attached


def report(centre: ServedCentre, edge: EdgeCredentials, **versions: str) -> None:
    said = {"versions": {**RUNS, **versions}, "flux_is_ours": True}

    async def reported() -> None:
        await beat(centre.centre, edge)
        answer = await centre.centre.client(edge.as_agent).put("/v1/agent/status", json=said)
        assert answer.status_code in {200, 204}, answer.text

    centre.do(reported())


def test_a_real_gateway_upgrades_one_edge_after_the_other(
    edgewright: CommandLine, centre: ServedCentre, edges: dict[str, EdgeCredentials], quick: None
) -> None:
    over = threading.Event()
    seen: list[int] = []

    def prove() -> None:
        """Each edge runs the new agent once its upgrade is under way."""
        admin = centre.do(centre.centre.operator(Permission.READ))
        while not over.wait(0.01):
            page = centre.do(admin.get("/v1/upgrade", params={"state": "under_way"})).json()
            seen.append(len(page["items"]))
            for each in page["items"]:
                image = f"registry.example.com/agent:{NEW}"
                report(centre, edges[each["name"]], **{"agent": NEW, "agent-image": image})

    prover = threading.Thread(target=prove)
    prover.start()
    try:
        shown = edgewright("agent", "upgrade", "--all", "--at-once", "1", "--yes")
    finally:
        over.set()
        prover.join()
    assert shown.code == 0, shown
    assert outcomes(shown.out) == dict.fromkeys(edges, f"upgraded to {NEW}")
    assert shown.out.splitlines()[-1] == "4 clusters: 3 upgraded, 1 without an edge."
    assert "demo  left out: No edge of demo has reported yet" in shown.err
    assert max(seen) == 1
    again = edgewright.ok("agent", "upgrade", "--all", "--yes")
    assert set(outcomes(again.out).values()) == {f"has {NEW} already"}
    assert edgewright.ok("upgrade", "list", "--state", "done", "-o", "name").out.split() != []
    assert re.search(rf"^agent +{NEW}$", edgewright.ok("cluster", "show", "weld").out, re.MULTILINE)


def test_a_real_gateway_refuses_in_its_own_words(
    edgewright: CommandLine, centre: ServedCentre, edges: dict[str, EdgeCredentials]
) -> None:
    flux = edgewright("flux", "upgrade", "press", "--yes")
    assert (flux.code, "no Flux to give" in flux.err) == (ExitCode.NOT_FOUND, True)
    assert edgewright.ok("agent", "upgrade", "press", "--no-wait", "--yes").out == (
        f"press  upgrading from {OLD} to {NEW}\n"
    )
    full = edgewright("agent", "upgrade", "weld", "--at-once", "1", "--no-wait", "--yes")
    assert (full.code, "The upgrade of weld was not begun." in full.err) == (1, True)
    terminal = Terminal(edgewright.environment)("agent", "upgrade", "weld", "paint", typed="n\n")
    assert f"2 of 2 now: agent {OLD}" in terminal.out
    found = json.loads(edgewright.ok("upgrade", "list", "--json").out)["items"]
    assert [(each["name"], each["state"]) for each in found] == [("press", "under_way")]


def test_a_real_gateway_calls_upgrades_off(
    edgewright: CommandLine, centre: ServedCentre, edges: dict[str, EdgeCredentials]
) -> None:
    assert edgewright("agent", "upgrade", *edges, "--no-wait", "--yes").code == 0
    image = f"registry.example.com/agent:{NEW}"
    report(centre, edges["weld"], **{"agent": NEW, "agent-image": image})
    alone = edgewright.ok("upgrade", "cancel", "press")
    assert outcomes(alone.out)["press"].startswith(f"agent no longer upgraded to {NEW}: Called off by token:")
    proven = edgewright("upgrade", "cancel", "weld", "press")
    assert proven.code == ExitCode.REFUSED
    assert f"weld  left as it is: weld has agent {NEW} already: its edge has proven it." in proven.err
    assert f"press  left as it is: The upgrade of press to agent {NEW} was called off already." in proven.err
    terminal = Terminal(edgewright.environment)("upgrade", "cancel", "--all", typed="y\n")
    assert (terminal.code, "Call off 1 upgrade: paint? [y/N]" in terminal.out) == (0, True), terminal
    found = json.loads(edgewright.ok("upgrade", "list", "--json").out)["items"]
    assert {each["name"]: each["state"] for each in found} == {
        "press": "cancelled",
        "weld": "done",
        "paint": "cancelled",
    }
    asked = Terminal(edgewright.environment)("agent", "upgrade", "press", typed="n\n")
    assert f"Upgrade press to agent {NEW} ({image})? [y/N]" in asked.out
