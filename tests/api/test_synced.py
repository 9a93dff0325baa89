"""What a cluster is said to have applied, between a commit and the workflow's look at it."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
import pytest
from gateway_centre import BASE_URL, GatewayCentre, fence_of

from edgewright.application.rendering import RENDERED_WITH, RENDERER_IN_FORCE, RenderInputs
from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType
from edgewright.domain.rendering import RENDERER_VERSION
from edgewright.domain.wellknown import (
    APP_HELM_CHART_TEMPLATE,
    APP_INSTALLATION,
    OBJECT_DEFAULT_CHART,
    SERVICE_CLUSTER_MANAGER,
)
from edgewright.errors import EdgewrightError, Stalled, Waiting
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.git_server import CommitMessage

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


async def synced(admin: httpx.AsyncClient, cluster: UUID) -> dict[str, str]:
    shown = (await admin.get(f"/v1/cluster/{cluster}")).raise_for_status().json()
    [stated] = [each for each in shown["conditions"] if each["type"] == "Synced"]
    return dict(stated)


async def applied(centre: GatewayCentre, cluster: UUID, commit: str | None) -> None:
    row = await centre.row(cluster)
    await centre.ports.edge_reports.heartbeats([Heartbeat(cluster, row.generation, observed_revision=commit)])


async def compared(centre: GatewayCentre, cluster: UUID, status: ConditionStatus = ConditionStatus.TRUE) -> None:
    """The workflow has looked, and says so."""
    stated = Condition(type=ConditionType.SYNCED, status=status, reason="UpToDate", since=LONG_AGO)
    await centre.project(cluster, conditions=(stated,))


def push(centre: GatewayCentre, cluster: UUID, *, content: bytes = b"x") -> str:
    """As somebody does; no workflow looks at it."""
    message = CommitMessage(subject="By hand", actor="app")
    return centre.git.commit(cluster, {"by-hand/app.yaml": content}, message, expected_head=centre.git.head(cluster))


@pytest.fixture
async def up_to_date(centre: GatewayCentre) -> UUID:
    """A cluster whose edge has everything, and whose workflow has said so."""
    cluster = await centre.create("synced")
    await applied(centre, cluster, centre.git.head(cluster))
    await compared(centre, cluster)
    return cluster


async def test_a_commit_that_no_workflow_has_seen_counts(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient
) -> None:
    assert (await synced(admin, up_to_date))["status"] == "True"
    before = centre.git.head(up_to_date) or ""
    began = datetime.now(UTC) - timedelta(seconds=1)
    commit = push(centre, up_to_date)
    told = await synced(admin, up_to_date)
    assert (told["status"], told["reason"]) == ("False", "Behind")
    assert told["message"] == f"The edge has applied {before[:12]}, not yet {commit[:12]}."
    assert began <= datetime.fromisoformat(told["since"]) <= datetime.now(UTC)
    await applied(centre, up_to_date, commit)
    told = await synced(admin, up_to_date)
    assert (told["status"], told["reason"]) == ("True", "UpToDate")


async def test_what_the_edge_has_beyond_the_repository_is_no_lack(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient
) -> None:
    """A repository that was put back: the drift tells of that."""
    before = centre.git.head(up_to_date) or ""
    await applied(centre, up_to_date, push(centre, up_to_date))
    (centre.git.folder(up_to_date) / "refs/heads/main").write_text(f"{before}\n")
    assert (await synced(admin, up_to_date))["status"] == "True"


async def test_what_the_workflow_says_stays_where_it_is_not_good_or_the_repository_cannot_be_read(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient
) -> None:
    push(centre, up_to_date)
    await compared(centre, up_to_date, ConditionStatus.UNKNOWN)
    assert (await synced(admin, up_to_date))["status"] == "Unknown"
    await compared(centre, up_to_date)
    centre.git.folder(up_to_date).rename(centre.git.root / "away")
    assert (await synced(admin, up_to_date))["status"] == "True"


async def test_a_commit_from_the_future_is_none_since_then(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(centre.git, "_clock", lambda: 4e9)
    push(centre, up_to_date)
    assert datetime.fromisoformat((await synced(admin, up_to_date))["since"]) <= datetime.now(UTC)


async def rendered(centre: GatewayCentre, cluster: UUID) -> None:
    """What is configured now has been rendered; it changes no file here, so the edge has it."""
    row = await centre.row(cluster)
    collected = await RenderInputs(centre.ports.config, BASE_URL).collect(row)
    commit = centre.git.head(cluster) or ""
    await centre.steps.record_rendering(fence_of(row), collected.digest, collected.sources, commit=commit)


async def said_by_installation(centre: GatewayCentre, said: dict[str, object]) -> None:
    place = (APP_INSTALLATION, SERVICE_CLUSTER_MANAGER)
    entry = await centre.ports.config.get(*place)
    await centre.ports.config.put(*place, {**(entry.body if entry else {}), **said}, actor="centre")


async def test_a_configuration_that_is_in_no_commit_counts_before_any_workflow_looks(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient
) -> None:
    await rendered(centre, up_to_date)
    assert (await synced(admin, up_to_date))["status"] == "True"
    began = datetime.now(UTC)
    answer = await admin.patch(f"/v1/cluster/{up_to_date}", json={"values": {"a": 1}})
    [told] = [each for each in answer.raise_for_status().json()["conditions"] if each["type"] == "Synced"]
    assert told == await synced(admin, up_to_date), "the answer says what a look at the cluster does"
    assert (told["status"], told["reason"]) == ("False", "Behind")
    assert told["message"] == "The repository does not have the cluster's present configuration yet."
    assert began <= datetime.fromisoformat(told["since"]) <= datetime.now(UTC)
    await rendered(centre, up_to_date)
    assert (await synced(admin, up_to_date))["status"] == "True"


@pytest.mark.parametrize("patch", [{"labels": {"a": "b"}}, {"lease_seconds": 90}])
async def test_what_is_rendered_into_no_file_changes_nothing(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient, patch: dict[str, object]
) -> None:
    await rendered(centre, up_to_date)
    (await admin.patch(f"/v1/cluster/{up_to_date}", json=patch)).raise_for_status()
    assert (await synced(admin, up_to_date))["status"] == "True"


async def test_a_template_that_was_changed_or_is_gone_counts_for_each_cluster_with_it(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient
) -> None:
    """Nothing in the cluster's own row says so."""
    await rendered(centre, up_to_date)
    path = f"/v1/app/{APP_HELM_CHART_TEMPLATE}/object/{OBJECT_DEFAULT_CHART}"
    chart = (await admin.get(path)).raise_for_status().json()
    values = {**chart["values"], "a": "b"}
    (await admin.put(path, json={**chart, "values": values})).raise_for_status()
    told = await synced(admin, up_to_date)
    assert (told["status"], told["reason"]) == ("False", "Behind")
    await rendered(centre, up_to_date)
    assert (await synced(admin, up_to_date))["status"] == "True"
    (await admin.delete(path)).raise_for_status()
    told = await synced(admin, up_to_date)
    assert told["status"] == "False"
    assert f"The Helm chart template {OBJECT_DEFAULT_CHART} does not exist." in told["message"]
    assert told == await synced(admin, up_to_date), "it is so since one moment"


