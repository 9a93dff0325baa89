"""Registration, acceptance, heartbeats, namespace and status."""

import secrets
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
import pytest
from gateway_centre import STATUS_APP, EdgeCredentials, GatewayCentre, bearer
from reporting_agent import beat, certificate

from edgewright.domain.cluster import Acceptance, LeaseState, Role
from edgewright.domain.credentials import cluster_secret


def registration(uid: str = "uid-1") -> dict[str, str]:
    return {
        "kube_system_uid": uid,
        "kubernetes_version": "v1.31.2+k3s1",
        "flux_secret": cluster_secret(Role.FLUX, secrets.token_bytes(32)).text,
        "agent_secret": cluster_secret(Role.AGENT, secrets.token_bytes(32)).text,
    }


async def test_registering_again_with_the_same_identity_is_the_same_answer(
    centre: GatewayCentre, cluster: UUID
) -> None:
    client = centre.client(bearer(await centre.bootstrap_token(cluster)))
    body = registration()
    first, again = await client.post("/v1/register", json=body), await client.post("/v1/register", json=body)
    assert first.status_code == 200
    assert first.json() == again.json()
    assert first.json()["state"] == "accepted"
    assert first.json()["short_code"]
    assert first.headers["Cache-Control"] == "no-store"


async def test_a_registration_is_repeated_though_its_edge_lives_already(centre: GatewayCentre, cluster: UUID) -> None:
    """The answer was lost on the way, and curl asks again: a refusal would make the script undo what the edge has."""
    client, body = centre.client(bearer(await centre.bootstrap_token(cluster))), registration()
    first = await client.post("/v1/register", json=body)
    agent = httpx.BasicAuth(str(cluster), body["agent_secret"])
    assert (await centre.client().post("/v1/agent/heartbeat", auth=agent, json={})).status_code == 200
    again = await client.post("/v1/register", json=body)
    assert (again.status_code, again.json()) == (200, first.json())
    other = await client.post("/v1/register", json=registration())
    assert (other.status_code, other.json()["code"]) == (403, "token_spent")


async def test_a_bound_token_lets_no_other_cluster_in(centre: GatewayCentre, cluster: UUID) -> None:
    client = centre.client(bearer(await centre.bootstrap_token(cluster)))
    assert (await client.post("/v1/register", json=registration("uid-1"))).status_code == 200
    refused = await client.post("/v1/register", json=registration("uid-2"))
    assert (refused.status_code, refused.json()["code"]) == (403, "token_bound_elsewhere")


