"""Secrets: what is listed of them, and how far each is on the edge."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
from gateway_centre import BASE_URL, STATUS_APP, GatewayCentre
from opening_edge import of_earlier_version, opening, saying
from sealed_values import STATUS, path
from sealing_keys import certificate_pem, private_key
from temporalio.testing import ActivityEnvironment

from activities.clusters import ClusterActivities
from edgewright.agent.opening import Opening, Stage
from edgewright.application.rendering import RenderInputs
from edgewright.domain.cluster import EdgeHealth
from edgewright.messages.steps import ReadWanted

TAKEN = 'failed update: Resource "db" already exists and is not managed by SealedSecret'


async def on_edge(admin: httpx.AsyncClient, cluster: UUID, *openings: Opening) -> list[tuple[str, str, str | None]]:
    """Key, state on the edge and refusal of each, after the edge has said that."""
    answer = await admin.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json=saying(STATUS, *openings))
    assert answer.is_success, answer.text
    return await listed(admin, cluster)


async def listed(admin: httpx.AsyncClient, cluster: UUID, **params: str) -> list[tuple[str, str, str | None]]:
    items = (await admin.get(f"/v1/cluster/{cluster}/secret", params=params)).json()["items"]
    return [(f"{each['name']}/{each['key']}", each["edge_state"], each["refusal"]) for each in items]


async def test_the_list_tells_current_from_stale_and_no_value(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    await admin.put(path(cluster, "old"), content=b"hunter2-old")
    another = certificate_pem(
        private_key(3072), not_before=datetime.now(UTC), not_after=datetime.now(UTC) + timedelta(days=9)
    )
    await admin.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json={**STATUS, "kubeseal_cert": another})
    await admin.put(path(cluster, "new"), content=b"hunter2-new")
    answer = await admin.get(f"/v1/cluster/{cluster}/secret")
    items = {item["key"]: item for item in answer.json()["items"]}
    assert {key: item["state"] for key, item in items.items()} == {"old": "stale", "new": "current"}
    assert items["new"]["namespace"] == "default"
    assert items["new"]["sealed_at"]
    assert "hunter2" not in answer.text
    assert b64encode(b"hunter2-new").decode()[:8] not in answer.text


async def test_each_secret_says_how_far_it_is_on_the_edge(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    assert (await admin.put(path(cluster), content=b"v")).status_code == 204
    assert await listed(admin, cluster) == [("db/password", "unknown", None)], "an agent that does not say"
    assert await on_edge(admin, cluster) == [("db/password", "sealed", None)]
    for stage, state in ((Stage.PENDING, "applied"), (Stage.OPENED, "opened")):
        now = opening(centre.git, cluster, stage)
        assert await on_edge(admin, cluster, now) == [("db/password", state, None)]
    now = opening(centre.git, cluster, Stage.REFUSED, TAKEN)
    assert await on_edge(admin, cluster, now) == [("db/password", "refused", TAKEN)]


async def test_what_the_edge_says_of_another_sealing_is_not_said_of_this_one(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    await admin.put(path(cluster), content=b"v")
    await on_edge(admin, cluster, opening(centre.git, cluster, Stage.OPENED))
    await admin.put(path(cluster, key="user"), content=b"u")
    assert {state for _, state, _ in await listed(admin, cluster)} == {"sealed"}, "the whole Secret is another one"
    now = opening(centre.git, cluster, Stage.OPENED)
    assert {state for _, state, _ in await on_edge(admin, cluster, now)} == {"opened"}
    await admin.put(path(cluster), content=b"v")  # the same value
    assert {state for _, state, _ in await listed(admin, cluster)} == {"sealed"}


async def test_a_label_is_not_on_the_edge_before_the_edge_says_so(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    await admin.put(path(cluster), content=b"v")
    assert await whole(admin, cluster) == ("unknown", "unknown"), "an agent that does not say"
    await on_edge(admin, cluster, opening(centre.git, cluster, Stage.REFUSED, TAKEN))
    assert await whole(admin, cluster) == ("refused", "refused")
    for change in ({"labels": {"app": "press"}}, {"annotations": {"note": "n"}}, {"labels": {"app": None}}):
        answer = await admin.patch(f"/v1/cluster/{cluster}/secret/default/db", json=change)
        assert answer.status_code == 204, answer.text
        assert await whole(admin, cluster) == ("sealed", "sealed"), change
        assert (await listed(admin, cluster))[0][2] is None, "what was refused is another Secret"
        for stage, state in ((Stage.PENDING, "applied"), (Stage.OPENED, "opened")):
            await on_edge(admin, cluster, opening(centre.git, cluster, stage))
            assert await whole(admin, cluster) == (state, state)


async def test_an_agent_of_an_earlier_version_is_believed_of_values_and_not_of_labels(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    await admin.put(path(cluster), content=b"v")
    said = of_earlier_version(saying(STATUS, opening(centre.git, cluster, Stage.OPENED)))
    assert (await admin.put(f"/v1/app/{STATUS_APP}/object/{cluster}", json=said)).is_success
    assert await whole(admin, cluster) == ("opened", "unknown")
    await admin.patch(f"/v1/cluster/{cluster}/secret/default/db", json={"labels": {"app": "press"}})
    assert await whole(admin, cluster) == ("opened", "unknown")
    await admin.put(path(cluster), content=b"another")
    assert await whole(admin, cluster) == ("sealed", "sealed")


async def whole(admin: httpx.AsyncClient, cluster: UUID) -> tuple[str, str]:
    """How far the only key is, and how far its Secret is."""
    answer = (await admin.get(f"/v1/cluster/{cluster}/secret")).json()
    [key], [secret] = answer["items"], answer["secrets"]
    return key["edge_state"], secret["edge_state"]


async def test_one_secret_can_be_listed_alone(cluster: UUID, admin: httpx.AsyncClient) -> None:
    for namespace, name in (("default", "db"), ("default", "other"), ("else", "db")):
        await admin.put(path(cluster, namespace=namespace, name=name), content=b"v")
    assert len(await listed(admin, cluster)) == 3
    assert len(await listed(admin, cluster, name="db")) == 2
    assert len(await listed(admin, cluster, namespace="default")) == 2
    assert len(await listed(admin, cluster, namespace="default", name="db")) == 1
    assert await listed(admin, cluster, namespace="../..", name="*") == []


async def test_the_workflow_reads_a_refused_secret_as_unhealthy_until_it_is_opened(
    centre: GatewayCentre, cluster: UUID, admin: httpx.AsyncClient
) -> None:
    inputs = RenderInputs(centre.ports.config, BASE_URL)
    reader = ClusterActivities(
        centre.ports.wishes,
        centre.ports.directory,
        centre.ports.steps,
        centre.git,
        inputs,
        commissioned=lambda _seconds: None,
    )

    async def health() -> EdgeHealth | None:
        reading = await ActivityEnvironment().run(reader.read_wanted, ReadWanted(cluster=cluster))
        return reading.wanted.edge_health if reading.wanted is not None else None

    await admin.put(path(cluster), content=b"v")
    await on_edge(admin, cluster, opening(centre.git, cluster, Stage.REFUSED, TAKEN))
    said = await health()
    assert said is not None and said.reason == "SecretRefused"
    assert said.message == f"The secret default/db is not opened on the edge: {TAKEN}."
    await on_edge(admin, cluster, opening(centre.git, cluster, Stage.OPENED))
    said = await health()
    assert said is None or not said.message