async def test_what_is_removed_or_deleted_has_no_configuration_to_have(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient
) -> None:
    await rendered(centre, up_to_date)
    (await admin.patch(f"/v1/cluster/{up_to_date}", json={"values": {"a": 1}})).raise_for_status()
    assert (await synced(admin, up_to_date))["status"] == "False"
    (await admin.delete(f"/v1/cluster/{up_to_date}")).raise_for_status()
    assert (await synced(admin, up_to_date))["status"] == "True"


async def test_whoever_renders_with_another_version_contradicts_nobody(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient
) -> None:
    """While an upgrade is under way, workers of the version in force decide."""
    await rendered(centre, up_to_date)
    (await admin.patch(f"/v1/cluster/{up_to_date}", json={"values": {"a": 1}})).raise_for_status()
    await said_by_installation(centre, {RENDERER_IN_FORCE: RENDERER_VERSION + 1})
    assert (await synced(admin, up_to_date))["status"] == "True"


async def test_a_rendering_that_is_under_way_is_not_committed_yet(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient
) -> None:
    """Nor is one that a restore asks for."""
    await centre.steps.begin_rendering(fence_of(await centre.row(up_to_date)))
    told = await synced(admin, up_to_date)
    assert (told["status"], told["reason"]) == ("False", "Behind")


@pytest.mark.parametrize(("url", "status"), [("https://elsewhere.example", "True"), (BASE_URL, "False")])
async def test_whoever_renders_with_another_url_decides(
    centre: GatewayCentre, up_to_date: UUID, admin: httpx.AsyncClient, url: str, status: str
) -> None:
    """Else all clusters of a gateway with a setting of its own would be behind for ever."""
    await said_by_installation(centre, {RENDERED_WITH: {"external_url": url}})
    (await admin.patch(f"/v1/cluster/{up_to_date}", json={"values": {"a": 1}})).raise_for_status()
    assert (await synced(admin, up_to_date))["status"] == status


@pytest.mark.parametrize("trouble", [Waiting("It is busy."), Stalled("It is damaged.", code="database_damaged")])
async def test_what_cannot_be_read_contradicts_nobody_and_fails_no_verb(
    centre: GatewayCentre,
    up_to_date: UUID,
    admin: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    trouble: EdgewrightError,
) -> None:
    async def fails(*_: object) -> None:
        raise trouble

    monkeypatch.setattr(RenderInputs, "collect", fails)
    answer = await admin.patch(f"/v1/cluster/{up_to_date}", json={"values": {"a": 1}})
    assert answer.status_code == 200, answer.text
    assert (await synced(admin, up_to_date))["status"] == "True"
