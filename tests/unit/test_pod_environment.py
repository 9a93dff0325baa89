"""The kubelet of the tests gives a container what a real one would."""

from base64 import b64encode
from typing import Any

import pytest
from pod_environment import NotYet, arguments_of, variables_of

POD = {"metadata": {"namespace": "plant"}}
SECRETS = {"proxy": {"HTTPS_PROXY": b64encode(b"http://proxy:3128").decode(), "OTHER": b64encode(b"x").decode()}}


def given(**container: Any) -> dict[str, str]:
    return dict(variables_of(POD, container, SECRETS.get))


def key_of(secret: str, key: str, **more: bool) -> dict[str, Any]:
    return {"name": "HTTPS_PROXY", "valueFrom": {"secretKeyRef": {"name": secret, "key": key, **more}}}


def test_one_key_of_a_secret_brings_no_other() -> None:
    assert given(env=[key_of("proxy", "HTTPS_PROXY")]) == {"HTTPS_PROXY": "http://proxy:3128"}


@pytest.mark.parametrize(("secret", "key"), [("absent", "HTTPS_PROXY"), ("proxy", "NO_PROXY")])
def test_only_what_is_optional_may_be_absent(secret: str, key: str) -> None:
    assert given(env=[key_of(secret, key, optional=True)]) == {}
    with pytest.raises(NotYet):
        given(env=[key_of(secret, key)])


def test_a_whole_secret_brings_every_key_and_single_variables_replace_them() -> None:
    whole = [{"secretRef": {"name": "proxy"}}, {"secretRef": {"name": "absent", "optional": True}}]
    assert given(envFrom=whole, env=[{"name": "OTHER", "value": "y"}]) == {
        "HTTPS_PROXY": "http://proxy:3128",
        "OTHER": "y",
    }
    with pytest.raises(NotYet):
        given(envFrom=[{"secretRef": {"name": "absent"}}])


def test_fields_of_the_pod_and_empty_values() -> None:
    field = {"name": "RUNTIME_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    assert given(env=[field, {"name": "EMPTY"}]) == {"RUNTIME_NAMESPACE": "plant", "EMPTY": ""}


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.memory", None, "1073741824"),
        ("limits.memory", "0", "1073741824"),
        ("limits.memory", "1Mi", "1024"),
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.memory", "1M", "68"),
    ],
)
def test_resources_are_counted_in_multiples_of_the_divisor_and_rounded_up(
    resource: str, divisor: str | None, value: str
) -> None:
    reference = {"resource": resource, "containerName": "manager"} | ({"divisor": divisor} if divisor else {})
    variable = {"name": "GOMEMLIMIT", "valueFrom": {"resourceFieldRef": reference}}
    resources = {"limits": {"cpu": "1500m", "memory": "1Gi"}, "requests": {"memory": "64Mi"}}
    assert given(env=[variable], resources=resources) == {"GOMEMLIMIT": value}


def test_arguments_name_variables() -> None:
    container = {"args": ["--at=$(NAME).$(OTHER)", "--dollar=$$(NAME)", "--plain"]}
    assert arguments_of(container, {"NAME": "plant"}) == ["--at=plant.$(OTHER)", "--dollar=$(NAME)", "--plain"]
