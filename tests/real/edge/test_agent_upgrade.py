"""The agent's Deployment gets another image: its pod takes over once the centre has answered it, and never before."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from edge_cluster.grounds import IMAGE, LETTING_GO, NAMESPACE
from edge_cluster.kubelet import Program
from edge_cluster.site import AGENT
from free_ports import free_port
from go_programs import FLUX_RELEASE
from supervised import eventually

from edgewright.bootstrap import AgentPod, render_agent
from edgewright.domain.wellknown import APP_CLUSTER_STATUS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edge_cluster.contents import Contents
    from edge_cluster.grounds import Grounds, GroundsCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

NEXT, MUTE = "registry.example.com/edgewright:next", "registry.example.com/edgewright:mute"
SELECTOR = "app.kubernetes.io/name=edgewright-agent"
BEATS = 4
"""So many heartbeats are the old pod's, beyond doubt: they come every five seconds."""


@pytest.fixture
def attached(grounds: Grounds, before: Contents) -> Iterator[GroundsCluster]:
    """A cluster whose edge runs the agent from ``IMAGE``."""
    attached = grounds.attach("upgraded")
    eventually(lambda: image_told(attached) == IMAGE)
    yield attached
    attached.delete()
    eventually(attached.is_gone, seconds=LETTING_GO)
    eventually(grounds.comparison(before), seconds=LETTING_GO)


def deploy(grounds: Grounds, image: str) -> None:
    """Applies the agent's manifests, as Flux does."""
    manifests = yaml.safe_load_all(render_agent(AgentPod(image), namespace=NAMESPACE))
    [deployment] = [one for one in manifests if one["metadata"]["name"] == AGENT and one["kind"] == "Deployment"]
    how = ("--server-side", "--force-conflicts", "--field-manager=kustomize-controller")
    grounds.cluster.kubectl("apply", *how, "--filename", "-", given=json.dumps(deployment))


def status(attached: GroundsCluster) -> dict[str, Any]:
    """What the edge says of itself."""
    answer = attached.grounds.centre.api("GET", f"/v1/app/{APP_CLUSTER_STATUS}/object/{attached.uuid}")
    return dict(answer.json()) if answer.is_success else {}


def image_told(attached: GroundsCluster) -> str | None:
    versions: dict[str, str] = status(attached).get("versions", {})
    return versions.get("agent-image")


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


def await_beats(attached: GroundsCluster, number: int = BEATS) -> None:
    for _ in range(number):
        eventually(partial(is_heard_after, attached, last_heard(attached)))


def assert_never_silent_nor_forked(attached: GroundsCluster) -> None:
    assert not {"lease.expired", "edge.forked"} & set(attached.kinds())


def test_a_pod_that_the_centre_has_answered_takes_over_and_tells_what_runs_there(attached: GroundsCluster) -> None:
    grounds = attached.grounds
    anchor = grounds.cluster.find("clusterrole", "edgewright-anchor")["metadata"]["uid"]
    said = status(attached)
    assert (said["versions"]["flux"], said["flux_is_ours"], said["anchor"]) == (FLUX_RELEASE, True, anchor)
    [old] = pods(grounds)
    deploy(grounds, NEXT)
    eventually(lambda: [*pods(grounds).values()] == [NEXT])
    assert old not in pods(grounds)
    eventually(lambda: image_told(attached) == NEXT)
    await_beats(attached)
    assert any(f"its agent runs from {NEXT}" in each["message"] for each in attached.events())
    assert image_told(attached) == NEXT
    assert_never_silent_nor_forked(attached)


@pytest.mark.parametrize("fault", ["it has no way to the centre", "it ends at once"])
def test_a_pod_that_cannot_call_replaces_none_that_does(attached: GroundsCluster, fault: str) -> None:
    grounds = attached.grounds
    agent = grounds.programs[AGENT]
    nobody = f"http://127.0.0.1:{free_port()}"
    grounds.programs[MUTE] = (
        replace(agent, variables={**agent.variables, "HTTP_PROXY": nobody, "HTTPS_PROXY": nobody})
        if "no way" in fault
        else Program([sys.executable, "-c", "raise SystemExit(1)"])
    )
    old, starts = pods(grounds), grounds.kubelet.starts(AGENT)
    deploy(grounds, MUTE)
    eventually(lambda: grounds.kubelet.starts(AGENT) > starts)
    await_beats(attached)
    there = pods(grounds)
    assert sorted(there.values()) == sorted([IMAGE, MUTE]) and old.items() <= there.items()
    assert image_told(attached) == IMAGE

    deploy(grounds, IMAGE)
    eventually(lambda: pods(grounds) == old)
    await_beats(attached)
    assert pods(grounds) == old, "it is the same pod, which nobody has interrupted"
    assert_never_silent_nor_forked(attached)
