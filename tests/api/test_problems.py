"""What every answer has, and what becomes of requests that are none."""

import asyncio
import inspect
import json
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import AsyncMock
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from gateway_centre import GatewayCentre, gateway_centre, make_database

from api import lifespan
from api.app import ROUTERS, create_app, described
from api.openapi import PLACE, text
from edgewright.adapters.database.migrations import OtherSchema
from edgewright.domain.credentials import operator_token, registration_token
from edgewright.domain.events import EventKind
from edgewright.errors import Stalled, Waiting
from edgewright.ports.operators import Permission

INFO_APP = "64a8bfa9-7772-45c4-9d1a-9e6290690957"
FLUX_APP = "72804a19-636b-4836-b62b-7ad1476f2b86"


async def test_every_answer_carries_a_request_id(anybody: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    for answer in (
        await anybody.get("/ping"),
        await anybody.get("/v1/cluster"),
        await anybody.get("/nowhere"),
        await admin.get(f"/v1/cluster/{uuid4()}"),
        await anybody.get("/v1/cluster/x/bootstrap"),
    ):
        assert len(answer.headers["X-Request-Id"]) == 32
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    problem = await anybody.get("/nowhere")
    assert problem.json()["request_id"] == problem.headers["X-Request-Id"]


async def test_a_sane_request_id_is_kept_and_another_is_not(anybody: httpx.AsyncClient) -> None:
    kept = await anybody.get("/ping", headers={"X-Request-Id": "trace-42.a_b"})
    assert kept.headers["X-Request-Id"] == "trace-42.a_b"
    for bad in ("x" * 65, "a b", "", '"><script>'):
        answer = await anybody.get("/ping", headers={"X-Request-Id": bad})
        assert answer.headers["X-Request-Id"] != bad


async def test_a_token_that_is_sent_as_request_id_goes_into_no_log(
    anybody: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    token = operator_token(b"8" * 8, b"3" * 32).text
    answer = await anybody.get("/v1/cluster", headers={"X-Request-Id": token})
    assert token not in answer.headers["X-Request-Id"] + answer.text + "".join(capsys.readouterr())


async def test_unknown_paths_and_methods_are_problems(anybody: httpx.AsyncClient) -> None:
    nowhere = await anybody.get("/v1/nosuch")
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "route_unknown")
    method = await anybody.post("/ping")
    assert (method.status_code, method.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in method.headers["Allow"]
    for answer in (nowhere, method):
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"] == f"urn:edgewright:problem:{answer.json()['code']}"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "json_malformed"),
        (b"{", 400, "json_malformed"),
        (b'{"name": NaN}', 400, "json_malformed"),
        (b'{"name": 1e999}', 400, "json_malformed"),
        (b'{"name": "\\ud800"}', 400, "json_malformed"),
        (b'{"name": "\xff"}', 400, "json_malformed"),
        (b'{"name": "a\\u0000b"}', 400, "json_malformed"),
        (b'{"a\\\\\\u0000b": 1}', 400, "json_malformed"),
        (b"[" * 100_000, 422, "json_too_deep"),
        (b'{"name": ' + b"[" * 150 + b"]" * 150 + b"}", 422, "json_too_deep"),
        (b" " * (1024 * 1024 + 1), 413, "too_large"),
    ],
)
async def test_bodies_that_are_none_are_refused(
    admin: httpx.AsyncClient, body: bytes, status: int, code: str
) -> None:
    for method, path in (("POST", "/v1/cluster"), ("PUT", f"/v1/app/{INFO_APP}/object/{FLUX_APP}")):
        answer = await admin.request(method, path, content=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), path


