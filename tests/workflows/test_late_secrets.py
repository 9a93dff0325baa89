"""An attempt at committing secrets that wakes late: its worker was frozen, another one has done its work since."""

from typing import Any
from uuid import UUID

import pytest
from centre import WorkflowCentre
from staged_secrets import FrozenGitServer, committed_cluster, present_value, staged
from temporalio.testing import ActivityEnvironment

from activities.repository import SecretActivities
from edgewright.errors import Waiting
from edgewright.messages.steps import CommitSecrets, CommitSecretsResult
from edgewright.ports.secret_staging import StagedState


async def commit(centre: WorkflowCentre, cluster: UUID, git: Any = None) -> CommitSecretsResult:
    activities = SecretActivities(centre.ports.directory, centre.ports.staging, git or centre.ports.git)
    return await ActivityEnvironment().run(activities.commit_secrets, CommitSecrets(cluster=cluster))


@pytest.mark.parametrize("newer", [b"new", None])
async def test_an_older_value_never_wins_over_a_newer_one(idle_centre: WorkflowCentre, newer: bytes | None) -> None:
    cluster = await committed_cluster(idle_centre, "overtaken")
    first, second = staged(cluster, b"old"), staged(cluster, newer)
    staging = idle_centre.ports.staging
    await staging.stage([first])

    async def another_worker() -> None:
        await commit(idle_centre, cluster)
        await staging.stage([second])
        await commit(idle_centre, cluster)

    await commit(idle_centre, cluster, FrozenGitServer(idle_centre.git, another_worker))
    assert await present_value(idle_centre, cluster) == second.ciphertext
    assert [row.state for row in await staging.request(second.request)] == [StagedState.COMMITTED]


async def test_a_value_whose_deletion_was_confirmed_meanwhile_stays_away(idle_centre: WorkflowCentre) -> None:
    """To delete what is not there changes nothing, and the head stays where it was."""
    cluster = await committed_cluster(idle_centre, "deleted-meanwhile")
    written, deleted = staged(cluster, b"v"), staged(cluster, None)
    await idle_centre.ports.staging.stage([written])

    async def another_worker() -> None:
        await idle_centre.ports.staging.stage([deleted])
        await commit(idle_centre, cluster)

    await commit(idle_centre, cluster, FrozenGitServer(idle_centre.git, another_worker))
    assert await present_value(idle_centre, cluster) is None


async def test_nothing_is_committed_after_a_pause_has_been_recorded(idle_centre: WorkflowCentre) -> None:
    cluster = await committed_cluster(idle_centre, "paused")
    await idle_centre.ports.staging.stage([staged(cluster, b"v")])
    await idle_centre.wishes.set_paused(cluster, paused=True, reason="storage", actor="token:test")
    with pytest.raises(Waiting) as refused:
        await commit(idle_centre, cluster)
    assert refused.value.code == "paused"
    assert await present_value(idle_centre, cluster) is None
