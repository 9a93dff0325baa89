"""The bootstrap line for somebody who is no administrator, and what bounds the agent's token, for real."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.contents import Contents, contents
from edge_cluster.controllers import define_flux
from edge_cluster.line import BootstrapLine
from embedded import EmbeddedEdgewright
from free_ports import free_port
from supervised import eventually

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

DESK, INSTALLER = "desk", "installer"
ROLE = (Path(__file__).parents[3] / "docs/examples/installer.yaml").read_text("utf-8")
ACCOUNT = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: {DESK}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {INSTALLER}, namespace: {DESK}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: edgewright-installer}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edgewright-installer}}
subjects:
  - {{kind: ServiceAccount, name: {INSTALLER}, namespace: {DESK}}}
"""
SECRET = "/api/v1/namespaces/edgewright/secrets/flux-secrets"
SCALE = "/apis/apps/v1/namespaces/edgewright/deployments/edgewright-detach/scale"


@pytest.fixture(scope="module")
def site() -> Iterator[Cluster]:
    """A Kubernetes cluster with Flux's kinds, and an account with the rights of an installer."""
    with edge_cluster() as cluster:
        define_flux(cluster)
        cluster.kubectl.apply(ROLE, ACCOUNT)
        yield cluster


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    """A centre that has an agent for edges."""
    variables = {
        "EDGEWRIGHT_DEMO": "0",
        "EDGEWRIGHT_GATEWAY_PORT": str(free_port()),
        "EDGEWRIGHT_AGENT_IMAGE": "registry.example.com/edgewright:test",
        "EDGEWRIGHT_AGENT_PULL_SECRET": "registry-login",
        "EDGEWRIGHT_AGENT_PRIORITY_CLASS": "system-cluster-critical",
    }
    centre = EmbeddedEdgewright(tmp_path_factory.mktemp("centre") / "home", variables)
    centre.up()
    yield centre
    centre.clear_up()


@pytest.fixture
def line_of(centre: EmbeddedEdgewright, site: Cluster, tmp_path: Path) -> Iterator[Callable[[str], BootstrapLine]]:
    """The line of a new cluster; at the end the centre forgets the cluster, so that another may be attached."""
    made: list[str] = []

    def of(name: str) -> BootstrapLine:
        made.append(centre.api("POST", "/v1/cluster", json={"name": name}).json()["uuid"])
        eventually(lambda: centre.is_ready(name))
        return BootstrapLine(centre, site, made[-1], tmp_path)

    yield of
    for uuid in made:
        assert centre.api("DELETE", f"/v1/cluster/{uuid}", params={"force": "true"}).status_code == 202


