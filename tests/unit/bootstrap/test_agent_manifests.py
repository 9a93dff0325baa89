"""What the pods of agent and detacher find in their environment."""

from typing import Any

import pytest
import yaml
from pod_environment import PROXY_KEYS

from edgewright.bootstrap import render_agent
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
