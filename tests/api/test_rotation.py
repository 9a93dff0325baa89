"""When an edge is told to replace its credentials, and when no more."""

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from gateway_centre import EdgeCredentials, GatewayCentre

from api import rotation
from api.rotation import has_its_turn
from edgewright.domain.cluster import Role
from edgewright.domain.credentials import cluster_secret, sha256_of


@pytest.fixture
async def edge(centre: GatewayCentre) -> EdgeCredentials:
    """Attached, and both of its credentials were used."""
    edge = await centre.register(await centre.create("edge"))
    assert await rotate(centre, edge) == []
    await fetch(centre, edge)
    return edge


async def rotate(centre: GatewayCentre, edge: EdgeCredentials, **said: Any) -> list[str]:
    """What the answer to a heartbeat asks for."""
    body = {"flux_sha256": sha256_of(edge.flux).hex(), **said}
    answer = await centre.client(edge.as_agent).post("/v1/agent/heartbeat", json=body)
    assert answer.status_code == 200, answer.text
    roles: list[str] = answer.json()["rotate"]
    return roles


async def fetch(centre: GatewayCentre, edge: EdgeCredentials) -> int:
    path = f"/uuid/{edge.cluster}/info/refs?service=git-upload-pack"
    return (await centre.client(edge.as_flux).get(path)).status_code


async def register(centre: GatewayCentre, edge: EdgeCredentials, role: Role) -> EdgeCredentials:
    """The edge after a rotation of one role."""
    secret = cluster_secret(role, secrets.token_bytes(32)).text
    wish = {"role": role, "secret": secret}
    answer = await centre.client(edge.as_agent).post("/v1/agent/credential", json=wish)
    assert answer.status_code == 200, answer.text
    return replace(edge, flux=secret) if role is Role.FLUX else replace(edge, agent=secret)


async def test_what_an_operator_asks_for_is_wanted_until_the_successor_is_used(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    path = f"/v1/cluster/{edge.cluster}/credential/rotate"
    answer = await admin.post(path)
    assert (answer.status_code, answer.json()) == (202, {"roles": ["agent", "flux"]})
    assert (await admin.post(path)).status_code == 202
    assert await rotate(centre, edge) == ["agent", "flux"]

    registered = await register(centre, edge, Role.FLUX)
    assert await rotate(centre, edge) == ["agent", "flux"], "Flux has the old one still"
    assert await rotate(centre, registered) == ["agent"], "Flux has the new one, which is waited for"
    assert await fetch(centre, edge) == 200, "and the old one works until it was used"
    assert await fetch(centre, registered) == 200
    assert await fetch(centre, edge) == 401

    done = await register(centre, registered, Role.AGENT)
    assert await rotate(centre, registered) == ["agent"]
    assert await rotate(centre, done) == []
    assert (await centre.client(edge.as_agent).post("/v1/agent/heartbeat")).status_code == 401
    timeline = (await admin.get(f"/v1/cluster/{edge.cluster}/timeline")).text
    assert timeline.count("credential.rotation_asked") == 1
    assert timeline.count("credential.rotated") == 2


async def test_one_role_alone_can_be_asked_for(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    path = f"/v1/cluster/{edge.cluster}/credential/rotate"
    assert (await admin.post(path, json={"roles": ["flux"]})).json() == {"roles": ["flux"]}
    assert await rotate(centre, edge) == ["flux"]
    assert await rotate(centre, edge, flux_sha256=None) == [], "an agent that cannot is not asked"
    bodies: list[dict[str, Any]] = [{"roles": []}, {"roles": ["admin"]}, {"role": "flux"}]
    for wrong in bodies:
        assert (await admin.post(path, json=wrong)).status_code == 422


async def test_a_cluster_without_an_edge_has_nothing_to_replace(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    alone = await centre.create("alone")
    refused = await admin.post(f"/v1/cluster/{alone}/credential/rotate")
    assert (refused.status_code, refused.json()["code"]) == (409, "nothing_to_rotate")
    await admin.delete(f"/v1/cluster/{edge.cluster}/credential")
    refused = await admin.post(f"/v1/cluster/{edge.cluster}/credential/rotate")
    assert refused.json()["code"] == "nothing_to_rotate"


async def test_what_flux_uses_and_the_centre_does_not_know_is_replaced(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    of_a_later_day = "ab" * 32
    assert await rotate(centre, edge, flux_sha256=of_a_later_day) == ["flux"]
    successor = await register(centre, edge, Role.FLUX)
    assert await rotate(centre, successor) == []
    assert await fetch(centre, successor) == 200


async def test_a_fleet_that_is_too_old_at_once_is_asked_over_a_day_and_each_edge_in_turn() -> None:
    now, fleet = datetime(2026, 3, 1, 12, tzinfo=UTC), [uuid4() for _ in range(2000)]
    for hours in range(0, 50, 7):
        asked = sum(has_its_turn(cluster, now + timedelta(hours=hours)) for cluster in fleet)
        assert 30 <= asked <= 140, "about one in 25"
    for cluster in fleet[:50]:
        nights = [now + timedelta(days=day) for day in range(25)]
        assert sum(has_its_turn(cluster, night) for night in nights) == 1, "one that calls at noon only, too"


def test_credentials_get_up_to_a_tenth_older_each_clusters_by_another_share() -> None:
    longest, fleet = timedelta(days=90), [uuid4() for _ in range(2000)]
    more = sorted(rotation.age_limit(cluster, longest) - longest for cluster in fleet)
    assert timedelta(0) <= more[0] < timedelta(days=1)
    assert timedelta(days=8) < more[-1] < timedelta(days=9)
    for day in range(9):
        on_that_day = [each for each in more if timedelta(days=day) <= each < timedelta(days=day + 1)]
        assert 100 <= len(on_that_day) <= 400, "about one in nine"


async def test_credentials_are_replaced_when_they_are_old(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rotation, "ROUND", rotation.TURN)
    centre.offer(credential_age=timedelta(days=90))
    assert await rotate(centre, edge) == []
    centre.offer(credential_age=timedelta(microseconds=1))
    assert await rotate(centre, edge) == ["agent", "flux"]
    assert await rotate(centre, edge) == ["agent", "flux"]
    centre.change()
    assert await rotate(centre, edge) == ["agent", "flux"], "what was asked for once is wanted until it is done"
    timeline = (await admin.get(f"/v1/cluster/{edge.cluster}/timeline")).json()["items"]
    (asked,) = [event for event in timeline if event["kind"] == "credential.rotation_asked"]
    assert asked["actor"] == "centre"


async def test_a_cluster_that_is_deleted_is_not_asked_by_age(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    centre.offer(credential_age=timedelta(microseconds=1))
    await admin.delete(f"/v1/cluster/{edge.cluster}")
    assert await rotate(centre, edge) == []
