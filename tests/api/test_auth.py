"""Who gets in where. The matrix is made of the application's own routes: a new one that is open fails here."""

import re
import secrets as random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi.routing import APIRoute
from gateway_centre import STATUS_APP, EdgeCredentials, GatewayCentre, basic, bearer

from api.app import ROUTERS, create_app
from edgewright.domain.cluster import CredentialState, Role
from edgewright.domain.credentials import cluster_secret, operator_token, registration_token
from edgewright.errors import Waiting
from edgewright.ports.operators import Permission

OPEN = {
    ("GET", "/"),
    ("GET", "/ping"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    # The image holds no secret, and nodes that pull it have no credential.
    *(("GET", f"/v2{rest}") for rest in ("", "/")),
    *(("GET", f"/v2/edgewright/agent/{rest}") for rest in ("tags/list", "manifests/{reference}", "blobs/{digest}")),
    # It holds no secret, and whoever needs it may have no cluster and no token any more.
    *((method, "/v1/uninstall.sh") for method in ("GET", "HEAD")),
    # The bootstrap path wants its token in the query and answers with a script; see test_bootstrap.
    *((method, f"/v1/cluster/{{uuid}}/bootstrap{slash}") for method in ("GET", "HEAD") for slash in ("", "/")),
}
REGISTRATION = registration_token(bytes(8), bytes(32)).text
ANY_CALLER = re.compile(r"/(git|uuid)/|/v[12]/app/\{app\}/object/\{object_uuid\}$|^/token$|^/v1/service/")
AGENT = re.compile(r"^/v1/agent/")
OF_EDGES = re.compile(r"^/v1/agent/|^/token$|^/v1/service/")
PERMISSION = {
    "verbs": Permission.CLUSTERS,
    "bootstrap": Permission.CLUSTERS,
    "tokens": Permission.ADMIN,
    "webhook": Permission.ADMIN,
    "health": Permission.READ,
    "progress": Permission.READ,
}


def routes() -> Iterator[tuple[str, str, str]]:
    """Method, path and tag of every route."""
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            for method in sorted(route.methods or ()):
                yield method, route.path, str(route.tags[0])


def filled(path: str) -> str:
    """The path with something in each of its places that names nothing."""
    return re.sub(r"\{(\w+)\}", lambda match: "x" if match[1] in WORDS else str(uuid4()), path)


WORDS = {"name", "key", "namespace", "service", "token_id"}
PROTECTED = [(method, path, tag) for method, path, tag in routes() if (method, path) not in OPEN]


def needed(method: str, path: str, tag: str) -> Permission:
    """What an operator needs, from the tables of the contract."""
    if path.startswith("/v1/cluster/{uuid}/install/"):
        return Permission.READ
    if (method, path) in {("PUT", "/v1/flux"), ("POST", "/v1/cluster/{uuid}/certificate")}:
        return Permission.ADMIN
    if tag in PERMISSION:
        return PERMISSION[tag]
    if method == "GET":
        return Permission.READ
    if path.startswith("/v1/chart/"):
        return Permission.PUSH
    return Permission.SECRETS if tag == "secrets" else Permission.CLUSTERS


async def ask(client: httpx.AsyncClient, method: str, path: str) -> httpx.Response:
    return await client.request(method, filled(path).replace("/step/x/", "/step/publish_status/"), content=b"{")


async def test_every_protected_route_wants_credentials_before_it_reads_anything(centre: GatewayCentre) -> None:
    wrong = bearer("ew_0123456789abcdef_" + "A" * 43)
    for headers in ({}, wrong, basic("x", "y"), {"Authorization": "Digest abc"}, {"Authorization": "Basic %%%"}):
        for method, path, _ in PROTECTED:
            answer = await ask(centre.client(headers), method, path)
            # Many wrong ones in a row are told to wait; none is let in.
            assert answer.status_code == (401 if not headers or "Digest" in str(headers) else answer.status_code)
            assert answer.status_code in {401, 429}, (method, path, headers)
            if answer.status_code == 401:
                assert answer.headers["WWW-Authenticate"] == 'Basic realm="Edgewright"'
            assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("permission", [p for p in Permission if p is not Permission.ADMIN])
async def test_each_permission_opens_its_routes_and_no_other(centre: GatewayCentre, permission: Permission) -> None:
    client = await centre.operator(permission)
    for method, path, tag in PROTECTED:
        if path == "/v1/events" and permission is Permission.READ:
            continue  # endless
        answer = await ask(client, method, path)
        if path == "/v1/register":
            assert answer.status_code == 401, (method, path)
        elif AGENT.match(path):
            assert answer.status_code == 403, (method, path)
        elif not ANY_CALLER.search(path):
            opened = needed(method, path, tag) is permission
            assert (answer.status_code != 403) is opened, (method, path, answer.text)
            assert answer.status_code != 401, (method, path)


async def test_admin_opens_everything_but_the_edges_own_doors(admin: httpx.AsyncClient) -> None:
    for method, path, _ in PROTECTED:
        if path == "/v1/events":
            continue  # endless
        answer = await ask(admin, method, path)
        if AGENT.match(path) or path == "/v1/register":
            assert answer.status_code in {401, 403}, (method, path)
        elif "/info/refs" in path or "{service}" in path:
            assert answer.json()["code"] in {"dumb_protocol", "service_unknown", "repository_unknown"}
        else:
            assert answer.status_code not in {401, 403}, (method, path, answer.text)


@pytest.fixture
async def edge(centre: GatewayCentre) -> EdgeCredentials:
    return await centre.register(await centre.create("edge"))


async def test_a_clusters_credentials_open_no_route_of_operators(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    for headers in (edge.as_agent, edge.as_flux):
        client = centre.client(headers)
        for method, path, _ in PROTECTED:
            answer = await ask(client, method, path)
            if path == "/v1/register":
                assert answer.status_code == 401
            elif OF_EDGES.match(path) and (headers == edge.as_agent or path.startswith("/v1/service/")):
                assert answer.status_code not in {401, 403}, (method, path)
            else:
                assert answer.status_code == 403, (method, path, answer.text)


async def test_the_session_of_an_edge_opens_its_own_status_alone(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    opened = await centre.client(edge.as_agent).post("/token")
    session = centre.client(bearer(opened.json()["token"]))
    for method, path, _ in PROTECTED:
        answer = await ask(session, method, path)
        if path == "/v1/register":
            assert answer.status_code == 401
        elif not path.startswith("/v1/service/"):
            assert answer.status_code == 403, (method, path, answer.text)
    own = f"/v1/app/{STATUS_APP}/object/{edge.cluster}"
    assert (await session.put(own, json={"hosts": []})).status_code == 201
    assert (await session.get(own)).json() == {"hosts": []}
    assert (await centre.client(edge.as_flux).post("/token")).status_code == 403


async def test_the_session_of_an_edge_ends_with_its_credential(
    centre: GatewayCentre, edge: EdgeCredentials, admin: httpx.AsyncClient
) -> None:
    opened = await centre.client(edge.as_agent).post("/token")
    session = centre.client(bearer(opened.json()["token"]))
    own = f"/v1/app/{STATUS_APP}/object/{edge.cluster}"
    assert (await session.put(own, json={"hosts": []})).status_code == 201
    assert (await admin.delete(f"/v1/cluster/{edge.cluster}/credential")).is_success
    assert (await session.get(own)).status_code == 401


async def test_an_edge_that_waits_to_be_accepted_opens_no_session(centre: GatewayCentre) -> None:
    waiting = await centre.register(await centre.create("waiting", accept="manual"))
    refused = await centre.client(waiting.as_agent).post("/token")
    assert (refused.status_code, refused.json()["code"]) == (403, "pending_acceptance")


async def test_pages_of_allowed_origins_may_begin_a_session_with_a_password(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    page = {"Origin": "https://desk.example.com", "Sec-Fetch-Site": "cross-site"}
    client = centre.client(basic("x", (await centre.token(Permission.ADMIN)).text) | page)
    answer = await client.post("/token")
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer.headers  # what a browser sends by itself, no page reads
    assert (await client.post("/v1/cluster", json={"name": "lured"})).json()["code"] == "foreign_page"


async def test_pages_may_ask_before_they_send(centre: GatewayCentre) -> None:
    asked = {"Origin": "https://desk.example.com", "Access-Control-Request-Method": "PUT"}
    wanted = {"Access-Control-Request-Headers": "authorization,if-match"}
    answer = await centre.client(asked | wanted).options(f"/v1/app/{STATUS_APP}/object/{uuid4()}")
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, "*")
    assert "PUT" in answer.headers["Access-Control-Allow-Methods"]
    assert "if-match" in answer.headers["Access-Control-Allow-Headers"]


@pytest.mark.parametrize("origins", [(), ("https://desk.example.com",)])
async def test_origins_are_what_the_setting_says(centre: GatewayCentre, origins: tuple[str, ...]) -> None:
    app = create_app(replace(centre.gateway, cors_origins=origins))
    for origin in ("https://desk.example.com", "https://elsewhere.example.com"):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://centre") as client:
            answer = await client.get("/ping", headers={"Origin": origin})
        assert answer.headers.get("Access-Control-Allow-Origin") == (origin if origin in origins else None)


async def test_a_token_works_as_password_of_any_user(centre: GatewayCentre) -> None:
    token = await centre.token(Permission.READ)
    for user in ("", "git", "x:y".replace(":", "")):
        assert (await centre.client(basic(user, token.text)).get("/v1/cluster")).status_code == 200


async def test_a_page_of_another_site_cannot_use_the_password_that_a_browser_keeps(centre: GatewayCentre) -> None:
    token = await centre.token(Permission.CLUSTERS)
    kept = centre.client(basic("anyone", token.text))
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 201), ("none", 409)):
        answer = await kept.post("/v1/cluster", content=b'{"name": "lured"}', headers={"Sec-Fetch-Site": site})
        assert answer.status_code == status, site
    sent_by_script = centre.client(bearer(token.text))
    answer = await sent_by_script.post("/v1/cluster", json={"name": "x"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 201


async def test_a_revoked_token_is_refused_at_once(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    token = await centre.token(Permission.READ)
    client = centre.client(bearer(token.text))
    assert (await client.get("/v1/cluster")).status_code == 200
    assert (await admin.delete(f"/v1/token/{token.id}")).status_code == 204
    assert (await client.get("/v1/cluster")).status_code == 401
    assert (await admin.delete(f"/v1/token/{token.id}")).status_code == 404


async def test_a_token_with_one_letter_changed_is_wrong(centre: GatewayCentre) -> None:
    token = await centre.token(Permission.READ)
    changed = token.text[:-1] + ("A" if token.text[-1] != "A" else "B")
    assert (await centre.client(bearer(changed)).get("/v1/cluster")).status_code == 401


@pytest.mark.parametrize("path", ["/v1/cluster", f"/v1/cluster/{uuid4()}/bootstrap?token={REGISTRATION}"])
async def test_a_stranger_is_not_told_where_the_database_is(centre: GatewayCentre, path: str) -> None:
    class Away:
        async def find(self, _token: str) -> None:
            raise Waiting("The database edgewright@pg.plant.example cannot be reached.", code="database_unavailable")

        token = find

    away: Any = Away()
    app = create_app(replace(centre.gateway, ports=replace(centre.ports, operators=away, edge_access=away)))
    header = bearer(operator_token(bytes(8), bytes(32)).text)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x", headers=header) as client:
        answer = await client.get(path)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert "cannot look up these credentials now" in answer.text
    assert "pg.plant" not in answer.text


async def test_only_wrong_credentials_are_limited(centre: GatewayCentre) -> None:
    token = await centre.token(Permission.READ)
    right, wrong = centre.client(bearer(token.text)), centre.client(bearer("ew_0_0"))
    statuses = [(await wrong.get("/v1/cluster")).status_code for _ in range(31)]
    assert statuses == [401] * 30 + [429]
    late = await wrong.get("/v1/cluster")
    assert late.json()["code"] == "too_many_wrong_credentials"
    assert 1 <= int(late.headers["Retry-After"]) <= 60
    assert (await right.get("/v1/cluster")).status_code == 200


async def test_addresses_of_one_ipv6_host_are_limited_together(centre: GatewayCentre) -> None:
    statuses = []
    for number in range(31):
        transport = httpx.ASGITransport(centre.app, client=(f"2001:db8::{number:x}", 5))
        async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=bearer("ew_0_0")) as client:
            statuses.append((await client.get("/v1/cluster")).status_code)
    assert statuses == [401] * 30 + [429]


async def test_another_address_is_not_limited(centre: GatewayCentre) -> None:
    wrong = centre.client(bearer("nonsense"))
    for _ in range(31):
        await wrong.get("/v1/cluster")
    other = centre.client(bearer("nonsense"), client=("192.0.2.7", 1))
    assert (await other.get("/v1/cluster")).status_code == 401


async def test_the_first_use_of_a_credential_proves_it_and_spends_its_token(centre: GatewayCentre) -> None:
    cluster = await centre.create("proven")
    edge = await centre.register(cluster)
    before = await centre.ports.edge_access.credentials(cluster)
    assert [credential.proven_at for credential in before] == [None, None]
    await centre.client(edge.as_agent).post("/v1/agent/heartbeat")
    after = {each.role: each for each in await centre.ports.edge_access.credentials(cluster)}
    assert after[Role.AGENT].proven_at is not None
    assert after[Role.FLUX].proven_at is None


async def test_credentials_of_earlier_hardware_are_wrong(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    await admin.post(f"/v1/cluster/{edge.cluster}/recreate", json={"new_hardware": True})
    assert (await centre.client(edge.as_agent).post("/v1/agent/heartbeat")).status_code == 401
    assert (await centre.client(edge.as_flux).get(f"/uuid/{edge.cluster}/info/refs")).status_code == 401


async def test_revoking_ends_both_credentials_at_once(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    answer = await admin.delete(f"/v1/cluster/{edge.cluster}/credential")
    assert (answer.status_code, answer.json()) == (200, {"revoked": 2})
    for headers in (edge.as_agent, edge.as_flux):
        assert (await centre.client(headers).post("/v1/agent/heartbeat")).status_code == 401


async def test_the_successor_of_a_credential_takes_over_at_its_first_use(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    successor = cluster_secret(Role.AGENT, random.token_bytes(32)).text
    old, new = centre.client(edge.as_agent), centre.client(basic(str(edge.cluster), successor))
    assert (await old.post("/v1/agent/heartbeat")).json()["state"] == "active"
    answer = await old.post("/v1/agent/credential", json={"role": "agent", "secret": successor})
    assert (answer.status_code, answer.json()) == (200, {"role": "agent", "state": "pending"})
    assert (await old.post("/v1/agent/heartbeat")).status_code == 200
    assert (await new.post("/v1/agent/heartbeat")).json()["state"] == "active"
    assert (await old.post("/v1/agent/heartbeat")).status_code == 401


async def test_a_secret_of_the_other_role_is_refused(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    secret = cluster_secret(Role.FLUX, random.token_bytes(32)).text
    agent = centre.client(edge.as_agent)
    refused = await agent.post("/v1/agent/credential", json={"role": "agent", "secret": secret})
    assert refused.status_code == 422
    assert secret not in refused.text


async def test_flux_is_told_why_it_must_wait(centre: GatewayCentre) -> None:
    cluster = await centre.create("manual", accept="manual")
    edge = await centre.register(cluster)
    refs = f"/uuid/{cluster}/info/refs?service=git-upload-pack"
    refused = await centre.client(edge.as_flux).get(refs)
    assert (refused.status_code, refused.json()["code"]) == (403, "pending_acceptance")
    assert [each.state for each in await centre.ports.edge_access.credentials(cluster)] == [
        CredentialState.PENDING
    ] * 2


async def test_session_tokens_of_acs_clients_die_with_their_root(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    root = await centre.token(Permission.READ)
    answer = await centre.client(basic("user1", root.text)).post("/token")
    body = answer.json()
    assert set(body) == {"token", "expiry"}
    session = centre.client(bearer(body["token"]))
    assert (await session.get("/v1/cluster")).status_code == 200
    assert (await session.post("/v1/cluster", json={"name": "x"})).status_code == 403
    second = centre.client(bearer((await session.post("/token")).json()["token"]))
    assert (await second.get("/v1/cluster")).status_code == 200
    await admin.delete(f"/v1/token/{root.id}")
    assert (await session.get("/v1/cluster")).status_code == 401
    assert (await second.get("/v1/cluster")).status_code == 401


async def test_a_new_token_is_shown_once_and_holds_what_was_asked_for(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    made = await admin.post("/v1/token", json={"name": "ci", "permissions": ["read", "secrets"], "expires_in": 600})
    assert made.status_code == 201
    assert made.headers["Cache-Control"] == "no-store"
    text = made.json()["token"]
    assert (await centre.client(bearer(text)).get("/v1/cluster")).status_code == 200
    listed = await admin.get("/v1/token")
    assert text not in listed.text
    assert ["ci", ["read", "secrets"]] in [[item["name"], item["permissions"]] for item in listed.json()["items"]]
    twice = await admin.post("/v1/token", json={"name": "ci", "permissions": ["read"]})
    assert (twice.status_code, twice.json()["code"]) == (409, "token_name_taken")
    assert (await admin.post("/v1/token", json={"name": "session:x", "permissions": ["read"]})).status_code == 422
