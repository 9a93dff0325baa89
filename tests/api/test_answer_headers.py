"""Headers and ends that the OpenAPI document declares are those that the gateway sends."""

from typing import Any
from uuid import UUID

import httpx
import pytest
from gateway_centre import CONFIGURATION_APP, GatewayCentre, fence_of
from tour import DOCUMENT, OPERATIONS, undeclared_headers

from edgewright.domain.cluster import StepName

SECRET_CHANGE = {"namespace": "default", "name": "db", "key": "password", "value_base64": "eA=="}
BODIES: dict[tuple[str, str], dict[str, object]] = {
    ("POST", "/v1/cluster/{uuid}/certificate"): {"fingerprint": "0" * 64},
    ("PATCH", "/v1/cluster/{uuid}/secret/{namespace}/{name}"): {"labels": {"app": "press"}},
    ("POST", "/v1/cluster/{uuid}/secret"): {"changes": [SECRET_CHANGE]},
    ("POST", "/v1/cluster/{uuid}/step/{name}/skip"): {"reason": "scrap"},
    ("POST", "/v1/cluster/{uuid}/upgrade"): {"component": "agent"},
}
"""What an operation needs before it looks for its cluster; the others take an empty object."""
OF_CLUSTERS = sorted(
    operation
    for operation in OPERATIONS
    if "{uuid}" in operation[1] or "/app/{app}/object/{object_uuid}" in operation[1]
)


@pytest.fixture
async def deleted(centre: GatewayCentre, admin: httpx.AsyncClient) -> UUID:
    cluster = await centre.create("gone")
    await admin.delete(f"/v1/cluster/{cluster}")
    row = await centre.row(cluster)
    await centre.steps.remove_central_entries(fence_of(row), StepName.REMOVE_SETUP_STATUS)
    return cluster


def filled(template: str, cluster: UUID) -> str:
    """A path that the operation takes, up to the question whose it is."""
    step = "populate_repository" if "/step/" in template else "gone"
    names = {"uuid": cluster, "object_uuid": cluster, "app": CONFIGURATION_APP, "service": "git-receive-pack"}
    return template.format(**names, namespace="default", name=step, key="password")


async def test_the_end_of_a_cluster_is_declared_exactly_where_it_is_answered(
    admin: httpx.AsyncClient, deleted: UUID
) -> None:
    answered, declared = set(), set()
    for method, template in OPERATIONS:
        if "410" in DOCUMENT["paths"][template][method.lower()]["responses"]:
            declared.add((method, template))
    for method, template in OF_CLUSTERS:
        body = BODIES.get((method, template), {})
        params = {"service": "git-upload-pack"} if template.endswith("/info/refs") else None
        given: dict[str, Any] = {} if method == "GET" else {"json": body}
        answer = await admin.request(method, filled(template, deleted), params=params, **given)
        assert not undeclared_headers(method, template, answer.status_code, answer.headers), (method, template)
        if answer.status_code == 410:
            answered.add((method, template))
    assert answered == declared
    assert len(answered) > 25


async def test_headers_of_refusals_are_declared_wherever_they_are_sent(anybody: httpx.AsyncClient) -> None:
    for method, template in OPERATIONS:
        path = template.replace("{", "").replace("}", "")
        refused = await anybody.request(method, path)
        assert not undeclared_headers(method, template, refused.status_code, refused.headers), (method, template)
        other = await anybody.request("TRACE", path)
        assert not undeclared_headers(method, template, other.status_code, other.headers), (method, template)
