"""What a cluster is said to have applied, between a commit and the workflow's look at it."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
import pytest
from gateway_centre import GatewayCentre

from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType
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
