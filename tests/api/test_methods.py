"""HEAD on every GET, and what a path says that can be done there."""

import asyncio
import re
from uuid import uuid4

import httpx
import pytest
from gateway_centre import CONFIGURATION_APP, GatewayCentre
from tour import OPERATIONS

from edgewright.domain.wellknown import CLASS_EDGE_CLUSTER, SERVICE_CLUSTER_MANAGER

ENDLESS = "/v1/events"


def paths() -> dict[str, set[str]]:
    """The methods of each path of the document."""
    found: dict[str, set[str]] = {}
    for method, path in OPERATIONS:
        found.setdefault(path, set()).add(method)
    return found


def filled(path: str) -> str:
    return path.replace("{service}", "x").replace("{name}", "x").replace("{key}", "x").replace("{namespace}", "x")


async def test_head_says_what_get_says_without_the_body(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("headed")
    entry = f"/v1/app/{CONFIGURATION_APP}/object/{cluster}"
    for path in (
        "/",
        "/ping",
        "/healthz",
        "/v1/cluster",
        entry,
        f"/v1/cluster/{cluster}/status",
        f"/v1/cluster/{uuid4()}",
    ):
        got, head = await admin.get(path), await admin.head(path)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        for header in ("ETag", "Content-Type", "Content-Length"):
            if header != "Content-Length" or path == entry:
                assert head.headers.get(header) == got.headers.get(header), (path, header)


async def test_head_of_every_get_has_its_status_and_headers(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("walked")
    fills = {
        **dict.fromkeys(("uuid", "object", "cluster", "object_"), str(cluster)),
        "app": str(CONFIGURATION_APP),
        "klass": str(CLASS_EDGE_CLUSTER),
        "name": "walked",
        "service_uuid": str(SERVICE_CLUSTER_MANAGER),
    }
    walked: dict[str, int] = {}
    for path, methods in paths().items():
        if "GET" not in methods or path == ENDLESS:
            continue
        url = re.sub(r"\{(\w+)[^}]*\}", lambda found: str(fills.get(found[1], "x")), path)
        query = {"service": "git-upload-pack"} if url.endswith("/info/refs") else None
        got, head = await admin.get(url, params=query), await admin.head(url, params=query)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert lasting(head.headers) == lasting(got.headers), path
        walked[path] = got.status_code
    assert len(walked) > 30
    assert sum(status == 200 for status in walked.values()) > len(walked) / 2, walked


def lasting(headers: httpx.Headers) -> dict[str, str]:
    """Without those that are of one answer, or that HEAD need not tell (RFC 9110, 9.3.2)."""
    return {name: value for name, value in headers.items() if name not in {"content-length", "date", "x-request-id"}}


async def test_head_of_a_stream_ends(admin: httpx.AsyncClient) -> None:
    answer = await asyncio.wait_for(admin.head(ENDLESS), 20)
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")


@pytest.mark.parametrize("path", sorted({path for path in paths() if "{" not in path}))
async def test_head_is_answered_wherever_get_is(admin: httpx.AsyncClient, path: str) -> None:
    if "GET" in paths()[path]:
        assert (await admin.head(path)).status_code != 405


async def test_a_path_says_everything_that_can_be_done_there(admin: httpx.AsyncClient) -> None:
    for path, methods in paths().items():
        answer = await admin.request("TRACE", filled(path).replace("{", "").replace("}", ""))
        known = methods | ({"HEAD"} if "GET" in methods else set())
        assert answer.status_code in {405, 403 if path.endswith("/bootstrap") else 405}, (
            path
        )  # there, `sh` reads the answer
        assert known <= set(answer.headers["Allow"].split(", ")), path
