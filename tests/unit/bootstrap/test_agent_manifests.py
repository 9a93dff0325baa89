"""What the pods of agent and detacher find in their environment."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from pod_environment import PROXY_KEYS

from edgewright.agent.fetching import SOURCES
from edgewright.agent.lifetime import ALIVE, ANSWERED, TOUCH_SECONDS, ReadinessFile, touch
from edgewright.agent.settings import read_settings
from edgewright.bootstrap import AgentPod, render_agent, render_fetching_policy, render_fetching_right
from edgewright.domain.flux_bundle import PROXY_SECRET, PROXY_VARIABLES

DEPLOYMENTS = ["edgewright-agent", "edgewright-detach"]
POD = AgentPod("registry.example.com/edgewright:1")


def deployments(pod: AgentPod = POD) -> list[dict[str, Any]]:
    manifests = yaml.safe_load_all(render_agent(pod, namespace="plant"))
    return [one for one in manifests if one["kind"] == "Deployment"]


def pods(pod: AgentPod = POD) -> dict[str, dict[str, Any]]:
    """What each Deployment's pods are specified to be, by the Deployment's name."""
    return {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in deployments(pod)}


def containers() -> dict[str, dict[str, Any]]:
    """The container of each Deployment, by the Deployment's name."""
    return {name: container for name, pod in pods().items() for container in pod["containers"]}


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_pod_runs_on_linux_and_names_only_what_the_centre_was_told(deployment: str) -> None:
    plain = pods()[deployment]
    assert plain["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert not {"imagePullSecrets", "priorityClassName"} & plain.keys()
    told = pods(AgentPod("registry.example.com/edgewright:1", "registry-login", "system-cluster-critical"))[
        deployment
    ]
    assert told["imagePullSecrets"] == [{"name": "registry-login"}]
    assert told["priorityClassName"] == "system-cluster-critical"
    assert told["containers"] == plain["containers"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_pod_is_alive_as_long_as_its_program_says_so(deployment: str, tmp_path: Path) -> None:
    """The probe of the manifest, run on a file of ours: fresh, then old, then gone."""
    pod = pods()[deployment]
    [container] = pod["containers"]
    [mount] = container["volumeMounts"]
    assert mount["mountPath"] == str(ALIVE.parent)
    [volume] = pod["volumes"]
    assert volume == {"name": mount["name"], "emptyDir": {"medium": "Memory", "sizeLimit": "64Ki"}}
    probe = container["livenessProbe"]
    patience = probe["failureThreshold"] * probe["periodSeconds"] if "failureThreshold" in probe else 180
    assert patience > 2 * TOUCH_SECONDS  # a clock that jumps ahead is no reason to be killed
    program, option, command = probe["exec"]["command"]
    assert program == "python"  # the image need not have anything else that can be run
    assert str(ALIVE) in command
    file = tmp_path / "alive"
    command = command.replace(str(ALIVE), str(file))

    def passes() -> bool:
        return subprocess.run([sys.executable, option, command], capture_output=True, check=False).returncode == 0

    assert not passes()
    touch(file)
    assert passes()
    os.utime(file, (time.time() - 600, time.time() - 600))
    assert not passes()
    touch(file)
    assert passes()


def test_a_pod_of_the_agent_takes_over_once_the_centre_has_answered_it(tmp_path: Path) -> None:
    """The probe of the manifest, run on a file of ours, and what a new pod replaces before."""
    [deployment] = [each for each in deployments() if each["metadata"]["name"] == "edgewright-agent"]
    assert deployment["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    program, option, command = container["readinessProbe"]["exec"]["command"]
    assert program == "python" and str(ANSWERED) in command
    file = tmp_path / "answered"

    def probed() -> tuple[int, str]:
        probe = [sys.executable, option, command.replace(str(ANSWERED), str(file))]
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr.strip()

    assert probed() == (1, "no answer from the centre")
    readiness = ReadinessFile(file)
    assert probed()[0] == 1, "it has only started"
    readiness.tell()
    assert probed() == (0, "")
    ReadinessFile(file)
    assert probed()[0] == 1, "what another process in the same pod has heard says nothing"


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
def test_a_pod_takes_three_named_keys_and_no_whole_secret(deployment: str) -> None:
    container = containers()[deployment]
    assert "envFrom" not in container
    assert [each for each in container["env"] if "valueFrom" in each] == PROXY_KEYS


def test_the_agent_is_told_the_image_that_it_runs_from() -> None:
    container = containers()["edgewright-agent"]
    told = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    assert read_settings(told).image == container["image"] == POD.image
    assert containers()["edgewright-detach"]["env"] == PROXY_KEYS


def test_agent_and_flux_take_the_same_keys_of_the_same_secret() -> None:
    assert [each["name"] for each in PROXY_KEYS] == list(PROXY_VARIABLES)
    assert {each["valueFrom"]["secretKeyRef"]["name"] for each in PROXY_KEYS} == {PROXY_SECRET}


def test_the_policy_is_about_the_agent_of_its_namespace_and_the_right_is_bounded_by_it() -> None:
    *_, policy, binding = yaml.safe_load_all(render_fetching_policy(namespace="plant"))
    right, bound, look, _ = yaml.safe_load_all(render_fetching_right(namespace="plant"))
    [condition] = policy["spec"]["matchConditions"]
    assert "'system:serviceaccount:plant:edgewright-agent'" in condition["expression"]
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    assert policy["spec"]["failurePolicy"] == "Fail"
    [rule] = right["rules"]
    assert rule["verbs"] == ["patch"] and set(rule["resourceNames"]) == set(SOURCES)
    assert [each["namespace"] for each in bound["subjects"]] == [bound["metadata"]["namespace"]] == ["plant"]
    assert [(rule["verbs"], rule["resourceNames"]) for rule in look["rules"]] == [
        (["get"], [policy["metadata"]["name"]])
    ]
    [matched] = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (matched["apiGroups"], matched["resources"]) == (rule["apiGroups"], rule["resources"])


def test_the_bounds_are_about_the_agent_and_about_every_right_by_which_it_changes_something() -> None:
    """Patching Flux's sources has a policy of its own."""
    policy, binding, *_ = yaml.safe_load_all(render_fetching_policy(namespace="plant"))
    [condition] = policy["spec"]["matchConditions"]
    assert condition["expression"] == "request.userInfo.username == 'system:serviceaccount:plant:edgewright-agent'"
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
    assert policy["spec"]["failurePolicy"] == "Fail"
    [role] = [
        one
        for one in yaml.safe_load_all(render_agent(POD, namespace="plant"))
        if (one["kind"], one["metadata"]["name"]) == ("Role", "edgewright-agent")
    ]
    changing = {each for rule in role["rules"] if "patch" in rule["verbs"] for each in rule["resources"]}
    bounded = {each for rule in policy["spec"]["matchConstraints"]["resourceRules"] for each in rule["resources"]}
    assert bounded == changing == {"secrets", "deployments/scale"}