async def test_one_kubernetes_cluster_is_not_two_managed_ones(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    other = await centre.create("other")
    client = centre.client(bearer(await centre.bootstrap_token(other)))
    refused = await client.post("/v1/register", json=registration("uid-1"))
    assert (refused.status_code, refused.json()["code"]) == (409, "duplicate_identity")


@pytest.mark.parametrize(
    "wrong",
    [
        {"flux_secret": "ewa_" + "0" * 64},
        {"agent_secret": "ewa_" + "G" * 64},
        {"kube_system_uid": "x; rm -rf /"},
        {"kubernetes_version": "v1\n"},
    ],
)
async def test_a_registration_that_is_no_registration_is_refused_without_repeating_it(
    centre: GatewayCentre, cluster: UUID, wrong: dict[str, str]
) -> None:
    client = centre.client(bearer(await centre.bootstrap_token(cluster)))
    body = {**registration(), **wrong}
    refused = await client.post("/v1/register", json=body)
    assert refused.status_code == 422
    assert not [value for value in (body["flux_secret"], body["agent_secret"]) if value in refused.text]


async def test_an_operators_token_does_not_register(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    assert (await admin.post("/v1/register", json=registration())).status_code == 401


async def test_manual_acceptance_lets_the_agent_wait_and_then_in(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("manual", accept="manual")
    early = await admin.post(f"/v1/cluster/{cluster}/accept")
    assert (early.status_code, early.json()["code"]) == (409, "nothing_to_accept")

    edge = await centre.register(cluster)
    waiting = await beat(centre, edge, nonce="n1")
    assert waiting == {"state": "pending", "interval": 100, "nonce": "n1"}
    assert (await centre.client(edge.as_agent).put("/v1/agent/status", json={})).status_code == 403
    assert (await centre.row(cluster)).lease.state is LeaseState.NEVER
    shown = (await admin.get(f"/v1/cluster/{cluster}")).json()
    assert (shown["acceptance"], bool(shown["short_code"])) == ("pending", True)

    accepted = await admin.post(f"/v1/cluster/{cluster}/accept")
    assert (accepted.status_code, accepted.json()["acceptance"]) == (200, "accepted")
    assert (await admin.post(f"/v1/cluster/{cluster}/accept")).status_code == 200
    assert (await beat(centre, edge))["state"] == "active"


async def test_rejection_kills_the_credential_and_frees_the_binding(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("rejected", accept="manual")
    edge = await centre.register(cluster, uid="wrong-one")
    answer = await admin.post(f"/v1/cluster/{cluster}/reject", json={"reason": "not ours"})
    assert (answer.status_code, answer.json()["acceptance"]) == (200, Acceptance.REJECTED)
    assert (await centre.client(edge.as_agent).post("/v1/agent/heartbeat")).status_code == 401
    right = await centre.register(cluster, uid="right-one")
    assert (await beat(centre, right))["state"] == "pending"


async def test_heartbeats_are_written_in_batches_and_renew_the_lease(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    commit = "a" * 40
    sent = (datetime.now(UTC) + timedelta(seconds=90)).isoformat()
    told = await beat(centre, edge, sent_at=sent, observed_revision=f"main@sha1:{commit}")
    assert told == {
        "state": "active",
        "interval": 100,
        "status_due": True,
        "rotate": [],
        "reseal": [],
        "report_empty": False,
        "detach": False,
        "suspended": False,
    }
    await centre.app.state.live.heartbeats.flush()
    row = await centre.row(edge.cluster)
    assert row.lease.state is LeaseState.CURRENT
    assert row.lease.clock_offset_seconds == pytest.approx(90, abs=10)
    assert row.observed_revision == commit


async def test_the_interval_follows_the_lease(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    for lease, interval in ((3600, 1200), (10, 5)):
        await admin.patch(f"/v1/cluster/{edge.cluster}", json={"lease_seconds": lease})
        assert (await beat(centre, edge))["interval"] == interval


async def test_heartbeats_wait_while_the_database_is_away(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    batch = centre.app.state.live.heartbeats
    await beat(centre, edge)
    assert len(batch) <= 1
    await batch.flush()
    assert len(batch) == 0


async def test_a_status_is_due_until_the_centre_has_the_agents(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    status = {"hosts": [{"hostname": "n1"}], "kubeseal_cert": certificate(), "observed_revision": "b" * 40}
    stored = await centre.client(edge.as_agent).put("/v1/agent/status", json=status)
    assert stored.status_code == 204
    digest = stored.headers["Edgewright-Status-Digest"]
    assert (await beat(centre, edge, status_digest=digest))["status_due"] is False
    assert (await beat(centre, edge))["status_due"] is False
    assert (await beat(centre, edge, status_digest="other"))["status_due"] is True
    await centre.app.state.live.heartbeats.flush()
    assert (await centre.row(edge.cluster)).observed_revision == "b" * 40


async def test_an_unchanged_status_does_nothing(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    agent, status = centre.client(edge.as_agent), {"hosts": [], "kubeseal_cert": certificate()}
    await agent.put("/v1/agent/status", json=status)
    before = await centre.ports.audit.last_position()
    centre.fleet.nudged.clear()
    assert (await agent.put("/v1/agent/status", json=status)).status_code == 204
    assert await centre.ports.audit.last_position() == before
    assert centre.fleet.nudged == []


async def test_an_attached_edge_keeps_its_namespace_unless_the_hardware_is_new(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    shown = f"/v1/cluster/{edge.cluster}"
    entry = f"/v1/app/bdb13634-0b3d-4e38-a065-9d88c12ee78d/object/{edge.cluster}"
    body = (await admin.get(entry)).json()
    elsewhere = {**body, "namespace": "elsewhere"}

    async def refusals() -> None:
        for refused in (
            await admin.patch(shown, json={"namespace": "elsewhere"}),
            await admin.put(entry, json=elsewhere),
            await admin.post(f"{shown}/recreate", json={"namespace": "elsewhere"}),
        ):
            problem = refused.json()
            assert (refused.status_code, problem["code"], problem["where"]) == (
                409,
                "namespace_immutable",
                "/namespace",
            )

    await refusals()
    await admin.delete(entry)
    refused = await admin.put(entry, json=elsewhere)
    assert (refused.status_code, refused.json()["code"]) == (409, "namespace_immutable")
    assert (await admin.put(entry, json=body)).status_code == 201
    await centre.client(edge.as_agent).put("/v1/agent/status", json={"hosts": []})
    await admin.delete(f"{shown}/credential")
    await refusals()  # what was installed there is there still
    moved = await admin.post(f"{shown}/recreate", json={"namespace": "elsewhere", "new_hardware": True})
    assert (moved.status_code, moved.json()["namespace"]) == (202, "elsewhere")


async def test_a_namespace_may_change_before_an_edge_is_attached_and_kills_lines_that_name_the_old_one(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("early")
    token = await centre.bootstrap_token(cluster)
    script = f"/v1/cluster/{cluster}/bootstrap?token={token}"
    assert (await centre.client().get(script)).status_code == 200
    assert (await admin.patch(f"/v1/cluster/{cluster}", json={"namespace": "elsewhere"})).status_code == 200
    assert (await centre.client().get(script)).status_code == 403


async def test_a_status_that_is_none_is_refused(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    agent = centre.client(edge.as_agent)
    assert (await agent.put("/v1/agent/status", json=[])).status_code == 422
    assert (await agent.put("/v1/agent/status", json={"hosts": "many"})).status_code == 422
    assert (await agent.put("/v1/agent/status", content=b'{"hosts": [')).status_code == 400


async def test_an_agent_writes_the_status_of_its_own_cluster_through_both_doors(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    other = await centre.create("other")
    agent = centre.client(edge.as_agent)
    status = {"hosts": [{"hostname": "n1"}], "kubeseal_cert": certificate()}
    assert (await agent.put(f"/v1/app/{STATUS_APP}/object/{edge.cluster}", json=status)).status_code == 201
    assert (await admin.get(f"/v2/app/{STATUS_APP}/object/{edge.cluster}")).json() == status
    assert (await agent.put(f"/v1/app/{STATUS_APP}/object/{other}", json=status)).status_code == 403
    assert (await agent.get(f"/v1/app/{STATUS_APP}/object/{edge.cluster}")).json() == status
    assert (await agent.get(f"/v1/app/{STATUS_APP}/object/{other}")).status_code == 403
    assert (await agent.put(f"/v1/app/{UUID(int=1)}/object/{edge.cluster}", json={})).status_code == 403
