"""An edge replaces its credentials: on a real Kubernetes cluster, a real centre, and with the agent's own rights."""

from __future__ import annotations

import base64
import json
import secrets
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest
from edge_cluster.agent import NAMESPACE
from edge_cluster.site import SOURCE
from loopback import PLAIN
from supervised import eventually

if TYPE_CHECKING:
    from edge.conftest import Edge
    from edge_cluster.kubelet import Kubelet

pytestmark = [pytest.mark.real, pytest.mark.timeout(900), pytest.mark.usefixtures("flux")]

OWN, FLUX = "edgewright-agent", "flux-secrets"


def password(edge: Edge, name: str, key: str = "password") -> str | None:
    held = edge.cluster.find("secret", name, namespace=NAMESPACE)["data"]
    return base64.b64decode(held[key]).decode() if key in held else None


def passwords(edge: Edge) -> tuple[str, str]:
    own, flux = password(edge, OWN), password(edge, FLUX)
    assert own and flux
    return own, flux


def let_in(edge: Edge, own_or_flux: str, path: str) -> int:
    """What the gateway answers to whoever has that password."""
    return httpx.request(
        "POST" if "heartbeat" in path else "GET",
        f"{edge.centre.endpoints()['gateway']}{path}",
        auth=(edge.uuid, own_or_flux),
        **PLAIN,
    ).status_code


def ask(edge: Edge) -> None:
    answer = edge.centre.api("POST", f"/v1/cluster/{edge.uuid}/credential/rotate")
    assert (answer.status_code, answer.json()) == (202, {"roles": ["agent", "flux"]}), answer.text


def rotations(edge: Edge) -> list[str]:
    """The roles whose successor was used for the first time, in order."""
    events = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/timeline").json()["items"]
    return sorted(event["actor"] for event in events if event["kind"] == "credential.rotated")


def has_changed_more(edge: Edge, before: int) -> bool:
    """Whether the agent has said more of Flux's credential than that often."""
    return len(edge.agent.states("flux_credential")) > before


def test_an_edge_replaces_what_an_operator_wants_replaced(edge: Edge, flux: Kubelet) -> None:
    assert edge.cluster.fetch_now().startswith("stored artifact")
    before, done = passwords(edge), rotations(edge)
    with flux.paused(SOURCE):
        ask(edge)
        eventually(lambda: all(new != old for new, old in zip(passwords(edge), before, strict=True)))
        eventually(lambda: rotations(edge) == sorted([*done, "agent"]))
        assert let_in(edge, before[0], "/v1/agent/heartbeat") == 401
        refs = f"/uuid/{edge.uuid}/info/refs?service=git-upload-pack"
        assert let_in(edge, before[1], refs) == 200, "Flux has not used the new one yet"
    new = passwords(edge)
    edge.cluster.fetch_now()
    assert let_in(edge, before[1], refs) == 401
    assert rotations(edge) == sorted([*done, "agent", "flux"])
    assert (password(edge, OWN, "password.previous"), password(edge, OWN, "password.next")) == (before[0], None)
    assert edge.is_available() and edge.condition("Joined") == ("True", "Reported")
    logged = str(edge.agent.log())
    assert not [each for each in (*before, *new) if each in logged]


def test_an_agent_that_is_killed_again_and_again_ends_with_what_the_centre_knows(edge: Edge) -> None:
    assert edge.cluster.fetch_now().startswith("stored artifact")
    before, done = passwords(edge), rotations(edge)
    ask(edge)
    for _ in range(3):
        changes = len(edge.agent.states("flux_credential"))
        eventually(partial(has_changed_more, edge, changes))
        edge.agent.kill()
        edge.agent.start()
    eventually(lambda: passwords(edge)[0] != before[0] and passwords(edge)[1] != before[1])
    eventually(lambda: "agent" in Counter(rotations(edge)) - Counter(done))
    edge.cluster.fetch_now()
    assert rotations(edge) == sorted([*done, "agent", "flux"])
    eventually(edge.is_available)


def test_an_edge_whose_password_the_centre_does_not_know_tries_the_one_before(edge: Edge) -> None:
    own = password(edge, OWN)
    assert own
    wrong = f"ewa_{secrets.token_hex(32)}"
    generation = password(edge, OWN, "generation")
    data = {"password": wrong, "password.previous": own, "password.generation": generation}
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in data.items()}
    edge.cluster.kubectl(
        *("patch", "secret", OWN, "--namespace", NAMESPACE, "--type=merge"),
        *("--patch", json.dumps({"data": encoded})),
    )
    edge.agent.kill()
    edge.agent.start()
    eventually(lambda: password(edge, OWN) == own)
    assert password(edge, OWN, "password.previous") == wrong
    eventually(edge.is_available)


def test_what_flux_uses_and_the_centre_does_not_know_is_replaced(edge: Edge) -> None:
    wrong = base64.b64encode(f"ewf_{secrets.token_hex(32)}".encode()).decode()
    edge.cluster.kubectl(
        *("patch", "secret", FLUX, "--namespace", NAMESPACE, "--type=merge"),
        *("--patch", json.dumps({"data": {"password": wrong}})),
    )
    eventually(lambda: password(edge, FLUX) != base64.b64decode(wrong).decode())
    assert edge.cluster.fetch_now().startswith("stored artifact")
