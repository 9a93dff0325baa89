"""The agent's Deployment gets another image: its pod takes over once the centre has answered it, and never before."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml
from edge_cluster.desk import committed_file
from edge_cluster.grounds import LETTING_GO, NAMESPACE
from edge_cluster.kubelet import Program
from edge_cluster.site import AGENT
from free_ports import free_port
from go_programs import FLUX_RELEASE
from moved_back import move_back
from supervised import eventually

from edgewright.bootstrap import AgentPod, render_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edge_cluster.contents import Contents
    from edge_cluster.grounds import Grounds, GroundsCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

OFFERED = "EDGEWRIGHT_AGENT_IMAGE"
REPOSITORY = "registry.example.com/edgewright"
NEXT, MUTE = f"{REPOSITORY}:next", f"{REPOSITORY}:mute"
NO_WAY, ENDS_AT_ONCE = "it has no way to the centre", "it ends at once"
BEATS = 4
"""So many heartbeats are the old pod's, beyond doubt: they come every five seconds."""
WAITED = {"upgrades": ("since", "deadline"), "gateway_presence": ("listening_since",)}
"""What the centre measures its patience by."""


@pytest.fixture
def attached(grounds: Grounds, before: Contents) -> Iterator[GroundsCluster]:
    """A cluster whose edge runs the agent that the centre offers."""
    attached = grounds.attach("upgraded")
    eventually(lambda: attached.program("agent-image") == offered(grounds), seconds=LETTING_GO)
    yield attached
    attached.delete()
    eventually(attached.is_gone, seconds=LETTING_GO)
    eventually(grounds.comparison(before), seconds=LETTING_GO)


def offered(grounds: Grounds) -> str:
    return grounds.centre.variables[OFFERED]


def offer(attached: GroundsCluster, image: str) -> None:
    """Starts the centre again with another image; returns when it hears the edge again."""
    centre = attached.grounds.centre
    centre.interrupt()
    centre.variables[OFFERED] = image
    centre.up()
    eventually(partial(is_heard_after, attached, last_heard(attached)), seconds=LETTING_GO)
    eventually(lambda: attached.condition("Available")[0] == "True", seconds=LETTING_GO)


def break_image(grounds: Grounds, fault: str) -> None:
    """What runs from ``MUTE`` cannot call."""
    agent = grounds.programs[AGENT]
    nobody = f"http://127.0.0.1:{free_port()}"
    grounds.programs[MUTE] = (
        replace(agent, variables={**agent.variables, "HTTP_PROXY": nobody, "HTTPS_PROXY": nobody})
        if fault == NO_WAY
        else Program([sys.executable, "-c", "raise SystemExit(1)"])
    )


def deploy(grounds: Grounds, image: str) -> None:
    """Applies the agent's Deployment, as Flux does."""
    manifests = yaml.safe_load_all(render_agent(AgentPod(image), namespace=NAMESPACE))
    [deployment] = [one for one in manifests if one["metadata"]["name"] == AGENT and one["kind"] == "Deployment"]
    how = ("--server-side", "--force-conflicts", "--field-manager=kustomize-controller")
    grounds.cluster.kubectl("apply", *how, "--filename", "-", given=json.dumps(deployment))


def pods(grounds: Grounds) -> dict[str, str]:
    """UID -> image of the agent's pods that nobody has told to end."""
    found = grounds.cluster.find("pod", namespace=NAMESPACE)["items"]
    return {
        each["metadata"]["uid"]: each["spec"]["containers"][0]["image"]
        for each in found
        if each["spec"].get("serviceAccountName") == AGENT and "deletionTimestamp" not in each["metadata"]
    }


def last_heard(attached: GroundsCluster) -> str:
    heard: str = attached.api("GET").json()["lease"]["last_heard"]
    return heard


def is_heard_after(attached: GroundsCluster, moment: str) -> bool:
    return last_heard(attached) > moment


def await_beats(attached: GroundsCluster) -> None:
    for _ in range(BEATS):
        eventually(partial(is_heard_after, attached, last_heard(attached)))


