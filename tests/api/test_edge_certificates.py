"""Which sealing certificate is put to use, and who may bring one."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from gateway_centre import STATUS_APP, EdgeCredentials, GatewayCentre
from reporting_agent import beat, certificate

from api.edge_status import confirm_certificate
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.errors import Invalid
from edgewright.ports.config_store import Entry
from edgewright.ports.operators import OperatorToken, Permission


async def test_a_refused_certificate_keeps_the_old_one_and_says_why(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
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
    wanted = await centre.steps.read_wanted(edge.cluster)
    assert wanted is not None
    assert "refused" in (wanted.certificate_problem or "")


async def test_the_status_entry_never_says_a_certificate_that_is_not_in_use(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
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
    wanted = await centre.steps.read_wanted(edge.cluster)
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


async def test_a_certificate_comes_from_the_agent_or_an_admin(centre: GatewayCentre, edge: EdgeCredentials) -> None:
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
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
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


class ReportedMeanwhile:
    """A Config Store whose status an edge replaces each time after it was read."""

    def __init__(self, real: Any, reports: list[Callable[[], Awaitable[Any]]]) -> None:
        self._real, self._reports = real, reports

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def get(self, app: UUID, object_: UUID) -> Entry | None:
        found: Entry | None = await self._real.get(app, object_)
        if self._reports:
            await self._reports.pop(0)()
        return found


async def test_a_confirmed_certificate_is_laid_over_what_the_edge_has_reported_meanwhile(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    agent, door = centre.client(edge.as_agent), f"/v1/cluster/{edge.cluster}"

    async def report(host: str) -> None:
        body = {"hosts": [{"hostname": host}], "kubeseal_cert": certificate()}
        assert (await agent.put("/v1/agent/status", json=body)).status_code == 204

    await report("at first")
    await signalled(centre, edge, {"kubeseal_cert": certificate(3072)})
    proposed = (await admin.get(door)).json()["certificate_proposed"]["fingerprint"]
    seen = await centre.row(edge.cluster)
    await report("before it is read")
    later = ReportedMeanwhile(centre.ports.config, [lambda: report("while it is read")])
    room = replace(centre.app.state.cluster_room, config=later)
    token = OperatorToken("t", "ann", frozenset({Permission.ADMIN}), b"", datetime.now(UTC), None)
    await confirm_certificate(room, seen, proposed, token)

    shown = (await admin.get(door)).json()
    assert shown["certificate"]["fingerprint"] == proposed
    assert shown["hosts"] == [{"hostname": "while it is read"}]


async def test_a_proposed_certificate_is_forgotten_when_the_edge_reports_another(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    await signalled(centre, edge, {"kubeseal_cert": certificate(3072)})
    shown = (await admin.get(f"/v1/cluster/{edge.cluster}")).json()
    assert (shown["certificate"], bool(shown["certificate_proposed"])) == (None, True)
    status = {"hosts": [], "kubeseal_cert": certificate()}
    assert (await centre.client(edge.as_agent).put("/v1/agent/status", json=status)).status_code == 204
    shown = (await admin.get(f"/v1/cluster/{edge.cluster}")).json()
    assert (bool(shown["certificate"]), shown["certificate_proposed"]) == (True, None)


async def test_a_bad_certificate_by_signal_is_refused_and_changes_nothing(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    before = (await admin.get(f"/v1/cluster/{edge.cluster}")).json()
    with pytest.raises(Invalid):
        await signalled(centre, edge, {"kubeseal_cert": "no certificate"})
    assert (await admin.get(f"/v1/cluster/{edge.cluster}")).json() == before


async def signalled(centre: GatewayCentre, edge: EdgeCredentials, body: dict[str, Any]) -> None:
    """What a worker does with the signal `edge_status`."""
    ports = centre.ports
    door = EdgeStatusDoor(ports.directory, ports.edge_reports, ports.config)
    await door.record(edge.cluster, body, merge=False, actor="temporal", generation=None, proposes=True)
