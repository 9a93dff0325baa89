"""Registration, acceptance, heartbeats, status and goodbyes."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from gateway_centre import STATUS_APP, Edge, GatewayCentre, bearer, fence_of
from sealing_keys import certificate_pem, private_key

from activities.edge_status import EdgeStatusDoor
from edgewright.domain.cluster import Acceptance, LeaseState, Order, Phase, Role, StepName
from edgewright.domain.credentials import cluster_secret
from edgewright.domain.projection import Projection
from edgewright.errors import Invalid
from edgewright.ports.operators import Permission

NOW = datetime.now(UTC)


def certificate(bits: int = 2048, *, days: int = 100) -> str:
    begin, end = NOW - timedelta(days=200), NOW + timedelta(days=days)
    return certificate_pem(private_key(bits), not_before=begin, not_after=end)


def registration(uid: str = "uid-1") -> dict[str, str]:
    return {
        "kube_system_uid": uid,
        "kubernetes_version": "v1.31.2+k3s1",
        "flux_secret": cluster_secret(Role.FLUX, secrets.token_bytes(32)).text,
        "agent_secret": cluster_secret(Role.AGENT, secrets.token_bytes(32)).text,
    }


@pytest.fixture
async def cluster(centre: GatewayCentre) -> UUID:
    return await centre.create("edge")


@pytest.fixture
async def edge(centre: GatewayCentre, cluster: UUID) -> Edge:
    return await centre.register(cluster)


async def beat(centre: GatewayCentre, edge: Edge, **body: Any) -> dict[str, Any]:
    answer = await centre.client(edge.as_agent).post("/v1/agent/heartbeat", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


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


async def test_a_bound_token_lets_no_other_cluster_in(centre: GatewayCentre, cluster: UUID) -> None:
    client = centre.client(bearer(await centre.bootstrap_token(cluster)))
    assert (await client.post("/v1/register", json=registration("uid-1"))).status_code == 200
    refused = await client.post("/v1/register", json=registration("uid-2"))
    assert (refused.status_code, refused.json()["code"]) == (403, "token_bound_elsewhere")


async def test_one_kubernetes_cluster_is_not_two_managed_ones(centre: GatewayCentre, edge: Edge) -> None:
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


async def test_heartbeats_are_written_in_batches_and_renew_the_lease(centre: GatewayCentre, edge: Edge) -> None:
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


async def test_the_interval_follows_the_lease(centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge) -> None:
    for lease, interval in ((3600, 1200), (10, 5)):
        await admin.patch(f"/v1/cluster/{edge.cluster}", json={"lease_seconds": lease})
        assert (await beat(centre, edge))["interval"] == interval


async def test_heartbeats_wait_while_the_database_is_away(centre: GatewayCentre, edge: Edge) -> None:
    batch = centre.app.state.live.heartbeats
    await beat(centre, edge)
    assert len(batch) <= 1
    await batch.flush()
    assert len(batch) == 0


async def test_a_status_is_due_until_the_centre_has_the_agents(centre: GatewayCentre, edge: Edge) -> None:
    status = {"hosts": [{"hostname": "n1"}], "kubeseal_cert": certificate(), "observed_revision": "b" * 40}
    stored = await centre.client(edge.as_agent).put("/v1/agent/status", json=status)
    assert stored.status_code == 204
    digest = stored.headers["Edgewright-Status-Digest"]
    assert (await beat(centre, edge, status_digest=digest))["status_due"] is False
    assert (await beat(centre, edge))["status_due"] is False
    assert (await beat(centre, edge, status_digest="other"))["status_due"] is True
    await centre.app.state.live.heartbeats.flush()
    assert (await centre.row(edge.cluster)).observed_revision == "b" * 40


async def test_an_unchanged_status_does_nothing(centre: GatewayCentre, edge: Edge) -> None:
    agent, status = centre.client(edge.as_agent), {"hosts": [], "kubeseal_cert": certificate()}
    await agent.put("/v1/agent/status", json=status)
    before = await centre.gateway.audit.last_position()
    centre.fleet.nudged.clear()
    assert (await agent.put("/v1/agent/status", json=status)).status_code == 204
    assert await centre.gateway.audit.last_position() == before
    assert centre.fleet.nudged == []


async def test_a_refused_certificate_keeps_the_old_one_and_says_why(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
) -> None:
    agent = centre.client(edge.as_agent)
    await agent.put("/v1/agent/status", json={"hosts": [], "kubeseal_cert": certificate()})
    kept = (await admin.get(f"/v1/cluster/{edge.cluster}")).json()["certificate"]
    hosts = [{"hostname": "new"}]
    for bad in ("nonsense", certificate(days=-1), certificate(1024)):
        answer = await agent.put("/v1/agent/status", json={"hosts": hosts, "kubeseal_cert": bad})
        assert answer.status_code == 204
        shown = (await admin.get(f"/v1/cluster/{edge.cluster}")).json()
        assert (shown["certificate"], shown["hosts"]) == (kept, hosts)
    wanted = await centre.gateway.clusters.read_wanted(edge.cluster)
    assert wanted is not None
    assert "refused" in (wanted.certificate_problem or "")


async def test_the_status_entry_never_says_a_certificate_that_is_not_in_use(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
) -> None:
    agent, entry = centre.client(edge.as_agent), f"/v1/app/{STATUS_APP}/object/{edge.cluster}"
    first = await agent.put("/v1/agent/status", json={"hosts": [], "kubeseal_cert": "nonsense"})
    assert (await admin.get(entry)).json() == {"hosts": []}
    assert (await beat(centre, edge, status_digest=first.headers["Edgewright-Status-Digest"]))["status_due"] is False
    good = certificate()
    await agent.put("/v1/agent/status", json={"hosts": [], "kubeseal_cert": good})
    for bad in ("nonsense", certificate(days=-1), certificate(1024)):
        told = await agent.put("/v1/agent/status", json={"hosts": [], "kubeseal_cert": bad})
        assert (await admin.get(entry)).json() == {"hosts": [], "kubeseal_cert": good}
        digest = told.headers["Edgewright-Status-Digest"]
        assert (await beat(centre, edge, status_digest=digest))["status_due"] is False
    await agent.put("/v1/agent/status", json={"hosts": [], "kubeseal_cert": good})
    wanted = await centre.gateway.clusters.read_wanted(edge.cluster)
    assert wanted is not None
    assert wanted.certificate_problem is None


async def test_a_certificate_that_cannot_be_used_is_refused_if_an_operator_sends_it(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("by-hand")
    entry = f"/v1/app/{STATUS_APP}/object/{cluster}"
    await admin.put(entry, json={"hosts": []})
    for bad, code in (
        ("nonsense", "certificate_malformed"),
        (certificate(days=-1), "certificate_expired"),
        (certificate(1024), "certificate_weak"),
    ):
        for refused in (
            await admin.put(entry, json={"hosts": [{"hostname": "x"}], "kubeseal_cert": bad}),
            await admin.patch(entry, json={"kubeseal_cert": bad}),
        ):
            assert (refused.status_code, refused.json()["code"]) == (422, code)
            assert refused.json()["where"] == "kubeseal_cert"
    assert (await admin.get(entry)).json() == {"hosts": []}
    timeline = (await admin.get(f"/v1/cluster/{cluster}/timeline")).json()["items"]
    assert "certificate.refused" not in {event["kind"] for event in timeline}


async def test_an_attached_edge_keeps_its_namespace_unless_the_hardware_is_new(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
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


async def test_a_status_that_is_none_is_refused(centre: GatewayCentre, edge: Edge) -> None:
    agent = centre.client(edge.as_agent)
    assert (await agent.put("/v1/agent/status", json=[])).status_code == 422
    assert (await agent.put("/v1/agent/status", json={"hosts": "many"})).status_code == 422
    assert (await agent.put("/v1/agent/status", content=b'{"hosts": [')).status_code == 400


async def test_a_certificate_comes_from_the_agent_or_an_admin(centre: GatewayCentre, edge: Edge) -> None:
    door = f"/v2/app/{STATUS_APP}/object/{edge.cluster}"
    operator, admin = await centre.operator(Permission.CLUSTERS), await centre.operator(Permission.ADMIN)
    assert (await operator.put(door, json={"hosts": []})).status_code == 201
    refused = await operator.put(door, json={"hosts": [], "kubeseal_cert": certificate()})
    assert (refused.status_code, refused.json()["code"]) == (403, "certificate_needs_admin")
    assert (await admin.put(door, json={"hosts": [], "kubeseal_cert": certificate()})).status_code == 204
    same = await operator.put(door, json={"hosts": [{"hostname": "x"}], "kubeseal_cert": certificate()})
    assert same.status_code == 204
    merged = await operator.patch(door, json={"hosts": []})
    assert merged.status_code == 204
    assert (await operator.patch(door, json={"kubeseal_cert": certificate(3072)})).status_code == 403


async def test_a_certificate_by_signal_is_not_used_before_an_admin_confirms_it(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
) -> None:
    agent, door = centre.client(edge.as_agent), f"/v1/cluster/{edge.cluster}"
    reported = {"hosts": [], "kubeseal_cert": certificate()}
    assert (await agent.put("/v1/agent/status", json=reported)).status_code == 204
    used = (await admin.get(door)).json()["certificate"]
    await signalled(centre, edge, {"hosts": [], "kubeseal_cert": certificate(3072)})

    shown = (await admin.get(door)).json()
    assert shown["certificate"] == used
    entry = (await admin.get(f"/v2/app/{STATUS_APP}/object/{edge.cluster}")).json()
    assert entry["kubeseal_cert"] == certificate()
    proposed = shown["certificate_proposed"]["fingerprint"]
    assert proposed != used["fingerprint"]
    refused = await admin.post(f"{door}/certificate", json={"fingerprint": used["fingerprint"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "certificate_not_proposed")
    operator = await centre.operator(Permission.CLUSTERS)
    assert (await operator.post(f"{door}/certificate", json={"fingerprint": proposed})).status_code == 403

    confirmed = (await admin.post(f"{door}/certificate", json={"fingerprint": proposed})).json()
    assert (confirmed["certificate"]["fingerprint"], confirmed["certificate_proposed"]) == (proposed, None)
    again = await admin.post(f"{door}/certificate", json={"fingerprint": proposed})
    assert again.json()["code"] == "certificate_not_proposed"


async def test_a_proposed_certificate_is_forgotten_when_the_edge_reports_another(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
) -> None:
    await signalled(centre, edge, {"kubeseal_cert": certificate(3072)})
    shown = (await admin.get(f"/v1/cluster/{edge.cluster}")).json()
    assert (shown["certificate"], bool(shown["certificate_proposed"])) == (None, True)
    status = {"hosts": [], "kubeseal_cert": certificate()}
    assert (await centre.client(edge.as_agent).put("/v1/agent/status", json=status)).status_code == 204
    shown = (await admin.get(f"/v1/cluster/{edge.cluster}")).json()
    assert (bool(shown["certificate"]), shown["certificate_proposed"]) == (True, None)


async def test_a_bad_certificate_by_signal_is_refused_and_changes_nothing(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
) -> None:
    before = (await admin.get(f"/v1/cluster/{edge.cluster}")).json()
    with pytest.raises(Invalid):
        await signalled(centre, edge, {"kubeseal_cert": "no certificate"})
    assert (await admin.get(f"/v1/cluster/{edge.cluster}")).json() == before


async def signalled(centre: GatewayCentre, edge: Edge, body: dict[str, Any]) -> None:
    """What a worker does with the signal `edge_status`."""
    gateway = centre.gateway
    door = EdgeStatusDoor(gateway.clusters, gateway.edge_reports, gateway.config)
    await door.record(edge.cluster, body, merge=False, actor="temporal", generation=None, proposes=True)


async def test_an_agent_writes_the_status_of_its_own_cluster_through_both_doors(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
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


async def test_a_removed_cluster_rests_and_goes_on_after_its_recreation(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
) -> None:
    entry = f"/v1/app/bdb13634-0b3d-4e38-a065-9d88c12ee78d/object/{edge.cluster}"
    body = (await admin.get(entry)).json()
    assert (await admin.delete(entry)).status_code == 204
    assert await beat(centre, edge) == {"state": "suspended", "interval": 100, "suspended": True}
    refused = await centre.client(edge.as_agent).put("/v1/agent/status", json={})
    assert (refused.status_code, refused.json()["code"]) == (403, "suspended")
    refs = f"/uuid/{edge.cluster}/info/refs?service=git-upload-pack"
    assert (await centre.client(edge.as_flux).get(refs)).json()["code"] == "suspended"

    assert (await admin.put(entry, json=body)).status_code == 201
    assert (await beat(centre, edge))["state"] == "active"
    assert (await centre.client(edge.as_flux).get(refs)).status_code == 200


async def test_a_deletion_asks_the_agent_step_by_step(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
) -> None:
    agent = centre.client(edge.as_agent)
    early = await agent.post("/v1/agent/detached")
    assert (early.status_code, early.json()["code"]) == (409, "not_detaching")
    await beat(centre, edge, inventory_empty=True)  # means nothing unless the cluster is being deleted

    await admin.delete(f"/v1/cluster/{edge.cluster}")
    await centre.project(edge.cluster, phase=Phase.DETACHING, order=Order.REPORT_EMPTY)
    told = await beat(centre, edge)
    assert (told["report_empty"], told["detach"]) == (True, False)
    assert "detach_order" not in told
    assert (await agent.post("/v1/agent/detached")).status_code == 409
    refused = await agent.get("/v1/agent/detach-order")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_detaching")
    await beat(centre, edge, inventory_empty=True)
    wanted = await centre.gateway.clusters.read_wanted(edge.cluster)
    assert wanted is not None
    assert wanted.inventory_empty_at is not None

    await centre.project(edge.cluster, order=Order.DETACH)
    told = await beat(centre, edge)
    assert (told["report_empty"], told["detach"]) == (False, True)
    order = {"cluster": str(edge.cluster), "generation": 1, "workloads": "remove"}
    assert told["detach_order"] == order
    assert (await agent.get("/v1/agent/detach-order")).json() == order
    assert (await centre.client(edge.as_flux).get("/v1/agent/detach-order")).status_code == 403
    assert (await agent.post("/v1/agent/detached")).status_code == 204
    wanted = await centre.gateway.clusters.read_wanted(edge.cluster)
    assert wanted is not None
    assert wanted.detached_at is not None


async def test_an_edge_that_comes_back_after_its_deletion_is_told_to_detach_and_nothing_else(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
) -> None:
    await admin.delete(f"/v1/cluster/{edge.cluster}", params={"force": "true"})
    row = await centre.row(edge.cluster)
    await centre.gateway.clusters.begin_deletion(fence_of(row))
    await centre.gateway.edge_access.retire(fence_of(await centre.row(edge.cluster)), said_goodbye=False)
    for step in (StepName.REMOVE_ADDRESS, StepName.REMOVE_EDGE_STATUS, StepName.REMOVE_SETUP_STATUS):
        await centre.gateway.clusters.remove_central_entries(fence_of(await centre.row(edge.cluster)), step)
    assert (await centre.row(edge.cluster)).closed
    assert (await admin.get(f"/v1/cluster/{edge.cluster}")).status_code == 410

    told = await beat(centre, edge)
    order = {"cluster": str(edge.cluster), "generation": 1, "workloads": "remove"}
    assert {key: told[key] for key in told if key != "interval"} == {
        "state": "detach-only",
        "detach": True,
        "detach_order": order,
    }
    assert (await centre.client(edge.as_agent).get("/v1/agent/detach-order")).json() == order
    refs = f"/uuid/{edge.cluster}/info/refs?service=git-upload-pack"
    assert (await centre.client(edge.as_flux).get(refs)).status_code == 403
    agent = centre.client(edge.as_agent)
    assert (await agent.put("/v1/agent/status", json={})).json()["code"] == "detach_only"
    assert (await agent.post("/v1/agent/detached")).status_code == 204
    assert (await agent.post("/v1/agent/heartbeat")).status_code == 401
    assert (await admin.get(f"/v1/cluster/{edge.cluster}/timeline")).json()["items"]


async def test_an_order_that_nobody_wants_any_more_is_none(centre: GatewayCentre, edge: Edge) -> None:
    await centre.project(edge.cluster, phase=Phase.ACTIVE, order=Order.DETACH)
    told = await beat(centre, edge)
    assert told["detach"] is False and "detach_order" not in told
    assert (await centre.client(edge.as_agent).get("/v1/agent/detach-order")).status_code == 409


async def test_the_order_says_what_becomes_of_the_workloads(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: Edge
) -> None:
    await admin.delete(f"/v1/cluster/{edge.cluster}", params={"workloads": "keep"})
    await centre.project(edge.cluster, phase=Phase.DETACHING, order=Order.REPORT_EMPTY, desired_revision="a" * 40)
    assert (await beat(centre, edge))["revision"] == "a" * 40
    await centre.project(edge.cluster, order=Order.DETACH)
    told = await beat(centre, edge)
    assert told["detach_order"]["workloads"] == "keep" and "revision" not in told


async def test_a_projection_is_no_answer_to_the_agent_of_another(centre: GatewayCentre, edge: Edge) -> None:
    other = await centre.create("other")
    await centre.gateway.clusters.project(
        other, Projection(sequence=99, phase=Phase.DETACHING, ready=False, order=Order.DETACH), []
    )
    assert (await beat(centre, edge))["detach"] is False
