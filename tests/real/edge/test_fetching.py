"""What is wanted comes at once, because the agent asks Flux to fetch; its token can do nothing else to Flux.

Repositories of people's own come from the same centre, at Flux's own interval.
"""

import base64
import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from edge_cluster.cluster import Cluster
from edge_cluster.desk import OwnRepository, desk_git
from edge_cluster.grounds import LETTING_GO, NAMESPACE, Grounds, GroundsCluster, told_by
from edge_cluster.site import AGENT, KUSTOMIZE, SOURCE
from supervised import eventually

from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.flux_bundle import FLUX_NAMESPACE
from edgewright.domain.wellknown import APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE, REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage
from edgewright.settings import Settings

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

REQUESTED = "reconcile.fluxcd.io/requestedAt"
SOURCES = f"/apis/source.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/gitrepositories"
FLUX_TEMPLATE = f"/v1/app/{APP_FLUX_TEMPLATE}/object/{OBJECT_FLUX_TEMPLATE}"
SELF_LINK = f"{SOURCES}/self-link"
LEASE_SECONDS = 300
"""So long that heartbeats are held for 50 s, as on most edges: what comes sooner does not come with the next one."""
SHORTEST_INTERVAL = 180.0
"""Seconds after which Flux looks by itself, at first; 10 minutes once it is asked."""
FLUX_IS_EARLY = 0.1
"""Share of its interval by which Flux is early at most, so as not to fetch all sources at once: twice the real."""

DRIVEN = frozenset({"UpToDate", "Progressing", "ReleaseFailed"})
"""Reasons of *Synced* where all that is committed is applied; what becomes of the release is another matter."""


@pytest.fixture(scope="module")
def attached(grounds: Grounds) -> Iterator[GroundsCluster]:
    """An edge that was attached by its line."""
    attached = grounds.attach("press-shop", lease_seconds=LEASE_SECONDS)
    yield attached
    attached.delete(force="true")
    eventually(attached.is_gone, seconds=LETTING_GO)


@pytest.fixture(scope="module")
def thief(attached: GroundsCluster) -> Iterator[httpx.Client]:
    """Has the token of the agent's account."""
    cluster = attached.grounds.cluster
    token = cluster.account_token(NAMESPACE, AGENT)
    authority = ssl.create_default_context(cafile=cluster.authority.identity.certificate)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=cluster.url, headers=headers, verify=authority, trust_env=False, timeout=60) as client:
        yield client


