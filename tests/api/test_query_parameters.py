"""Query parameters that a path does not know are refused, and not left out."""

import re
from uuid import uuid4

import httpx
import pytest
from gateway_centre import CONFIGURATION_APP, GatewayCentre
from tour import DOCUMENT, OPERATIONS

from edgewright.domain.wellknown import CLASS_EDGE_CLUSTER
from edgewright.ports.operators import Permission

STRANGE = {"no-such-parameter": "1"}
STORE = "config store"


def path_of(template: str) -> str:
    """A path that the template matches; what it names need not be there."""
    return re.sub(r"\{(\w*uuid|app)\}", str(uuid4()), template).replace("{", "").replace("}", "")


def of_operators() -> list[tuple[str, str]]:
    """The operations under /v1 that only an operator token opens, without those of the Config Store."""
    return [
        (method, template)
        for method, template in OPERATIONS
        for operation in [DOCUMENT["paths"][template][method.lower()]]
        if template.startswith("/v1/") and "x-permission" in operation and STORE not in operation["tags"]
    ]


async def test_no_operation_of_operators_passes_over_a_parameter(admin: httpx.AsyncClient) -> None:
    operations = of_operators()
    assert len(operations) > 40
    for method, template in operations:
        refused = await admin.request(method, path_of(template), params=STRANGE)
        problem = refused.json()
        assert (refused.status_code, problem["code"], problem["where"]) == (422, "query_unknown", "query"), template
        assert problem["detail"].startswith("no-such-parameter is not"), template
        names = [each["name"] for each in parameters_of(method, template)]
        assert all(name in problem["hint"] for name in names), template


def parameters_of(method: str, template: str) -> list[dict[str, str]]:
    declared = DOCUMENT["paths"][template][method.lower()].get("parameters", [])
    return [each for each in declared if each["in"] == "query"]


@pytest.mark.parametrize(
    ("query", "sentence", "hint"),
    [
        ("phse=Active", "phse is not a query parameter of this path.", "Did you mean phase?"),
        ("phase=Active&Limit=5", "Limit is not a query parameter of this path.", "Did you mean limit?"),
        ("zzz", "zzz is not a query parameter of this path.", "Use one of: after, available, blocked, "),
        ("=x", "The URL has a query parameter that is not a query parameter of this path.", "Use one of: "),
        ("%24(rm+-rf+%2F)=x", "The URL has a query parameter that is not a", "Use one of: "),
        (f"ew_{'a' * 50}", "The URL has a query parameter that is not a", "Use one of: "),
    ],
)
async def test_the_answer_names_the_parameter_and_the_nearest_one(
    admin: httpx.AsyncClient, query: str, sentence: str, hint: str
) -> None:
    refused = await admin.get(f"/v1/cluster?{query}")
    assert (refused.status_code, refused.json()["code"]) == (422, "query_unknown")
    assert refused.json()["detail"].startswith(sentence)
    assert refused.json()["hint"].startswith(hint)
    assert "aaaa" not in refused.text


async def test_known_parameters_and_none_pass(admin: httpx.AsyncClient) -> None:
    for query in ("", "?", "?limit=5&name=a", "?label=a=b&label=c=d"):
        assert (await admin.get(f"/v1/cluster{query}")).status_code == 200, query


async def test_whoever_may_not_ask_learns_only_that(centre: GatewayCentre, anybody: httpx.AsyncClient) -> None:
    assert (await anybody.get("/v1/cluster", params=STRANGE)).status_code == 401
    reader = await centre.operator(Permission.READ)
    assert (await reader.post("/v1/cluster", params=STRANGE)).status_code == 403


async def test_clients_of_acs_edges_and_pages_may_add_parameters(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("press-shop")
    edge = centre.client((await centre.register(cluster)).as_agent)
    for answer in (
        await admin.get(f"/v1/app/{CONFIGURATION_APP}/object", params=STRANGE),
        await admin.get(f"/v1/app/{CONFIGURATION_APP}/object/{cluster}", params=STRANGE),
        await admin.get(f"/v1/class/{CLASS_EDGE_CLUSTER}/member", params=STRANGE),
        await admin.get(f"/v1/app/{CONFIGURATION_APP}/search", params={"anything": '"x"'}),
        await admin.get(f"/uuid/{cluster}/info/refs", params={"service": "git-upload-pack", **STRANGE}),
        await admin.get("/metrics", params=STRANGE),
        await admin.get("/ping", params=STRANGE),
        await edge.post("/v1/agent/heartbeat", params=STRANGE),
    ):
        assert answer.status_code == 200, answer.request.url
