"""What drives a real edge is taken away, a right of its agent, a key: it is told unasked, and heals."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from edge_cluster.agent import NAMESPACE
from edge_cluster.site import KUSTOMIZE
from supervised import eventually

import edgewright.agent
from edgewright.domain import wellknown as wk

if TYPE_CHECKING:
    from collections.abc import Callable

    from edge.conftest import Edge
    from edge_cluster.controllers import SealedSecrets
    from edge_cluster.kubelet import Kubelet

    from edgewright.domain.json import JsonObject

pytestmark = [pytest.mark.real, pytest.mark.timeout(900), pytest.mark.usefixtures("flux")]

RIGHTS = Path(edgewright.agent.__file__).with_name("rbac.yaml")
SLOW = 180.0
"""Seconds that Flux may take for a commit."""
DRIVEN = frozenset({"UpToDate", "Progressing", "ReleaseFailed"})
"""Reasons of *Synced* where all that is committed is applied; what becomes of the release is another matter."""
WITHOUT_FINALIZER = ("--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
"""Nobody is there to do a controller's part."""
TWO_BEATS = 2 * 5 + 5
"""Seconds in which the edge has called twice, and some for the machine."""


@pytest.fixture(autouse=True)
def whole(edge: Edge) -> None:
    """Nothing is wrong before."""
    eventually(lambda: is_driven(edge), seconds=SLOW)


@pytest.fixture
def fresh_line(edge: Edge, attached: Callable[..., Edge], tmp_path: Path) -> Callable[[], object]:
    """Pastes another bootstrap line of the same cluster."""
    return lambda: attached(edge.centre, edge.cluster, edge.agent, edge.uuid, tmp_path)


def is_driven(edge: Edge) -> bool:
    return edge.condition("Synced")[1] in DRIVEN


def delete(edge: Edge, *what: str) -> None:
    edge.cluster.kubectl("delete", *what, "--namespace", NAMESPACE)


def ask_to_apply(edge: Edge) -> None:
    """Flux does at once what it does at its interval."""
    asked = f"reconcile.fluxcd.io/requestedAt={time.time()}"
    edge.cluster.kubectl("annotate", "kustomization", "self-link", asked, "--overwrite", "--namespace", NAMESPACE)


def applied_by_self_link(edge: Edge) -> set[str]:
    """Names, by Flux's own inventory."""
    found = edge.cluster.find("kustomization", "self-link", namespace=NAMESPACE) or {}
    entries = found.get("status", {}).get("inventory", {}).get("entries", [])
    return {each["id"].split("_")[1] for each in entries}


def render(edge: Edge, path: str, template: JsonObject) -> None:
    """Has the edge fetch what becomes of another template."""
    before = edge.shown()["revisions"]["desired"]
    assert edge.centre.api("PUT", path, json=template).status_code < 300
    eventually(lambda: edge.shown()["revisions"]["desired"] != before)
    edge.cluster.fetch_now()


def soon(holds: Callable[[], bool]) -> None:
    """Within two beats."""
    began = time.monotonic()
    eventually(holds)
    assert time.monotonic() - began < TWO_BEATS


@pytest.mark.parametrize(
    ("kind", "name"),
    [("GitRepository", "self-link"), ("Kustomization", "flux-system"), ("Kustomization", "self-link")],
)
def test_a_driver_that_is_gone_is_told_within_two_beats_and_a_fresh_line_heals_it(
    edge: Edge, fresh_line: Callable[[], object], kind: str, name: str
) -> None:
    """With the Kustomization `self-link` goes what that has applied."""
    delete(edge, kind, name)
    soon(lambda: f"{kind} {name} is missing" in edge.message("Synced"))
    assert edge.condition("Synced") == ("False", "DriverMissing")
    assert edge.condition("Healthy") == ("False", "DriverMissing")
    fresh_line()
    eventually(lambda: is_driven(edge), seconds=SLOW)


def test_what_flux_has_applied_is_missed_by_an_agent_that_starts_after_it_was_deleted(
    edge: Edge, flux: Kubelet
) -> None:
    """Flux, which might be about to apply it once more, is away for so long."""
    release = f"edge-cluster-{edge.uuid}"
    eventually(lambda: {"helm-charts", release, "by-hand"} <= applied_by_self_link(edge), seconds=SLOW)
    with flux.without(KUSTOMIZE):
        edge.agent.kill()
        for kind, name in (("helmrelease", release), ("kustomization", "by-hand")):
            edge.cluster.kubectl("patch", kind, name, "--namespace", NAMESPACE, *WITHOUT_FINALIZER)
            delete(edge, kind, name, "--ignore-not-found")
        delete(edge, "gitrepository", "helm-charts")
        edge.agent.start()
        soon(lambda: edge.condition("Synced") == ("False", "DriverMissing"))
        told = edge.message("Synced")
    for name in ("GitRepository helm-charts", f"HelmRelease {release}", "Kustomization by-hand"):
        assert name in told, told
    assert "Flux puts it back at its next interval" in told, told
    ask_to_apply(edge)
    eventually(lambda: is_driven(edge), seconds=SLOW)