def assert_never_silent_nor_forked(attached: GroundsCluster, *, since: str = "edge.joined") -> None:
    """Args: since: the last event of that kind."""
    kinds = attached.kinds()
    assert since in kinds
    later = kinds[len(kinds) - 1 - kinds[::-1].index(since) :]
    assert not {"lease.expired", "edge.forked"} & set(later), later


def test_a_pod_that_the_centre_has_answered_takes_over_and_tells_what_runs_there(attached: GroundsCluster) -> None:
    grounds = attached.grounds
    anchor = grounds.cluster.find("clusterrole", "edgewright-anchor")["metadata"]["uid"]
    said = attached.status()
    assert (said["versions"]["flux"], said["flux_is_ours"], said["anchor"]) == (FLUX_RELEASE, True, anchor)
    [old] = pods(grounds)
    deploy(grounds, NEXT)
    eventually(lambda: [*pods(grounds).values()] == [NEXT])
    assert old not in pods(grounds)
    eventually(lambda: attached.program("agent-image") == NEXT)
    await_beats(attached)
    assert any(f"its agent runs the image {NEXT}" in each["message"] for each in attached.events())
    assert attached.program("agent-image") == NEXT
    assert_never_silent_nor_forked(attached)


@pytest.mark.parametrize("fault", [NO_WAY, ENDS_AT_ONCE])
def test_a_pod_that_cannot_call_replaces_none_that_does(attached: GroundsCluster, fault: str) -> None:
    grounds = attached.grounds
    break_image(grounds, fault)
    old, starts = pods(grounds), grounds.kubelet.starts(AGENT)
    deploy(grounds, MUTE)
    eventually(lambda: grounds.kubelet.starts(AGENT) > starts)
    await_beats(attached)
    there = pods(grounds)
    assert sorted(there.values()) == sorted([*old.values(), MUTE]) and old.items() <= there.items()
    assert attached.program("agent-image") == offered(grounds)

    deploy(grounds, offered(grounds))
    eventually(lambda: pods(grounds) == old)
    await_beats(attached)
    assert pods(grounds) == old, "it is the same pod, which nobody has interrupted"
    assert_never_silent_nor_forked(attached)


def test_an_upgrade_from_the_centre_is_proven_by_the_agent_that_it_brings(attached: GroundsCluster) -> None:
    grounds = attached.grounds
    offer(attached, NEXT)
    begun = attached.upgrade("agent")
    assert (begun["state"], begun["version"], begun["before"]) == ("under_way", "next", "test")
    eventually(lambda: attached.last_upgrade()["state"] == "done", seconds=LETTING_GO)
    eventually(lambda: [*pods(grounds).values()] == [NEXT])
    assert NEXT in committed_file(grounds.centre, attached.uuid, "edo/agent/agent.yaml")
    await_beats(attached)
    eventually(lambda: attached.program("agent-image") == NEXT)
    eventually(lambda: attached.condition("Synced") == ("True", "UpToDate"), seconds=LETTING_GO)
    assert_never_silent_nor_forked(attached, since="upgrade.begun")


def test_an_agent_that_cannot_call_goes_back_to_the_image_before_and_is_never_missed(
    attached: GroundsCluster,
) -> None:
    grounds = attached.grounds
    break_image(grounds, NO_WAY)
    old, [working] = pods(grounds), pods(grounds).values()
    offer(attached, MUTE)
    attached.upgrade("agent")
    eventually(lambda: sorted(pods(grounds).values()) == sorted([working, MUTE]), seconds=LETTING_GO)
    await_beats(attached)
    assert attached.last_upgrade()["state"] == "under_way"

    move_back(grounds.centre, WAITED, timedelta(minutes=20))
    eventually(lambda: attached.last_upgrade()["state"] == "fell_back", seconds=LETTING_GO)
    assert attached.last_upgrade()["reason"]
    eventually(lambda: pods(grounds) == old, seconds=LETTING_GO)
    assert working in committed_file(grounds.centre, attached.uuid, "edo/agent/agent.yaml")
    await_beats(attached)
    assert (pods(grounds), attached.program("agent-image")) == (old, working)
    assert_never_silent_nor_forked(attached, since="upgrade.begun")
