"""What the pods of agent and detacher find in their environment."""

from typing import Any

import pytest
import yaml
from pod_environment import PROXY_KEYS

from edgewright.agent.fetching import SOURCES
from edgewright.bootstrap import render_agent, render_fetching_policy, render_fetching_right
from edgewright.domain.flux_bundle import PROXY_SECRET, PROXY_VARIABLES


def containers() -> dict[str, dict[str, Any]]:
    """The container of each Deployment, by the Deployment's name."""
    manifests = yaml.safe_load_all(render_agent(namespace="plant", image="registry.example.com/edgewright:1"))
    return {
        one["metadata"]["name"]: container
        for one in manifests
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    }


@pytest.mark.parametrize("deployment", ["edgewright-agent", "edgewright-detach"])
def test_a_pod_takes_three_named_keys_and_no_whole_secret(deployment: str) -> None:
    container = containers()[deployment]
    assert "envFrom" not in container
    assert container["env"] == PROXY_KEYS


def test_agent_and_flux_take_the_same_keys_of_the_same_secret() -> None:
    assert [each["name"] for each in PROXY_KEYS] == list(PROXY_VARIABLES)
    assert {each["valueFrom"]["secretKeyRef"]["name"] for each in PROXY_KEYS} == {PROXY_SECRET}


def test_the_policy_is_about_the_agent_of_its_namespace_and_the_right_is_bounded_by_it() -> None:
    policy, binding = yaml.safe_load_all(render_fetching_policy(namespace="plant"))
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