def source(attached: GroundsCluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = attached.grounds.cluster.find("gitrepository", name, namespace=NAMESPACE)
    return found


def self_link(attached: GroundsCluster) -> dict[str, Any]:
    return source(attached, "self-link")


def requested(attached: GroundsCluster, name: str) -> str | None:
    """The newest request to fetch."""
    asked: str | None = source(attached, name)["metadata"].get("annotations", {}).get(REQUESTED)
    return asked


def requesters(attached: GroundsCluster, name: str) -> set[str]:
    """Who has asked Flux to fetch."""
    fields = source(attached, name)["metadata"]["managedFields"]
    return {each["manager"] for each in fields if REQUESTED in str(each)}


def handled(attached: GroundsCluster, name: str) -> str | None:
    """The newest request to fetch, once Flux has fetched for it; None: not yet, as the agent may have asked again."""
    now = source(attached, name)
    asked: str | None = now["metadata"].get("annotations", {}).get(REQUESTED)
    return asked if now["status"].get("lastHandledReconcileAt") == asked else None


def repositories(attached: GroundsCluster) -> BareGitServer:
    """Those of the centre."""
    return BareGitServer(Settings(home=attached.grounds.centre.home).effective_git_root)


def has_secret(cluster: Cluster, name: str) -> bool:
    return cluster.find("secret", name) is not None


def has_handled_another(attached: GroundsCluster, before: str | None, *, name: str = "self-link") -> bool:
    """Whether Flux has done what was asked for after that."""
    return handled(attached, name) not in {None, before}


def test_a_secret_comes_because_the_agent_asks_for_it(attached: GroundsCluster) -> None:
    """Flux would fetch once in some minutes: the fetch that brings it is one that somebody has asked for."""
    cluster, began = attached.grounds.cluster, time.monotonic()
    for name in ("one", "two"):
        before = requested(attached, "self-link")
        attached.put_secret("default", name, b"s3cret")
        eventually(partial(has_secret, cluster, name), seconds=LETTING_GO)
        opened = time.monotonic()
        eventually(partial(has_handled_another, attached, before), seconds=LETTING_GO)
    # Flux has fetched for the first after we began, so by itself it would have fetched an interval after that.
    assert opened - began < SHORTEST_INTERVAL * (1 - FLUX_IS_EARLY)
    assert requesters(attached, "self-link") == {AGENT}


def test_new_charts_come_because_the_agent_asks_for_them(attached: GroundsCluster) -> None:
    """What a newer version of the centre publishes at its start."""
    git = repositories(attached)
    before, head = requested(attached, "helm-charts"), git.head(REPOSITORY_HELM_CHARTS)
    message = CommitMessage("Publish a note", "test")
    commit = git.commit(REPOSITORY_HELM_CHARTS, {"NOTE.md": b"New charts.\n"}, message, expected_head=head)
    eventually(partial(has_handled_another, attached, before, name="helm-charts"), seconds=LETTING_GO)
    assert source(attached, "helm-charts")["status"]["artifact"]["revision"] == f"main@sha1:{commit}"
    assert requesters(attached, "helm-charts") == {AGENT}


def looks_seldom(attached: GroundsCluster) -> bool:
    """Whether the commit has arrived that the centre makes once the agent asks."""
    interval: str = self_link(attached)["spec"]["interval"]
    return interval == "10m"


def test_flux_itself_looks_seldom_once_it_is_asked(attached: GroundsCluster) -> None:
    eventually(partial(looks_seldom, attached), seconds=LETTING_GO)


def heartbeats_answered(attached: GroundsCluster) -> float:
    """By the centre, so far."""
    metric = 'edgewright_http_request_seconds_count{method="POST",route="/v1/agent/heartbeat"} '
    shown = attached.grounds.centre.api("GET", "/metrics").text.splitlines()
    return next(float(line.removeprefix(metric)) for line in shown if line.startswith(metric))


def is_told(attached: GroundsCluster, commit: str | None) -> bool:
    """Whether the centre knows that the edge has applied a commit, and that nothing is missing."""
    observed: str = attached.api("GET").json()["revisions"]["observed"]
    return observed == commit and attached.condition("Synced")[0] == "True"


def test_the_centre_hears_at_once_that_it_was_applied(attached: GroundsCluster) -> None:
    """By a status, while the answer to the heartbeat that asked for it is held back already: no other one is due."""
    git, cluster = repositories(attached), UUID(attached.uuid)
    eventually(partial(looks_seldom, attached), seconds=LETTING_GO)
    eventually(lambda: is_told(attached, git.head(cluster)), seconds=LETTING_GO)
    attached.push("recipe.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: recipe, namespace: default}}\n")
    eventually(lambda: attached.grounds.cluster.find("configmap", "recipe") is not None, seconds=LETTING_GO)
    answered = heartbeats_answered(attached)
    eventually(lambda: is_told(attached, git.head(cluster)))
    assert heartbeats_answered(attached) == answered


def refusal(*arguments: str | Path, user: str, secret: str) -> str:
    """Why the centre refuses git."""
    with pytest.raises(subprocess.CalledProcessError) as refused:
        desk_git(*arguments, user=user, secret=secret)
    return str(refused.value.stderr)


def recipe_of(line: str) -> str:
    """A manifest."""
    metadata = {"name": "line", "namespace": "default"}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"recipe": line}})


