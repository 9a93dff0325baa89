"""When the bootstrap script must not touch anything, and what it says then."""

from typing import Any

import pytest
from bootstrap_edge import KubectlMachine, RegistrationServer

from edgewright.bootstrap import AgentPod, render_agent

OTHER = "6f5c1c1e-0000-4000-8000-3f0f5f5f9a99"


def untouched(edge: KubectlMachine, centre: RegistrationServer) -> bool:
    return edge.changes == [] and centre.requests == [] and list(edge.tmp.iterdir()) == []


def test_script_cut_off_anywhere_does_nothing(edge: KubectlMachine, centre: RegistrationServer) -> None:
    whole = edge.render(before="kubectl create -f - </dev/null")
    whole_bytes = len(whole) - 1  # the final line end may be lost
    for cut in [*range(0, whole_bytes, 200), *range(whole_bytes - 25, whole_bytes)]:
        done = edge.run("--yes", script=whole[:cut])
        assert done.stdout == ""
        assert untouched(edge, centre), f"cut at {cut} of {whole_bytes}"
    assert edge.calls == []


def test_dry_run_looks_but_changes_and_registers_nothing(edge: KubectlMachine, centre: RegistrationServer) -> None:
    script = edge.render(files={**edge.wanted.files, "extra.yaml": "kind: ConfigMap"}, before="touch /nonexistent")
    done = edge.run("--dry-run", script=script)
    assert done.returncode == 0
    assert untouched(edge, centre)
    for told in ("press-shop", "kind-edge", "2 nodes", "flux-secrets", "self-link.yaml", "extra.yaml", "'before'"):
        assert told in done.stdout