async def test_a_body_in_pieces_is_bounded_too(admin: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65536

    answer = await admin.post("/v1/cluster", content=endless())
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_a_body_without_a_content_type_is_json(admin: httpx.AsyncClient) -> None:
    for number, content_type in enumerate(("application/x-www-form-urlencoded", "text/plain", "")):
        answer = await admin.post(
            "/v1/cluster", content=json.dumps({"name": f"c{number}"}), headers={"Content-Type": content_type}
        )
        assert answer.status_code == 201, content_type


async def test_an_unexpected_error_shows_nothing_of_itself(
    centre: GatewayCentre, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        async def page(self, _filter: object) -> object:
            raise RuntimeError("marked-internal-text")

    ports = replace(centre.ports, directory=Broken())  # type: ignore[arg-type] # meant to break
    app: FastAPI = create_app(replace(centre.gateway, ports=ports))
    client = await centre.operator(Permission.READ)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=client.headers) as broken:
        answer = await broken.get("/v1/cluster")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert answer.headers["X-Request-Id"] == answer.json()["request_id"]
    shown = capfd.readouterr()
    seen = answer.text + shown.out + shown.err + caplog.text
    assert "marked-internal-text" not in seen
    assert "RuntimeError" in shown.out + shown.err + caplog.text


async def test_query_strings_are_not_logged(
    anybody: httpx.AsyncClient, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    await anybody.get(f"/v1/cluster/{uuid4()}/bootstrap", params={"token": "marked-token"})
    shown = capfd.readouterr()
    logged = shown.out + shown.err + caplog.text
    assert "/bootstrap" in logged
    assert "marked-token" not in logged


async def test_a_token_that_bad_quoting_moved_into_the_path_is_not_logged(
    anybody: httpx.AsyncClient, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    token = registration_token(bytes(8), bytes(range(32))).text
    answer = await anybody.get(f"/v1/cluster/{uuid4()}/bootstrap%3Ftoken={token}")
    shown = capfd.readouterr()
    logged = shown.out + shown.err + caplog.text
    assert "/bootstrap" in logged
    assert token not in logged
    assert answer.text.startswith("#!/bin/sh\n")


async def test_ping_says_who_this_is(anybody: httpx.AsyncClient) -> None:
    body = (await anybody.get("/ping")).json()
    assert UUID(body["service"]) == UUID("2706aa43-a826-441e-9cec-cd3d4ce623c2")
    assert set(body) == {"service", "version", "software", "installation"}
    assert set(body["software"]) == {"vendor", "application", "revision"}


async def test_all_gateways_of_a_centre_say_the_same_of_it(centre: GatewayCentre) -> None:
    here = uuid4()
    transport = httpx.ASGITransport(create_app(replace(centre.gateway, installation=here)))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as anybody:
        assert (await anybody.get("/ping")).json()["installation"] == str(here)


async def test_readiness_names_the_part_and_forgives_temporal(
    centre: GatewayCentre, anybody: httpx.AsyncClient
) -> None:
    assert (await anybody.get("/healthz")).status_code == 200
    assert (await anybody.get("/readyz")).json() == {"status": "ok", "degraded": []}
    centre.fleet.available = False
    assert (await anybody.get("/readyz")).json() == {"status": "ok", "degraded": ["temporal"]}

    class Away:
        def exists(self, _repository: UUID) -> bool:
            raise Waiting("The disk is away.", code="git_unavailable")

    ports = replace(centre.ports, git=Away())  # type: ignore[arg-type] # only what the probe calls
    app = create_app(replace(centre.gateway, ports=ports))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["where"]) == (503, "git")


async def test_a_volume_that_is_not_mounted_is_no_git_storage(
    centre: GatewayCentre, anybody: httpx.AsyncClient, tmp_path: Path
) -> None:
    centre.git.root.rename(tmp_path / "elsewhere")
    centre.git.root.mkdir()
    answer = await anybody.get("/readyz")
    assert (answer.status_code, answer.json()["where"]) == (503, "git")


async def test_a_gateway_whose_background_tasks_died_is_not_ready(
    centre: GatewayCentre, anybody: httpx.AsyncClient
) -> None:
    centre.app.state.live.broken.add("heartbeats")
    answer = await anybody.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "gateway_broken")


async def test_a_database_that_cannot_be_written_makes_no_ready_gateway(
    centre: GatewayCentre, anybody: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifespan, "LISTENING_SECONDS", 0.01)
    reports, live = centre.ports.edge_reports, centre.app.state.live
    kept, full = reports.keep_listening, Stalled("edgewright.db cannot be written: its disk is full.")
    monkeypatch.setattr(reports, "keep_listening", AsyncMock(side_effect=full))  # no disk is filled for this
    async with lifespan.running(centre.gateway, live):
        while (answer := await anybody.get("/readyz")).status_code == 200:  # the answer of a write before may stand
            await asyncio.sleep(0.01)
        assert (answer.status_code, answer.json()["where"]) == (503, "database")
        monkeypatch.setattr(reports, "keep_listening", kept)
        await eventually(lambda: not live.unwritable.is_set())
        assert (await anybody.get("/readyz")).status_code == 200


async def test_a_sweep_that_stands_still_is_told(
    centre: GatewayCentre, anybody: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = centre.ports.edge_reports
    await reports.keep_listening()
    assert (await anybody.get("/readyz")).json()["degraded"] == []
    six_minutes = AsyncMock(return_value=timedelta(minutes=6))  # they are not waited for
    monkeypatch.setattr(reports, "sweep_age", six_minutes)
    answer = await anybody.get("/readyz")
    assert (answer.status_code, answer.json()["degraded"]) == (200, ["sweep"])


async def test_a_sweep_that_is_paused_is_told_at_once(centre: GatewayCentre, anybody: httpx.AsyncClient) -> None:
    centre.fleet.sweep_paused = True
    answer = await anybody.get("/readyz")
    assert (answer.status_code, answer.json()["degraded"]) == (200, ["sweep_paused"])
    centre.fleet.available = False
    assert (await anybody.get("/readyz")).json()["degraded"] == ["temporal"]


async def test_a_schedule_of_the_sweep_that_is_gone_is_made_again(
    centre: GatewayCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifespan, "SCHEDULE_SECONDS", 0.01)
    centre.fleet.sweep_is_missing = True
    async with lifespan.running(centre.gateway, centre.app.state.live):
        await eventually(lambda: not centre.fleet.sweep_is_missing)


async def test_a_gateway_leaves_when_a_newer_version_has_migrated_its_database(
    centre: GatewayCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", left.append)  # else the test leaves
    newer = OtherSchema("The database has the schema 9999, of a newer Edgewright.", code="schema_newer")
    gateway = replace(centre.gateway, demand_schema=AsyncMock(side_effect=newer))
    async with lifespan.running(gateway, centre.app.state.live):
        await eventually(lambda: left == [signal.SIGTERM])


async def eventually(condition: Callable[[], bool]) -> None:
    """Returns when a condition holds that the background tasks bring about."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_metrics_label_routes_by_their_template(centre: GatewayCentre) -> None:
    reader = await centre.operator(Permission.READ)
    uuid = uuid4()
    await reader.get(f"/v1/cluster/{uuid}")
    await reader.get("/some/where/else")
    text_ = (await reader.get("/metrics")).text
    series = 'edgewright_http_requests_total{method="GET",route="/v1/cluster/{uuid}",status="404"} 1.0'
    assert series in text_
    assert str(uuid) not in text_
    assert "/some/where" not in text_


async def test_the_openapi_document_is_complete(anybody: httpx.AsyncClient) -> None:
    document = (await anybody.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    names = {
        f"#/components/{kind}/{name}" for kind in ("schemas", "examples") for name in document["components"][kind]
    }
    references = set()
    stack = [document]
    while stack:
        found = stack.pop()
        for key, value in found.items() if isinstance(found, dict) else enumerate(found):
            if key == "$ref":
                references.add(value)
            elif isinstance(value, dict | list):
                stack.append(value)
    assert references <= names
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["tags"], (method, path)
            assert operation["summary"], (method, path)
            assert "security" in operation, (method, path)
            assert "application/problem+json" in operation["responses"]["default"]["content"], (method, path)
    created = document["paths"]["/v1/cluster"]["post"]
    assert created["x-permission"] == "clusters"
    assert created["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/NewCluster")
    assert document["components"]["schemas"]["NewCluster"]["examples"]


def test_generators_find_the_headers_and_the_body_of_a_secret() -> None:
    paths = described()["paths"]
    secret = paths["/v1/cluster/{uuid}/secret/{namespace}/{name}/{key}"]["put"]
    assert list(secret["requestBody"]["content"]) == ["application/octet-stream"]
    assert "Edgewright-Commit" in secret["responses"]["204"]["headers"]
    entry = paths["/v1/app/{app}/object/{object_uuid}"]
    assert {"ETag", "X-Request-Id"} <= entry["get"]["responses"]["200"]["headers"].keys()
    assert "Retry-After" in entry["put"]["responses"]["default"]["headers"]


def test_generators_find_short_names_for_operations() -> None:
    operations = [operation for methods in described()["paths"].values() for operation in methods.values()]
    names = Counter(operation["operationId"] for operation in operations)
    assert {"put_secret", "create_cluster", "delete_entry", "get_entry", "get_entry_v2", "timeline"} <= names.keys()
    assert set(names.values()) == {1}
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*(_v2)?", name) for name in names)


@pytest.mark.parametrize(
    ("reader", "names"),
    [
        ("precondition_of(", {"If-Match"}),
        ("not_modified(", {"If-None-Match"}),
        ("idempotency_key(", {"Idempotency-Key"}),
        ("once_of(", {"Idempotency-Key"}),
    ],
)
def test_each_header_that_a_handler_reads_is_declared(reader: str, names: set[str]) -> None:
    paths = described()["paths"]
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            if not route.include_in_schema or reader not in inspect.getsource(route.endpoint):
                continue
            for method in route.methods or ():
                declared = paths[route.path_format][method.lower()].get("parameters", ())
                assert names <= {each["name"] for each in declared if each["in"] == "header"}, route.path_format


def test_clients_find_the_kinds_of_events_in_the_openapi_document() -> None:
    schemas = described()["components"]["schemas"]
    assert schemas["Event"]["properties"]["kind"] == {"$ref": "#/components/schemas/EventKind"}
    assert schemas["EventKind"]["enum"] == [kind.value for kind in EventKind]


def test_the_openapi_document_in_docs_is_current() -> None:
    assert PLACE.read_text("utf-8") == text(), "run: python -m api.openapi"


async def test_the_documentation_is_served(anybody: httpx.AsyncClient) -> None:
    assert (await anybody.get("/docs")).status_code == 200


async def test_background_tasks_write_heartbeats_at_the_end(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("closing")
    await make_database(folder / "x.db")
    async with gateway_centre(folder / "x.db", folder / "git") as centre:
        cluster = await centre.create("last-beat")
        edge = await centre.register(cluster)
        await centre.client(edge.as_agent).post("/v1/agent/heartbeat")
    async with gateway_centre(folder / "x.db", folder / "git") as centre:
        assert (await centre.row(cluster)).lease.last_heard is not None