def test_a_repository_of_our_own_is_fetched_and_applied_until_it_is_removed(
    attached: GroundsCluster, tmp_path: Path
) -> None:
    centre, cluster = attached.grounds.centre, attached.grounds.cluster
    line = OwnRepository(centre, "press-line", tmp_path)
    pushed = line.push(recipe_of("one"))
    template = centre.api("GET", FLUX_TEMPLATE).json()
    with_line = {**template, "press-line.yaml": line.drivers("press-line", "{{ namespace }}")}
    assert centre.api("PUT", FLUX_TEMPLATE, json=with_line).status_code == 204

    def recipe() -> str | None:
        found = cluster.find("configmap", "line")
        return found and str(found["data"]["recipe"])

    def fetched(name: str) -> str | None:
        found = cluster.find("gitrepository", name, namespace=NAMESPACE) or {}
        revision: str | None = found.get("status", {}).get("artifact", {}).get("revision")
        return revision

    eventually(lambda: recipe() == "one", seconds=LETTING_GO)
    assert fetched("press-line") == pushed
    pushed = line.push(recipe_of("two"))
    assert pushed in cluster.fetch_now("press-line")
    eventually(lambda: recipe() == "two", seconds=LETTING_GO)
    held = cluster.find("secret", "flux-secrets", namespace=NAMESPACE)["data"]
    flux, agent = base64.b64decode(held["password"]).decode(), attached.password()
    assert "403" in refusal("ls-remote", line.url, user=attached.uuid, secret=agent)
    assert "403" in refusal("-C", line.work, "push", line.url, "main:main", user=attached.uuid, secret=flux)
    refused = line.remove()
    assert refused.returncode != 0 and "Flux template" in refused.stderr, refused.stderr

    by_hand = line.drivers("line-by-hand", NAMESPACE)[0]
    attached.push("line.yaml", json.dumps(by_hand))
    assert centre.api("PUT", FLUX_TEMPLATE, json=template).status_code == 204
    eventually(lambda: fetched("line-by-hand") == pushed and recipe() is None, seconds=LETTING_GO)
    refused = line.remove()
    assert refused.returncode != 0, refused.stdout
    assert "The cluster press-shop names this repository in by-hand/line.yaml" in refused.stderr, refused.stderr
    assert line.remove("--ignore-by-hand").returncode == 0
    archive = repositories(attached).root / "archive"
    [kept] = archive.glob(f"{line.uuid}-*.git")
    assert pushed == f"main@sha1:{kept.stem.removeprefix(f'{line.uuid}-')}"
    assert "one that was removed is refused" in cluster.fetch_now("line-by-hand")
    assert fetched("line-by-hand") == pushed, "what it has, an edge keeps"
    attached.push("line.yaml", recipe_of("three"))
    eventually(lambda: cluster.find("gitrepository", "line-by-hand", namespace=NAMESPACE) is None, seconds=LETTING_GO)


@pytest.mark.parametrize("kind", ["merge", "json", "apply"])
def test_its_token_may_ask_flux_to_fetch(thief: httpx.Client, kind: str) -> None:
    changes: dict[str, Any] = {
        "merge": {"metadata": {"annotations": {REQUESTED: "now"}}},
        "json": [{"op": "add", "path": "/metadata/annotations/reconcile.fluxcd.io~1requestedAt", "value": "then"}],
        "apply": {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"name": "self-link", "annotations": {REQUESTED: "once"}},
        },
    }
    media = {
        "merge": "application/merge-patch+json",
        "json": "application/json-patch+json",
        "apply": "application/apply-patch+yaml",
    }
    parameters = {"fieldManager": "thief", "force": "true"} if kind == "apply" else {}
    answer = thief.patch(
        SELF_LINK, content=json.dumps(changes[kind]), params=parameters, headers={"Content-Type": media[kind]}
    )
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"url": "https://thief.example.com/all-rights.git"}},
        {"spec": {"suspend": True}},
        {"spec": {"secretRef": {"name": "edgewright-agent"}}},
        {"spec": {"interval": "1s"}, "metadata": {"annotations": {REQUESTED: "hidden"}}},
        {"metadata": {"labels": {"edgewright.dev/cluster": "other"}}},
        {"metadata": {"labels": None}},
        {"metadata": {"annotations": {"kustomize.toolkit.fluxcd.io/ssa": "Ignore"}}},
        {"metadata": {"annotations": {"empty": ""}}},
        {"metadata": {"annotations": {REQUESTED: "x" * 65}}},
        {"metadata": {"finalizers": ["thief.example.com/never"]}},
        {"metadata": {"finalizers": None}},
        {"metadata": {"ownerReferences": None}},
    ],
    ids=str,
)
def test_its_token_changes_nothing_else_of_a_source(
    attached: GroundsCluster, thief: httpx.Client, change: dict[str, Any]
) -> None:
    before = self_link(attached)
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = thief.patch(SELF_LINK, content=json.dumps(change), headers=headers)
    assert answer.status_code == 422 and "edgewright-fetching" in answer.text, answer.text
    after = self_link(attached)
    assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", SELF_LINK),
        ("DELETE", SELF_LINK),
        ("POST", SOURCES),
        ("PATCH", f"{SELF_LINK}/status"),
        ("PATCH", f"{SOURCES}/of-the-operator"),
        ("PATCH", f"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/kustomizations/self-link"),
        ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/edgewright-fetching"),
        ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/edgewright-fetching"),
        ("PATCH", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles/edgewright-fetching"),
    ],
)
def test_its_token_has_no_other_right_to_what_drives_the_edge(thief: httpx.Client, method: str, path: str) -> None:
    headers = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    assert thief.request(method, path, content="{}", headers=headers).status_code == 403


