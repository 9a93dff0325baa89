"""A status stays as large as the centre takes, however large the edge is, and says what it leaves out."""

import json
from dataclasses import replace
from typing import Any

import pytest

from api.bodies import STATUS_JSON
from api.json_text import parse_json
from edgewright.agent.flux_conditions import FluxCondition
from edgewright.agent.observation import Fetched, Host, Kustomized, Observation, Released
from edgewright.agent.opening import MOST_TOLD, Opening, Stage
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.opened_secrets import EdgeState, opened_secrets

LONG = "m" * 1000
SMALL = Observation(hosts=(Host("press-1", True, True),), certificate="PEM", versions={"agent": "1"})


def hosts(number: int) -> tuple[Host, ...]:
    """With control planes among them that come last by name."""
    planes = (Host("zz-plane-1", True, True), Host("zz-plane-2", True, False))
    names = (f"node-{each:05}.hall-7.plant.example.org" for each in range(number))
    workers = (Host(name, False, True, "arm64", "v1.33.1+k3s1", "Debian GNU/Linux 13") for name in names)
    return (*workers, *planes)


def ready(status: str) -> tuple[FluxCondition, ...]:
    return (FluxCondition("Ready", status, "ReconciliationSucceeded", LONG),)


def kustomizations(number: int, status: str) -> tuple[Kustomized, ...]:
    own = Kustomized("main", "self-link", applied="main@sha1:a", conditions=ready("True"))
    others = (Kustomized(f"part-{each:04}", "other", conditions=ready(status)) for each in range(number))
    return (own, *others)


def taken(observation: Observation) -> dict[str, Any]:
    """The status, if the centre would take it."""
    body = json.dumps(observation.to_json()).encode()
    assert len(body) <= STATUS_JSON.octets
    status: dict[str, Any] = parse_json(body, STATUS_JSON)
    return status


def test_a_small_edge_leaves_nothing_out() -> None:
    assert "omitted" not in taken(SMALL)


def test_details_of_hosts_go_before_hosts() -> None:
    status = taken(replace(SMALL, hosts=hosts(600)))
    assert status["omitted"] == {"host_details": 602}
    assert len(status["hosts"]) == 602
    assert status["hosts"][0] == {"hostname": hosts(1)[0].hostname, "control_plane": False, "ready": True}


def test_of_thousands_of_hosts_the_first_are_named_and_the_others_counted() -> None:
    every = hosts(20_000)
    ill = (*every[:-3], replace(every[-3], ready=False), *every[-2:])
    status = taken(replace(SMALL, hosts=ill))
    named = [host["hostname"] for host in status["hosts"]]
    assert named[:3] == ["zz-plane-1", "zz-plane-2", every[0].hostname]
    assert len(named) > 500
    assert status["omitted"]["hosts"] == len(every) - len(named)
    assert status["omitted"]["hosts_not_ready"] == 1
    assert (status["kubeseal_cert"], status["versions"]) == ("PEM", {"agent": "1"})


def test_which_hosts_are_named_does_not_depend_on_which_are_ready() -> None:
    every = hosts(5000)
    before = taken(replace(SMALL, hosts=every))
    after = taken(replace(SMALL, hosts=(replace(every[0], ready=False), *every[1:])))
    assert [host["hostname"] for host in before["hosts"]] == [host["hostname"] for host in after["hosts"]]


def test_what_flux_says_at_length_goes_first() -> None:
    flux = kustomizations(80, "False")
    status = taken(replace(SMALL, sources=(Fetched("self-link"),), kustomizations=flux))
    assert status["omitted"] == {"flux_messages": 81}
    assert len(status["flux"]["kustomizations"]) == 81


@pytest.mark.parametrize("number", [400, 3000])
def test_of_flux_what_is_ready_goes_and_its_own_source_stays(number: int) -> None:
    flux = (*kustomizations(number, "True"), Kustomized("ill", "other", conditions=ready("False")))
    status = taken(replace(SMALL, kustomizations=flux))
    assert [each["name"] for each in status["flux"]["kustomizations"]] == ["main", "ill"]
    assert status["omitted"]["flux_objects"] == number
    assert [host["hostname"] for host in status["hosts"]] == ["press-1"]


