"""The rights that the script asks for beforehand are those that it uses: each list is derived from what is run."""

from itertools import product

from bootstrap_edge import KubectlMachine, RegistrationServer
from bootstrap_runs import ANCHOR, DEAD, GOOD, Register

from edgewright.bootstrap import AgentPod, render_agent

AGENT = AgentPod("registry.example.com/edgewright:1")
RESOURCES = {
    "clusterrole": "clusterroles.rbac.authorization.k8s.io",
    "customresourcedefinition": "customresourcedefinitions.apiextensions.k8s.io",
    "namespace": "namespaces",
    "secret": "secrets",
    "ClusterRole": "clusterroles.rbac.authorization.k8s.io",
    "ClusterRoleBinding": "clusterrolebindings.rbac.authorization.k8s.io",
    "Deployment": "deployments.apps",
    "GitRepository": "gitrepositories.source.toolkit.fluxcd.io",
    "Kustomization": "kustomizations.kustomize.toolkit.fluxcd.io",
    "Namespace": "namespaces",
    "Role": "roles.rbac.authorization.k8s.io",
    "RoleBinding": "rolebindings.rbac.authorization.k8s.io",
    "Secret": "secrets",
    "ServiceAccount": "serviceaccounts",
}
WITHOUT = {"nodes", "secrets", "service", "-f", "--raw"}
"""What ``get`` may be refused: the script goes on without, or everybody may."""


def used_by_call(args: list[str]) -> set[tuple[str, str]]:
    """Verb and resource of one call of kubectl; those of what it writes are noted as changes."""
    match args:
        case ["auth" | "config" | "create" | "apply", *_] | ["patch", "--local", *_]:
            return set()
        case ["get", what, *_] if what in WITHOUT:
            return set()
        case ["get", what, *_]:
            return {("get", RESOURCES[what])}
        case ["wait", "--for=delete", what, *_] | ["wait", _, _, what]:
            return {(verb, RESOURCES[what.partition("/")[0]]) for verb in ("get", "list", "watch")}
        case ["annotate" | "label" | "patch", what, *_]:
            return {(verb, RESOURCES[what]) for verb in ("get", "patch")}
        case ["delete", "--raw", path, *_]:
            return {("delete", "secrets" if "/secrets/" in path else RESOURCES["clusterrole"])}
    raise AssertionError(args)


def used_by_change(verb: str, key: str) -> set[tuple[str, str]]:
    """An object that is applied is made or changed, whatever is there."""
    resource = RESOURCES[key.partition("/")[0]]
    return {("create", resource), ("patch", resource)} if verb == "apply" else {(verb, resource)}


def asked(calls: list[dict[str, list[str]]]) -> set[tuple[str, str]]:
    return {(args[3], args[4]) for args in words(calls) if args[:2] == ["auth", "can-i"] and args[3] != "*"}


def words(calls: list[dict[str, list[str]]]) -> list[list[str]]:
    return [[arg for arg in call["args"] if not arg.startswith("--request-timeout")] for call in calls]


def test_every_right_is_asked_for_that_is_used_and_no_other(
    site: KubectlMachine, centre: RegistrationServer, register: Register
) -> None:
    site.set_cluster(forbidden=["watch something"])  # no administrator: each right is asked for by itself
    centre.pages[f"/v1/cluster/{site.cluster_uuid}/install/agent"] = render_agent(
        AGENT, namespace="edgewright"
    ).decode()
    site.put(ANCHOR, {"cluster": site.cluster_uuid, "generation": "1"})  # a refused run takes back single Secrets
    assert site.run("--yes", script=site.render(token=DEAD)).returncode == 1
    site.drop(ANCHOR)
    for token, generation in product((DEAD, GOOD), (1, 2, 2)):
        done = site.run("--yes", script=site.render(token=token, generation=generation, agent=AGENT))
        assert done.returncode == (1 if token == DEAD else 0), done.stderr
    going = site.cluster["objects"]
    going["Namespace/edgewright"]["deleted"] = "2026-01-01T00:00:00Z"
    site.set_cluster(objects=going)
    assert site.run("--yes", script=site.render(generation=2)).returncode == 0
    used = set[tuple[str, str]]().union(
        *(used_by_call(args) for args in words(site.calls)), *(used_by_change(*change) for change in site.changes)
    )
    assert used == asked(site.calls)