def test_what_the_agent_may_not_see_is_not_taken_for_there_and_is_missed_once_it_may(edge: Edge) -> None:
    """A template brings a kind that the line gives the agent no right to."""
    path = f"/v1/app/{wk.APP_FLUX_TEMPLATE}/object/{wk.OBJECT_FLUX_TEMPLATE}"
    before = edge.centre.api("GET", path).json()
    named = {"name": "settings", "namespace": NAMESPACE}  # without one, Flux would put it into `default`
    settings: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"a": "b"}}
    render(edge, path, {**before, "settings.yaml": [settings]})
    right = f"get on configmaps in {NAMESPACE}"
    eventually(lambda: right in edge.message("Healthy"), seconds=SLOW)
    assert edge.condition("Healthy") == ("False", "RightMissing")
    assert "Grant it to the service account edgewright-agent" in edge.message("Healthy")
    role = ("--namespace", NAMESPACE)
    edge.cluster.kubectl("create", "role", "settings", "--verb=get", "--resource=configmaps", *role)
    account = f"--serviceaccount={NAMESPACE}:edgewright-agent"
    edge.cluster.kubectl("create", "rolebinding", "settings", "--role=settings", account, *role)
    eventually(lambda: right not in edge.message("Healthy"))
    edge.agent.kill()
    delete(edge, "configmap", "settings")
    edge.agent.start()
    soon(lambda: f"ConfigMap settings in {NAMESPACE} is missing" in edge.message("Synced"))
    assert edge.condition("Synced") == ("False", "DriverMissing")
    ask_to_apply(edge)
    eventually(lambda: is_driven(edge), seconds=SLOW)
    render(edge, path, before)
    eventually(lambda: edge.cluster.find("configmap", "settings", namespace=NAMESPACE) is None, seconds=SLOW)
    eventually(lambda: is_driven(edge), seconds=SLOW)


def test_a_right_that_is_taken_away_makes_the_revision_unknown_until_it_is_back(edge: Edge) -> None:
    delete(edge, "rolebinding", "edgewright-agent")
    soon(lambda: edge.condition("Synced") == ("Unknown", "CannotBeKnown"))
    assert f"list on kustomizations in {NAMESPACE}" in edge.message("Synced"), edge.message("Synced")
    assert edge.is_available()
    edge.cluster.kubectl.apply(RIGHTS.read_text())
    eventually(lambda: is_driven(edge), seconds=SLOW)


def test_the_secret_of_flux_is_missed_and_no_rotation_is_begun_without_it(
    edge: Edge, fresh_line: Callable[[], object]
) -> None:
    delete(edge, "secret", "flux-secrets")
    eventually(lambda: edge.condition("Synced") == ("False", "DriverMissing"))
    path = f"/v1/cluster/{edge.uuid}/credential/rotate"
    answer = edge.centre.api("POST", path, json={"roles": ["flux"]})
    assert (answer.status_code, answer.json()["code"]) == (409, "rotation_impossible"), answer.text
    fresh_line()
    edge.cluster.fetch_now()
    eventually(lambda: is_driven(edge), seconds=SLOW)
    assert edge.centre.api("POST", path, json={"roles": ["flux"]}).status_code == 202


def test_the_agents_own_secret_is_missed_while_it_runs_and_a_fresh_one_is_taken_up(
    edge: Edge, fresh_line: Callable[[], object]
) -> None:
    before = edge.cluster.find("secret", "edgewright-agent", namespace=NAMESPACE)["data"]["password"]
    delete(edge, "secret", "edgewright-agent")
    eventually(lambda: edge.condition("Healthy") == ("False", "AgentSecretMissing"))
    assert "a restart of the agent would lose the edge" in edge.message("Healthy")
    assert edge.is_available(), "it goes on with what it holds"
    fresh_line()
    eventually(lambda: edge.condition("Healthy")[1] != "AgentSecretMissing", seconds=120)
    assert edge.cluster.find("secret", "edgewright-agent", namespace=NAMESPACE)["data"]["password"] != before
    edge.agent.kill()
    edge.agent.start()
    active = edge.agent.states("centre").count("active")
    eventually(lambda: edge.agent.states("centre").count("active") > active, seconds=120)
    eventually(edge.is_available)


def test_a_key_that_is_lost_is_noticed_unasked_and_the_value_is_named_until_it_is_entered_again(
    edge: Edge, sealed_secrets: SealedSecrets
) -> None:
    held = sealed_secrets.keys()
    put(edge, "old", b"s3cr3t")
    edge.cluster.fetch_now()
    eventually(lambda: decrypted(edge, "old") == b"s3cr3t")
    sealed_secrets.renew_key()
    eventually(lambda: edge.condition("SealingKeyCurrent") == ("True", "Current"))
    put(edge, "new", b"kept")
    sealed_secrets.lose_keys(*held)
    eventually(lambda: edge.condition("SealingKeyCurrent") == ("False", "Unreadable"), seconds=120)
    assert "default/old/password" in edge.message("SealingKeyCurrent")
    document = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/secret").json()
    assert {each["name"]: each["opens"] for each in document["items"]} == {"old": False, "new": None}
    assert document["must_reenter"] == ["default/old/password"]
    put(edge, "old", b"entered again")
    eventually(lambda: edge.condition("SealingKeyCurrent") == ("True", "Current"), seconds=120)
    edge.cluster.fetch_now()
    eventually(lambda: decrypted(edge, "old") == b"entered again")


def put(edge: Edge, name: str, value: bytes) -> None:
    answer = edge.centre.api("PUT", f"/v1/cluster/{edge.uuid}/secret/default/{name}/password", content=value)
    assert answer.status_code == 204, answer.text


def decrypted(edge: Edge, name: str) -> bytes | None:
    found = edge.cluster.find("secret", name)
    return None if found is None else base64.b64decode(found["data"]["password"])