def test_even_thousands_of_failures_of_flux_are_not_too_much() -> None:
    status = taken(replace(SMALL, kustomizations=kustomizations(3000, "False")))
    assert status["flux"]["kustomizations"][0]["name"] == "main"
    assert status["omitted"]["flux_objects"] > 2000


def test_the_centres_release_stays_however_much_of_an_operators_fails() -> None:
    own = (Released("edge-cluster", "edge-cluster", conditions=ready("True")),)
    theirs = tuple(Released(f"r-{each:04}" * 30, conditions=ready("False"), own=False) for each in range(400))
    status = taken(replace(SMALL, kustomizations=kustomizations(3000, "False"), releases=own, others=theirs))
    assert [each["name"] for each in status["flux"]["releases"]] == ["edge-cluster"]


def test_which_secrets_are_opened_goes_before_hosts_and_what_is_refused_stays() -> None:
    opened = [opening(f"s{each}", f"{each:08}", Stage.OPENED) for each in range(MOST_TOLD)]
    refused = opening("taken", "x" * 8, Stage.REFUSED, "It is taken.")
    small = taken(replace(SMALL, openings=(*opened, refused)))
    assert "omitted" not in small and len(small["secrets"]["opened"]) == 8 * MOST_TOLD
    assert len(small["secrets"]["templates"]["opened"]) == 4 * MOST_TOLD
    status = taken(replace(SMALL, hosts=hosts(600), openings=(*opened, refused)))
    assert status["omitted"] == {"host_details": 602, "secrets": MOST_TOLD, "secret_templates": MOST_TOLD}
    assert len(status["hosts"]) == 602
    assert [each["name"] for each in status["secrets"]["refused"]] == ["taken"]
    read = opened_secrets(read_edge_status(status))
    assert read is not None
    assert read.state_of("00000001", "tttt")[0] is EdgeState.UNKNOWN
    assert read.state_of("x" * 8, "tttt") == (EdgeState.REFUSED, "It is taken.")
    assert read.state_with_template("x" * 8, "tttt") is EdgeState.REFUSED


def test_templates_of_secrets_go_before_details_of_hosts() -> None:
    opened = [opening(f"s{each}", f"{each:08}", Stage.OPENED) for each in range(MOST_TOLD)]
    status = taken(replace(SMALL, hosts=hosts(150), openings=tuple(opened)))
    assert status["omitted"] == {"secret_templates": MOST_TOLD}
    assert "arch" in status["hosts"][0]
    read = opened_secrets(read_edge_status(status))
    assert read is not None
    assert read.state_of("00000001", "tttt")[0] is EdgeState.OPENED
    assert read.state_with_template("00000001", "tttt") is EdgeState.UNKNOWN


def opening(name: str, digest: str, stage: Stage, sentence: str = "") -> Opening:
    return Opening("default", name, digest, stage, sentence, template="tttt")


def test_of_many_drivers_those_that_fail_are_told_and_namespaces_go_first() -> None:
    """250 namespaces with secrets, of which the last one alone is missing on the edge."""
    drivers = [
        Kustomized(f"edge-secrets-{'n' * 40}-{each:03}", "self-link", applied="main@sha1:a", conditions=ready("True"))
        for each in range(249)
    ]
    failing = Kustomized("edge-secrets-zzz", "self-link", conditions=ready("False"))
    names = tuple(f"{'n' * 59}-{each:03}" for each in range(250))
    status = taken(replace(SMALL, kustomizations=(*drivers, failing), namespaces=names))
    assert status["flux"]["kustomizations"][0]["name"] == "edge-secrets-zzz"
    assert "namespaces" not in status
    assert status["omitted"]["namespaces"] == 250
