"""What the bootstrap script does to a Kubernetes cluster, step by step and on a repeat."""

import os
import re
import subprocess
import termios
from fcntl import ioctl
from typing import Any

import pytest
from bootstrap_edge import KubectlMachine, RegistrationServer

from edgewright.bootstrap import AgentPod

PEM = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUBX\n-----END CERTIFICATE-----\n"
ANCHOR = ["create", "ClusterRole/edgewright-anchor"]
NAMESPACE = ["apply", "Namespace/edgewright"]
WRITTEN = [["apply", "Secret/edgewright/flux-secrets"], ["apply", "Secret/edgewright/edgewright-agent"]]
SECRETS = [change for _, secret in WRITTEN for change in (["create", secret], ["apply", secret])]
"""Each is reserved first, so that of two runs one draws what both use."""
SELF_LINK = [["apply", "GitRepository/edgewright/self-link"], ["apply", "Kustomization/edgewright/self-link"]]


def credentials(request: dict[str, Any]) -> tuple[str, str]:
    return request["flux_secret"], request["agent_secret"]


def kept(objects: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is there, without the versions and marks that every run leaves."""
    return {key: {name: one[name] for name in ("data", "labels", "namespace")} for key, one in objects.items()}


def on_a_terminal(edge: KubectlMachine, script: str, keys: bytes) -> tuple[int, str]:
    """Runs the script with a terminal as /dev/tty, types the keys; returns code and what the terminal showed."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*edge.shell, "-s"],
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=theirs,
        env=edge.environment(),
        start_new_session=True,
        preexec_fn=lambda: ioctl(theirs, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one system call, no locks
    ) as running:
        os.close(theirs)
        os.write(ours, keys)
        assert running.stdin
        running.stdin.write(script.encode())
        running.stdin.close()
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux says EIO when the last one has closed the terminal
                break
            if not part:
                break
            shown += part
        code = running.wait(timeout=30)
    os.close(ours)
    return code, shown.decode()


def test_fresh_cluster_is_attached_with_secrets_made_before_the_registration(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    done = edge.run("--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert edge.changes == [ANCHOR, ["create", "Namespace/edgewright"], *SECRETS, *SELF_LINK]
    [request] = centre.requests
    assert request["path"] == "/v1/register"
    assert request["authorization"] == f"Bearer {edge.token}"
    assert request["kube_system_uid"] == edge.kube_system_uid
    assert request["kubernetes_version"] == "v1.30.2+k3s1"
    assert re.fullmatch(r"ewf_[0-9a-f]{64}", request["flux_secret"])
    assert re.fullmatch(r"ewa_[0-9a-f]{64}", request["agent_secret"])
    assert edge.secret("flux-secrets") == {
        "username": edge.cluster_uuid,
        "password": request["flux_secret"],
    }
    assert edge.secret("edgewright-agent") == {
        "username": edge.cluster_uuid,
        "password": request["agent_secret"],
        "url": centre.url,
        "uuid": edge.cluster_uuid,
        "generation": "1",
    }
    identity = {"edgewright.dev/cluster": edge.cluster_uuid, "edgewright.dev/generation": "1"}
    labels = {**identity, "edgewright.dev/part-of": "bootstrap"}
    assert edge.cluster["objects"]["Secret/edgewright/flux-secrets"]["labels"] == labels
    assert list(edge.tmp.iterdir()) == []


def test_pasted_line_attaches(edge: KubectlMachine, centre: RegistrationServer) -> None:
    centre.pages["/script"] = edge.render()
    done = subprocess.run(
        ["/bin/sh", "-c", f"curl -sSL '{centre.url}/script' | sh -"],
        env=edge.environment(EDGEWRIGHT_YES="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(centre.requests) == 1


def test_no_program_waits_for_input_that_never_ends(edge: KubectlMachine) -> None:
    script = edge.render(before="cat")
    with subprocess.Popen(
        [*edge.shell, "-s", "--", "--yes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=edge.environment(),
        start_new_session=True,
    ) as running:
        assert running.stdin
        running.stdin.write(script.encode())
        running.stdin.flush()
        assert running.wait(timeout=30) == 0  # with its input still open


def test_pending_registration_prints_the_short_code_and_goes_on(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    centre.says((202, {"state": "pending", "short_code": "7KQ-2MX", "detail": "An operator has to accept."}))
    done = edge.run("--yes")
    assert done.returncode == 0
    assert "an operator must accept" in done.stdout and "7KQ-2MX" in done.stdout
    assert edge.changes[-2:] == SELF_LINK


def test_refusal_prints_the_sentence_and_removes_the_secrets_it_made(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    detail = 'The token of "press-shop" has expired; C:\\ is no reason.'
    centre.says((403, {"code": "token_expired", "detail": detail, "hint": "Make a new line."}))
    done = edge.run("--yes")
    assert done.returncode == 1
    assert detail in done.stderr and "Make a new line." in done.stderr
    edge.await_collection()
    assert edge.secret("flux-secrets") is None and edge.secret("edgewright-agent") is None
    assert not [change for change in edge.changes if "self-link" in change[1]]


def test_refusal_leaves_credentials_that_were_there(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.run("--yes")
    before, count = edge.cluster["objects"], len(edge.changes)
    centre.says((403, {"detail": "This registration token is spent."}))
    assert edge.run("--yes").returncode == 1
    assert kept(edge.cluster["objects"]) == kept(before)
    assert edge.changes[count:] == [NAMESPACE, *WRITTEN]


def test_refusal_puts_back_the_credentials_of_the_earlier_generation(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    edge.run("--yes")
    centre.says((409, {"detail": "Another cluster has this identity."}))
    assert edge.run("--yes", script=edge.render(generation=2)).returncode == 1
    flux, agent = credentials(centre.requests[0])
    assert edge.held("flux-secrets")["password"] == flux
    assert edge.held("edgewright-agent")["password"] == agent
    assert edge.held("edgewright-agent")["generation"] == "1"


def test_revoked_credentials_are_replaced_in_the_same_run(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.run("--yes")
    revoked = (409, {"code": "credential_revoked", "detail": "They were revoked."})
    centre.says(revoked, (200, {"state": "accepted"}))
    done = edge.run("--yes")
    assert done.returncode == 0, done.stderr
    assert "making new ones" in done.stdout
    first, again, fresh = map(credentials, centre.requests)
    assert first == again and not set(first) & set(fresh)
    assert fresh == (edge.held("flux-secrets")["password"], edge.held("edgewright-agent")["password"])


def test_a_centre_that_revokes_whatever_comes_is_asked_twice(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    centre.says((409, {"code": "credential_revoked", "detail": "They were revoked."}))
    done = edge.run("--yes")
    assert done.returncode == 1 and "They were revoked." in done.stderr
    assert len(centre.requests) == 2
    edge.await_collection()
    assert edge.secret("flux-secrets") is None and edge.secret("edgewright-agent") is None


def test_new_generation_replaces_the_credentials_with_a_notice(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    edge.run("--yes")
    done = edge.run("--yes", script=edge.render(generation=2))
    assert done.returncode == 0
    assert "earlier generation" in done.stdout
    first, second = map(credentials, centre.requests)
    assert not set(first) & set(second)
    assert edge.held("edgewright-agent")["generation"] == "2"


def test_lost_answer_then_a_repeat_registers_the_same_secrets(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    accepted = (200, {"state": "accepted"})
    centre.says(None, accepted)
    lost = edge.run("--yes")
    assert lost.returncode == 7
    assert "run the same line again" in lost.stderr
    assert edge.run("--yes").returncode == 0
    first, second = map(credentials, centre.requests)
    assert first == second == (edge.held("flux-secrets")["password"], edge.held("edgewright-agent")["password"])


def test_interruption_between_the_two_secrets_is_continued(edge: KubectlMachine, centre: RegistrationServer) -> None:
    edge.set_cluster(refused=["edgewright-agent"])
    assert edge.run("--yes").returncode == 3
    kept = edge.held("flux-secrets")["password"]
    assert centre.requests == []
    edge.set_cluster(refused=[])
    assert edge.run("--yes").returncode == 0
    assert centre.requests[0]["flux_secret"] == kept


def test_centre_that_cannot_answer_now_is_tried_again_in_the_same_run(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    centre.says((503, {"detail": "The database is away."}), (200, {"state": "accepted"}))
    assert edge.run("--yes").returncode == 0
    first, second = map(credentials, centre.requests)
    assert first == second


def test_unreachable_centre_keeps_the_secrets_for_the_repeat(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    done = edge.run("--yes", script=edge.render(external_url="http://127.0.0.1:9"))
    assert done.returncode == 7
    assert "http://127.0.0.1:9" in done.stderr
    assert edge.secret("flux-secrets") is not None


@pytest.mark.parametrize("page", ["<html>Sign in to the plant's Wi-Fi</html>", ""])
def test_something_else_that_answers_is_not_taken_for_the_centre(
    edge: KubectlMachine, centre: RegistrationServer, page: str
) -> None:
    for status in (200, 404):
        centre.answers = [(status, page)]
        done = edge.run("--yes")
        assert done.returncode == 7
        assert "not an Edgewright centre" in done.stderr
    assert not [change for change in edge.changes if "self-link" in change[1]]


def test_without_flux_it_registers_and_says_how_to_go_on(edge: KubectlMachine, centre: RegistrationServer) -> None:
    for kind in edge.flux_kinds:
        edge.drop(f"CustomResourceDefinition/{kind}")
    done = edge.run("--yes")
    assert done.returncode == 0
    assert "Flux is not installed" in done.stdout
    assert len(centre.requests) == 1
    assert edge.changes[-1] == SECRETS[-1]


def test_plain_files_come_first_and_may_bring_flux_with_them(edge: KubectlMachine) -> None:
    for kind in edge.flux_kinds:
        edge.drop(f"CustomResourceDefinition/{kind}")
    crds = "".join(
        f"---\nkind: CustomResourceDefinition\nmetadata:\n  name: {kind}\nspec:\n  group: source.toolkit.fluxcd.io\n"
        for kind in edge.flux_kinds
    )
    done = edge.run("--yes", script=edge.render(files={**edge.wanted.files, "zz-flux.yaml": crds}))
    assert done.returncode == 0
    assert (
        edge.changes[-5:] == [["apply", f"CustomResourceDefinition/{kind}"] for kind in edge.flux_kinds] + SELF_LINK
    )


def test_existing_namespace_is_left_as_it_is(edge: KubectlMachine) -> None:
    edge.put("Namespace/edgewright")
    before = edge.cluster["objects"]["Namespace/edgewright"]
    assert edge.run("--yes").returncode == 0
    assert edge.changes == [ANCHOR, *SECRETS, *SELF_LINK]
    assert edge.cluster["objects"]["Namespace/edgewright"] == before


def test_flux_never_prunes_a_namespace_that_the_script_has_made(edge: KubectlMachine) -> None:
    assert edge.run("--yes").returncode == 0
    made = edge.cluster["objects"]["Namespace/edgewright"]
    assert "\n  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}\n" in made["text"]


def test_a_namespace_that_an_earlier_version_has_made_is_kept_from_pruning_by_the_next_run(
    edge: KubectlMachine,
) -> None:
    assert edge.run("--yes").returncode == 0
    objects = edge.cluster["objects"]
    made = objects["Namespace/edgewright"]
    made["text"] = made["text"].replace("\n  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}", "")
    edge.set_cluster(objects=objects)
    done = edge.run("--yes")
    assert done.returncode == 0
    assert "prune: disabled" in edge.cluster["objects"]["Namespace/edgewright"]["text"]
    assert "Made the namespace" not in done.stdout


def test_ca_bundle_goes_into_both_secrets(edge: KubectlMachine) -> None:
    assert edge.run("--yes", script=edge.render(ca_bundle=PEM)).returncode == 0
    assert edge.held("flux-secrets")["ca.crt"] == PEM
    assert edge.held("edgewright-agent")["ca.crt"] == PEM


def test_context_is_used_for_every_call(edge: KubectlMachine) -> None:
    for environment, options in (({}, ["--context", "other"]), ({"EDGEWRIGHT_KUBE_CONTEXT": "other"}, [])):
        done = edge.run("--yes", *options, environment=environment)
        assert done.returncode == 0
        assert "context other" in done.stdout
    calls = [call["args"] for call in edge.calls]
    assert [args for args in calls if args[:2] != ["--context", "other"]] == []


def test_hooks_run_around_the_changes_on_the_chosen_context(edge: KubectlMachine, centre: RegistrationServer) -> None:
    before = 'kubectl get nodes -o name >/dev/null; echo "before $EDGEWRIGHT_NAMESPACE in $EDGEWRIGHT_CLUSTER"'
    script = edge.render(before=before, after="echo after '$EDGEWRIGHT_NAME' \"$EDGEWRIGHT_NAME\"")
    done = edge.run("--yes", "--context=other", script=script)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines.index(f"before edgewright in {edge.cluster_uuid}") < lines.index("after $EDGEWRIGHT_NAME press-shop")
    assert ["--context", "other", "get", "nodes", "-o", "name"] in [call["args"] for call in edge.calls]


@pytest.mark.parametrize("hook", ["false", "echo 'unfinished", "}\nexit 0\n(", "exit 3"])
def test_failing_first_hook_stops_before_any_change(
    edge: KubectlMachine, centre: RegistrationServer, hook: str
) -> None:
    done = edge.run("--yes", script=edge.render(before=hook))
    assert (done.returncode, edge.changes, centre.requests) == (8, [], [])


def test_yes_on_the_terminal_attaches(edge: KubectlMachine, centre: RegistrationServer) -> None:
    code, shown = on_a_terminal(edge, edge.render(), b"y\n")
    assert code == 0
    question = (
        r"Attach this Kubernetes cluster \(context kind-edge, server https://10.0.0.1:6443, v1.30.2\+k3s1, 2 nodes\)"
    )
    assert re.search(question + rf" to {re.escape(centre.url)} as 'press-shop'\? \[y/N\]", shown)
    assert len(centre.requests) == 1


def test_anything_else_on_the_terminal_changes_nothing(edge: KubectlMachine, centre: RegistrationServer) -> None:
    code, shown = on_a_terminal(edge, edge.render(), b"\n")
    assert (code, edge.changes, centre.requests) == (2, [], [])
    assert "Nothing was changed" in shown


FLUX = """---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gitrepositories.source.toolkit.fluxcd.io
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: kustomizations.kustomize.toolkit.fluxcd.io
"""
AGENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: edgewright-agent\n  namespace: edgewright\n"
IMAGE = "registry.example.com/edgewright:1.0.0"


def offering(edge: KubectlMachine, centre: RegistrationServer) -> str:
    """A script of a centre that has Flux and an agent for edges."""
    install = f"/v1/cluster/{edge.cluster_uuid}/install"
    centre.pages |= {f"{install}/flux": FLUX, f"{install}/agent": AGENT}
    return edge.render(flux="v2.7.0", agent=AgentPod(IMAGE))


def test_flux_and_the_agent_come_from_the_centre_before_anything_is_changed(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    for kind in edge.flux_kinds:
        edge.drop(f"CustomResourceDefinition/{kind}")
    done = edge.run("--yes", script=offering(edge, centre))
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.rpartition("/")[2] for path, _ in centre.fetched] == ["flux", "agent"]
    assert {authorization for _, authorization in centre.fetched} == {f"Bearer {edge.token}"}
    told = [name for _, name in edge.changes]
    in_order = [
        "Namespace/flux-system",
        f"CustomResourceDefinition/{edge.flux_kinds[0]}",
        "Kustomization/edgewright/self-link",
    ]
    assert [told.index(name) for name in in_order] == sorted(told.index(name) for name in in_order)
    assert told[-1] == "Deployment/edgewright/edgewright-agent"
    assert "NOTICE" not in done.stdout


def test_flux_that_is_there_and_fits_is_used(edge: KubectlMachine, centre: RegistrationServer) -> None:
    done = edge.run("--yes", script=offering(edge, centre))
    assert done.returncode == 0
    assert [path.rpartition("/")[2] for path, _ in centre.fetched] == ["agent"]
    assert not [name for _, name in edge.changes if "CustomResourceDefinition" in name]


def test_an_api_server_without_policies_is_attached_without_the_right_to_ask_flux(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    """RBAC alone cannot bound that right. The stand-in has none of the policies, like Kubernetes before 1.30."""
    done = edge.run("--yes", script=offering(edge, centre))
    assert (done.returncode, done.stderr) == (0, "")
    assert "no ValidatingAdmissionPolicies" in done.stdout and "comes at Flux's interval" in done.stdout
    assert [path for path, _ in centre.fetched if "fetching" in path] == []
    assert [name for _, name in edge.changes if "fetching" in name] == []


def test_what_the_centre_cannot_give_stops_the_script_before_any_change(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    offered = offering(edge, centre)
    centre.pages.clear()
    done = edge.run("--yes", script=offered)
    assert (done.returncode, edge.changes, centre.requests) == (1, [], [])
    assert "It is not there." in done.stderr
    centre.pages = {f"/v1/cluster/{edge.cluster_uuid}/install/agent": "<html>Sign in</html>"}
    assert edge.run("--yes", script=offered).returncode == 7
    assert edge.changes == []


def test_without_an_agent_it_says_so(edge: KubectlMachine) -> None:
    assert "no image of the agent" in edge.run("--yes").stdout


def test_proxies_of_this_machine_are_left_for_what_runs_on_the_cluster(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    """Its own requests go round the proxy: NO_PROXY says so."""
    proxies = {"HTTPS_PROXY": "http://user:pa55@proxy:3128", "NO_PROXY": "127.0.0.1,.plant.example"}
    done = edge.run("--yes", script=offering(edge, centre), environment=proxies)
    assert done.returncode == 0
    found = edge.held("edgewright-proxy")
    assert found["HTTPS_PROXY"] == proxies["HTTPS_PROXY"]
    assert found["NO_PROXY"].startswith(proxies["NO_PROXY"] + ",.svc,.cluster.local.,")
    assert found["NO_PROXY"].endswith(",10.43.0.1")
    assert not [call for call in edge.calls if "pa55" in str(call["args"])]


def test_refusal_takes_back_what_this_run_has_made(edge: KubectlMachine, centre: RegistrationServer) -> None:
    centre.says((409, {"detail": "Another cluster has this identity."}))
    before = edge.cluster["objects"]
    assert edge.run("--yes").returncode == 1
    edge.await_collection()
    assert edge.cluster["objects"] == before


def test_something_that_was_there_before_is_not_taken_over(edge: KubectlMachine) -> None:
    edge.set_cluster(foreign=True)
    done = edge.run("--yes", script=edge.render(files={"site.yaml": "kind: ConfigMap\nmetadata:\n  name: site\n"}))
    assert done.returncode == 0
    assert "site.yaml; something in it was here before" in done.stdout
    assert not [call for call in edge.calls if "--local" in call["args"]]