@pytest.fixture
def as_installer(site: Cluster) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Pastes a line as the account that is no administrator."""
    config = site.as_account(DESK, INSTALLER).config

    def paste(line: BootstrapLine, *options: str) -> subprocess.CompletedProcess[str]:
        return line.type(f"{line.fetched} | sh -s -- --yes {' '.join(options)}", KUBECONFIG=str(config))

    return paste


def held_without(site: Cluster, *kinds: str) -> Contents:
    return {key: one for key, one in contents(site).items() if key.partition("/")[0] not in kinds}


def role_without(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> str:
    role = yaml.safe_load(ROLE)
    return yaml.safe_dump({**role, "rules": change(role["rules"])})


@pytest.mark.parametrize("with_namespace", [False, True])
def test_rights_that_may_not_be_granted_are_named_and_nothing_is_left(
    site: Cluster,
    line_of: Callable[[str], BootstrapLine],
    as_installer: Callable[..., subprocess.CompletedProcess[str]],
    with_namespace: bool,
) -> None:
    """Roles may be made, but not with the rights that the agent and its detacher get."""
    site.kubectl.apply(
        role_without(lambda rules: [rule for rule in rules if rule["resources"] != ["deployments/scale"]])
    )
    if with_namespace:
        site.kubectl("create", "namespace", "edgewright")
    try:
        line = line_of(f"ungranted-{with_namespace}".lower())
        before = contents(site)
        for options in (["--dry-run"], []):
            done = as_installer(line, *options)
            assert done.returncode == 4, done.stdout + done.stderr
            assert "attempting to grant" in done.stderr and "deployments/scale" in done.stderr
            assert "Nothing was changed" in done.stderr and "not found" not in done.stderr
            assert contents(site) == before
        done = line.run()  # the token was not used up
        assert done.returncode == 0, done.stdout + done.stderr
        assert line.run("--uninstall").returncode == 0
    finally:
        site.kubectl.apply(ROLE)
        if with_namespace:
            site.kubectl("delete", "namespace", "edgewright")


def test_whoever_has_the_documented_rights_attaches_and_takes_away(
    site: Cluster,
    line_of: Callable[[str], BootstrapLine],
    as_installer: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    line, before = line_of("lesser"), contents(site)
    done = as_installer(line)
    assert done.returncode == 0, done.stdout + done.stderr
    assert site.find("deployment", "edgewright-agent", namespace="edgewright") is not None
    attached = contents(site)

    def keeping_secrets(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [{**each, "verbs": ["create", "patch"]} for each in rules if "secrets" in each["resources"]]
        others = [each for each in rules if "secrets" not in each["resources"]]
        return [*others, *kept]

    fewer = role_without(keeping_secrets)
    site.kubectl.apply(fewer)
    refused = as_installer(line, "--uninstall", "--keep-releases")
    assert refused.returncode == 4, refused.stdout + refused.stderr
    assert 'cannot delete resource "secrets"' in refused.stderr and "Nothing was changed" in refused.stderr
    site.kubectl.apply(ROLE)
    assert {key: one for key, one in contents(site).items() if "installer" not in key} == {
        key: one for key, one in attached.items() if "installer" not in key
    }

    away = as_installer(line, "--uninstall", "--keep-releases")
    assert away.returncode == 0, away.stdout + away.stderr
    assert contents(site) == before


def test_the_token_of_the_agent_is_bounded_where_the_api_server_can(
    site: Cluster, line_of: Callable[[str], BootstrapLine]
) -> None:
    line, before = line_of("bounded"), contents(site)
    done = line.run()
    assert done.returncode == 0, done.stdout + done.stderr
    authority = ssl.create_default_context(cafile=site.authority.identity.certificate)
    headers = {
        "Authorization": f"Bearer {site.account_token('edgewright', 'edgewright-agent')}",
        "Content-Type": "application/merge-patch+json",
    }
    with httpx.Client(base_url=site.url, headers=headers, verify=authority, trust_env=False, timeout=60) as thief:

        def patch(path: str, change: dict[str, Any]) -> httpx.Response:
            return thief.patch(path, content=json.dumps(change))

        eventually(lambda: patch(SCALE, {"spec": {"replicas": 40}}).status_code == 422)
        for change in (
            {"metadata": {"finalizers": ["thief.example.com/never"]}},
            {"metadata": {"labels": {"edgewright.dev/cluster": "other"}}},
            {"metadata": {"annotations": {"a": "b"}}},
            {"metadata": {"ownerReferences": None}},
            {"immutable": True},
        ):
            answer = patch(SECRET, change)
            assert answer.status_code == 422 and "edgewright-agent" in answer.text, answer.text
        assert patch(SECRET, {"data": {"next.password": "c2VjcmV0"}}).status_code == 200
        assert patch(SECRET, {"data": {"next.password": None}}).status_code == 200
        for replicas in (1, 0):
            assert patch(SCALE, {"spec": {"replicas": replicas}}).status_code == 200
    pod = site.find("deployment", "edgewright-agent", namespace="edgewright")["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "registry-login"}]
    assert pod["priorityClassName"] == "system-cluster-critical"
    away = line.run("--uninstall")
    assert away.returncode == 0, away.stdout + away.stderr
    assert contents(site) == before