def test_dry_run_reports_what_would_stop_it(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.set_cluster(forbidden=["create namespaces"])
    assert edge.run("--dry-run").returncode == 4


def test_without_a_terminal_it_refuses_and_names_the_option(edge: KubectlMachine, centre: RegistrationServer) -> None:
    for environment in ({}, {"EDGEWRIGHT_YES": "0"}):
        done = edge.run(environment=environment)
        assert done.returncode == 2
        assert "--yes" in done.stderr
        assert untouched(edge, centre)


@pytest.mark.parametrize("namespace", ["edgewright", "elsewhere"])
def test_cluster_with_another_identity_is_refused(
    edge: KubectlMachine, centre: RegistrationServer, namespace: str
) -> None:
    edge.put(f"Secret/{namespace}/edgewright-agent", {"cluster": OTHER, "generation": "1"}, "ewa_" + "0" * 64)
    done = edge.run("--yes")
    assert done.returncode == 6
    assert OTHER in done.stderr and edge.cluster_uuid in done.stderr
    assert untouched(edge, centre)


@pytest.mark.parametrize("name", ["flux-secrets", "edgewright-agent"])
def test_secret_that_edgewright_did_not_make_is_never_overwritten(
    edge: KubectlMachine, centre: RegistrationServer, name: str
) -> None:
    edge.put(f"Secret/edgewright/{name}", {}, "somebody else's | password")
    done = edge.run("--yes")
    assert done.returncode == 6
    assert f"'{name}'" in done.stderr and "somebody" not in done.stderr
    assert untouched(edge, centre)


def test_script_of_an_older_generation_leaves_newer_credentials_alone(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    for name in ("flux-secrets", "edgewright-agent"):
        edge.put(f"Secret/edgewright/{name}", {"cluster": edge.cluster_uuid, "generation": "3"}, "x")
    done = edge.run("--yes", script=edge.render(generation=2))
    assert done.returncode == 6
    assert "generation 3" in done.stderr
    assert untouched(edge, centre)


def test_missing_rights_are_all_named(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.set_cluster(forbidden=["patch secrets", "create kustomizations.kustomize.toolkit.fluxcd.io"])
    done = edge.run("--yes")
    assert done.returncode == 4
    assert "patch secrets, create kustomizations.kustomize.toolkit.fluxcd.io" in done.stderr
    assert untouched(edge, centre)


def test_rights_on_flux_are_not_asked_for_without_its_objects(edge: KubectlMachine) -> None:
    edge.set_cluster(forbidden=["create kustomizations.kustomize.toolkit.fluxcd.io"])
    assert edge.run("--yes", script=edge.render(files={})).returncode == 0


@pytest.mark.parametrize("tool", ["kubectl", "base64", "curl"])
def test_missing_tool_is_named(edge: KubectlMachine, centre: RegistrationServer, tool: str) -> None:
    (edge.bin / tool).unlink()
    done = edge.run("--yes")
    assert done.returncode == 3
    assert f"'{tool}' is needed" in done.stderr
    assert untouched(edge, centre)


def test_cluster_that_does_not_answer_is_reported_with_the_words_of_kubectl(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    edge.set_cluster(reachable=False)
    done = edge.run("--yes")
    assert done.returncode == 3
    assert "10.0.0.1:6443 was refused" in done.stderr
    assert untouched(edge, centre)


def test_unknown_context_is_reported(edge: KubectlMachine, centre: RegistrationServer) -> None:
    done = edge.run("--yes", "--context", "nowhere")
    assert done.returncode == 3
    assert 'context "nowhere" does not exist' in done.stderr


@pytest.mark.parametrize(("version", "code"), [("v1.24.17", 5), ("v1.25.0-eks-1a2b", 0), ("v1.9.1", 5), ("junk", 3)])
def test_old_kubernetes_is_refused(edge: KubectlMachine, centre: RegistrationServer, version: str, code: int) -> None:
    edge.set_cluster(version=version)
    done = edge.run("--yes", "--dry-run")
    assert done.returncode == code
    assert untouched(edge, centre)


@pytest.mark.parametrize("options", [["--frobnicate"], ["--context"], ["extra"]])
def test_wrong_options_are_refused(edge: KubectlMachine, centre: RegistrationServer, options: list[str]) -> None:
    assert edge.run(*options).returncode == 2
    assert untouched(edge, centre)


def test_help_lists_options_and_exit_codes_without_kubectl(edge: KubectlMachine) -> None:
    (edge.bin / "kubectl").unlink()
    done = edge.run("--help")
    assert done.returncode == 0
    for told in ("--dry-run", "--context", "--yes", "0 done", "7 the centre"):
        assert told in done.stdout


def test_refused_object_is_reported_with_its_file(edge: KubectlMachine) -> None:
    edge.set_cluster(refused=["self-link"])
    done = edge.run("--yes")
    assert done.returncode == 3
    assert "'self-link.yaml'" in done.stderr and "Forbidden" in done.stderr


def test_cluster_whose_anchor_bears_another_identity_is_refused(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    edge.put("ClusterRole/edgewright-anchor", {"cluster": OTHER, "generation": "1"})
    done = edge.run("--yes")
    assert done.returncode == 6
    assert OTHER in done.stderr
    assert untouched(edge, centre)


def test_anchor_that_edgewright_did_not_make_is_refused(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.put("ClusterRole/edgewright-anchor")
    assert edge.run("--yes").returncode == 6
    assert untouched(edge, centre)


def test_flux_that_does_not_fit_is_named(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.drop("CustomResourceDefinition/helmreleases.helm.toolkit.fluxcd.io")
    done = edge.run("--yes", script=edge.render(flux="v2.7.0"))
    assert done.returncode == 9
    assert "there is no helmreleases.helm.toolkit.fluxcd.io" in done.stderr
    assert untouched(edge, centre)


def test_flux_is_installed_by_an_administrator_only(edge: KubectlMachine, centre: RegistrationServer) -> None:
    for kind in edge.flux_kinds:
        edge.drop(f"CustomResourceDefinition/{kind}")
    edge.set_cluster(forbidden=["delete pods"])
    done = edge.run("--yes", script=edge.render(flux="v2.7.0"))
    assert (done.returncode, "all rights" in done.stderr) == (4, True)
    assert untouched(edge, centre)


def installing(edge: KubectlMachine, centre: RegistrationServer, **changes: Any) -> str:
    """A script of a centre that has Flux and an agent for edges."""
    install = f"/v1/cluster/{edge.cluster_uuid}/install"
    agent = render_agent(AgentPod("registry.example.com/ew:1"), namespace="edgewright").decode()
    centre.pages |= {f"{install}/flux": "apiVersion: v1\n", f"{install}/agent": agent}
    return edge.render(agent=AgentPod("registry.example.com/ew:1"), **changes)


def test_dry_run_names_what_comes_from_the_centre_and_spends_no_token(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    for kind in edge.flux_kinds:
        edge.drop(f"CustomResourceDefinition/{kind}")
    done = edge.run("--dry-run", script=installing(edge, centre, flux="v2.7.0"))
    assert "install Flux v2.7.0" in done.stdout and "registry.example.com/ew:1" in done.stdout
    assert untouched(edge, centre)


@pytest.mark.parametrize("options", [["--yes"], ["--dry-run"]])
@pytest.mark.parametrize("there", [True, False])
def test_rights_that_may_not_be_granted_are_named_before_anything_is_done(
    edge: KubectlMachine, centre: RegistrationServer, options: list[str], there: bool
) -> None:
    """A role can be given to whoever may not have its rights; the API server refuses that in a dry run, too."""
    if there:
        edge.put("Namespace/edgewright")
    for role in ("edgewright-agent", "edgewright-detach"):
        edge.set_cluster(forbidden=["delete pods"], ungranted=[role])
        done = edge.run(*options, script=installing(edge, centre))
        assert (done.returncode, "attempting to grant" in done.stderr, role in done.stderr) == (4, True, True)
        assert "Nothing was changed" in done.stderr and "not found" not in done.stderr
        assert untouched(edge, centre)


@pytest.mark.parametrize("there", [True, False])
def test_what_the_cluster_would_refuse_is_named_beforehand_where_its_namespace_is_there(
    edge: KubectlMachine, centre: RegistrationServer, there: bool
) -> None:
    """In the namespace that stands in for it other rules may be in force."""
    if there:
        edge.put("Namespace/edgewright")
    edge.set_cluster(denied=["edgewright-agent"])
    done = edge.run("--dry-run", script=installing(edge, centre))
    assert done.returncode == (3 if there else 0)
    assert ("admission webhook" in done.stderr) is there
    assert untouched(edge, centre)


def test_a_namespace_of_another_name_is_stood_in_for_as_well(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    edge.set_cluster(forbidden=["delete pods"], ungranted=["site"])
    site = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: site\n  namespace: plant\n"
    script = edge.render(namespace="plant", files={"site.yaml": site})
    assert edge.run("--yes", script=script).returncode == 4
    assert untouched(edge, centre)


def test_nodes_that_may_not_be_listed_are_not_none(edge: KubectlMachine) -> None:
    edge.set_cluster(hidden_nodes=True)
    told = edge.run("--dry-run").stdout
    assert "number of nodes unknown" in told and "0 nodes" not in told