def test_an_administrator_is_not_bound(attached: GroundsCluster) -> None:
    change = {"metadata": {"labels": {"team": "press"}}}
    answer = attached.grounds.cluster.http.patch(
        SELF_LINK, content=json.dumps(change), headers={"Content-Type": "application/merge-patch+json"}
    )
    assert answer.status_code == 200, answer.text


def test_without_the_policy_the_agent_asks_for_nothing_and_a_fresh_line_heals_it(attached: GroundsCluster) -> None:
    """An administrator has tidied up: the right is still there, and nothing bounds it."""
    cluster = attached.grounds.cluster
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/edgewright-fetching"
    assert cluster.http.delete(path).is_success
    before = self_link(attached)["metadata"]["annotations"][REQUESTED]
    attached.put_secret("default", "three", b"s3cret")
    eventually(lambda: "unbounded" in [line.get("state") for line in told_by(attached.grounds, AGENT)])
    assert self_link(attached)["metadata"]["annotations"][REQUESTED] == before
    attached.paste()
    attached.put_secret("default", "four", b"s3cret")
    eventually(lambda: cluster.find("secret", "four") is not None, seconds=LETTING_GO)


@pytest.mark.parametrize(
    ("stopped", "silent"),
    [
        (("scale", "deployment", KUSTOMIZE, "--replicas=0", "--namespace", FLUX_NAMESPACE), KUSTOMIZE),
        (("delete", "namespace", FLUX_NAMESPACE), SOURCE),
    ],
    ids=["scaled to 0", "namespace deleted"],
)
def test_flux_that_is_gone_is_told_in_words_and_a_fresh_line_brings_it_back(
    attached: GroundsCluster, stopped: tuple[str, ...], silent: str
) -> None:
    cluster, kubelet = attached.grounds.cluster, attached.grounds.kubelet
    eventually(lambda: attached.condition("Synced")[1] in DRIVEN, seconds=LETTING_GO)
    cluster.kubectl(*stopped)
    eventually(lambda: not kubelet.runs(silent), seconds=LETTING_GO)
    name = f"without-{silent}"
    attached.put_secret("default", name, b"s3cret")
    eventually(lambda: attached.condition("Synced") == ("False", "FluxSilent"), seconds=LETTING_GO)
    told = attached.message("Synced")
    assert f"Flux's {silent} does not answer" in told and "a fresh bootstrap line brings back" in told, told
    assert attached.condition("Healthy") == ("False", "FluxSilent")
    assert not has_secret(cluster, name)
    attached.paste()
    eventually(lambda: has_secret(cluster, name), seconds=LETTING_GO)
    eventually(lambda: attached.condition("Synced")[1] in DRIVEN, seconds=LETTING_GO)
    eventually(lambda: attached.condition("Healthy")[1] != "FluxSilent", seconds=LETTING_GO)
    told_in_timeline = [each["message"] for each in attached.events() if silent in each["message"]]
    assert sum(f"Flux does not answer: {silent}" in each for each in told_in_timeline) == 1, told_in_timeline
    assert sum(f"Flux answers again: {silent}" in each for each in told_in_timeline) == 1, told_in_timeline
