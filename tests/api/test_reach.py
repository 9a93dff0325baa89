"""When and where an edge is to call: what its agent is told, and what operators see of it."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from gateway_centre import EdgeCredentials, GatewayCentre

from edgewright.application.rendering import RenderInputs
from edgewright.domain.identity import FORK_BREAKS
from edgewright.domain.reach import Door, ca_digest
from edgewright.domain.rendering import render_repository

OLD, NEW, PEM = "https://old.example.com", "https://new.example.com", "-----BEGIN CERTIFICATE-----\nAA=="


@pytest.fixture
async def edge(centre: GatewayCentre) -> EdgeCredentials:
    return await centre.register(await centre.create("edge"))


async def beat(centre: GatewayCentre, edge: EdgeCredentials, **said: Any) -> dict[str, Any]:
    answer = await centre.client(edge.as_agent).post("/v1/agent/heartbeat", json=said)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    await centre.app.state.live.heartbeats.flush()
    return told


async def shown(admin: httpx.AsyncClient, edge: EdgeCredentials) -> dict[str, Any]:
    document: dict[str, Any] = (await admin.get(f"/v1/cluster/{edge.cluster}")).json()
    return document


async def kinds(admin: httpx.AsyncClient, edge: EdgeCredentials) -> list[str]:
    return [each["kind"] for each in (await admin.get(f"/v1/cluster/{edge.cluster}/timeline")).json()["items"]]


def wants(centre: GatewayCentre, door: Door | None) -> None:
    centre.offer(door=door)


async def test_an_agent_is_told_where_to_go_until_it_is_there(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    wants(centre, Door(OLD))
    assert "move_to" not in await beat(centre, edge, centre_url=OLD)
    wants(centre, Door(NEW, PEM, is_settled=False))
    told = await beat(centre, edge, centre_url=OLD, centre_problem="It\n is untrusted.")
    assert told["move_to"] == {"url": NEW, "ca_bundle": PEM}
    assert (await shown(admin, edge))["reach"] == {"url": OLD, "ca_sha256": None, "problem": "It is untrusted."}
    (missing,) = await centre.ports.edge_reports.elsewhere(Door(NEW, PEM))
    assert (missing.name, missing.reach and missing.reach.url) == ("edge", OLD)
    there = {"centre_url": NEW, "centre_ca_sha256": ca_digest(PEM), "holds_former": True}
    told = await beat(centre, edge, **there)
    assert "move_to" not in told and "forget_former" not in told
    assert await centre.ports.edge_reports.elsewhere(Door(NEW, PEM)) == []
    assert "edge.moved" in await kinds(admin, edge)
    row = await centre.gateway.directory.get(edge.cluster)
    assert row is not None and row.proven_url == NEW, "what is rendered for it names the new URL, too"
    wants(centre, Door(NEW, PEM))
    assert (await beat(centre, edge, **there))["forget_former"] is True
    assert "forget_former" not in await beat(centre, edge, **{**there, "holds_former": False})


async def test_other_certificates_at_the_same_url_are_a_move_too(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    wants(centre, Door(OLD, PEM))
    assert (await beat(centre, edge, centre_url=OLD))["move_to"] == {"url": OLD, "ca_bundle": PEM}
    assert "move_to" not in await beat(centre, edge, centre_url=OLD, centre_ca_sha256=ca_digest(f"\n{PEM}\n"))


async def test_flux_looks_seldom_by_itself_where_the_agent_asks_it_to(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    async def interval() -> set[str]:
        row = await centre.gateway.directory.get(edge.cluster)
        assert row is not None
        collected = await RenderInputs(centre.ports.config, OLD).collect(row)
        files = render_repository(collected.input)
        return set(re.findall(r"interval: (\S+)", files["edo/cluster/helm-charts.yaml"].decode()))

    await beat(centre, edge, wait=50)
    assert await interval() == {"3m"}
    await beat(centre, edge, wait=50, asks_flux=True)
    assert await interval() == {"10m"}
    assert "edge.fetching_asked" in await kinds(admin, edge)


async def test_what_is_rendered_follows_no_url_that_the_centre_has_not_named(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    wants(centre, Door(OLD))
    await beat(centre, edge, centre_url="https://evil.example.com")
    row = await centre.gateway.directory.get(edge.cluster)
    assert row is not None and row.proven_url is None


async def test_an_agent_that_does_not_say_where_it_is_is_not_told(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    wants(centre, Door(NEW))
    assert "move_to" not in await beat(centre, edge, nonce="n")
    for wrong in ("ftp://x", "https://a b", "https://a\nb"):
        assert "move_to" not in await beat(centre, edge, centre_url=wrong)
    (silent,) = await centre.ports.edge_reports.elsewhere(Door(NEW))
    assert silent.reach is None
    wants(centre, None)
    assert "move_to" not in await beat(centre, edge, centre_url=OLD)


async def test_check_in_windows_are_set_shown_told_and_taken_back(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    path = f"/v1/cluster/{edge.cluster}"
    assert "check_in" not in await beat(centre, edge)
    soon = datetime.now(UTC) + timedelta(hours=2)
    window = f"{soon:%H:%M}-{soon + timedelta(hours=1):%H:%M}"
    answer = await admin.patch(path, json={"check_in": {"windows": [window]}})
    assert answer.status_code == 200, answer.text
    said = answer.json()["check_in"]
    assert (said["windows"], said["time_zone"]) == ([window], "UTC")
    assert datetime.fromisoformat(said["next_opening"]) == soon.replace(second=0, microsecond=0)
    first = (await beat(centre, edge))["check_in"][0]
    assert 6000 < first["opens_in"] <= 7200 and round(first["closes_in"] - first["opens_in"]) == 3600
    lease = (await shown(admin, edge))["lease"]
    assert datetime.fromisoformat(lease["expires_at"]) == soon.replace(second=0, microsecond=0) + timedelta(minutes=5)
    assert (await admin.patch(path, json={"lease_seconds": 60})).json()["check_in"] == said
    assert (await admin.patch(path, json={"check_in": None})).json()["check_in"] is None
    assert "check_in" not in await beat(centre, edge)


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"windows": ["22:00-06:00"], "time_zone": "Europe/Atlantis"}, "/check_in/time_zone"),
        ({"windows": ["10pm-6am"]}, "/check_in/windows/0"),
        ({"windows": []}, "/check_in/windows"),
        ({"windows": ["22:00-06:00"], "zone": "UTC"}, "/check_in/zone"),
    ],
)
async def test_what_is_no_window_is_refused_in_words(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials, wrong: Any, where: str
) -> None:
    refused = await admin.patch(f"/v1/cluster/{edge.cluster}", json={"check_in": wrong})
    assert refused.status_code == 422, refused.text
    assert where in refused.text
    refused = await admin.post("/v1/cluster", json={"name": "another", "check_in": wrong})
    assert refused.status_code == 422 and where in refused.text
    assert (await admin.get("/v1/cluster?name=another")).json()["items"] == []


async def test_two_agents_with_one_identity_are_in_the_timeline(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    await beat(centre, edge, nonce="n0")
    for number in range(FORK_BREAKS):
        await beat(centre, edge, nonce=f"a{number + 1}", previous_nonce=f"a{number}" if number else "n0")
        await beat(centre, edge, nonce=f"b{number + 1}", previous_nonce=f"b{number}" if number else "n0")
    assert (await kinds(admin, edge)).count("edge.forked") == 1
    wanted = await centre.steps.read_wanted(edge.cluster)
    assert wanted is not None and wanted.identity_problem is not None
    assert "a copy of its disk or virtual machine is running" in wanted.identity_problem
