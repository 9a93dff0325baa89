"""The steps of a cluster's life that change the database. Each is safe to repeat, and refused if it is late."""

import asyncio
from contextlib import suppress

from temporalio import activity

from edgewright.domain.accounts import accounts_of
from edgewright.domain.cluster import Desired, Fence
from edgewright.errors import NotFound, Stalled
from edgewright.messages.steps import StepInput, StepResult
from edgewright.ports.accounts import Accounts
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_access import EdgeAccess
from edgewright.ports.git_server import GitServer


class CommissioningActivities:
    """``organisation``: prefix of Sparkplug Group-IDs. ``external_url``: URL at which edges reach the gateway."""

    def __init__(
        self,
        directory: ClusterDirectory,
        steps: ClusterSteps,
        edge_access: EdgeAccess,
        accounts: Accounts,
        git: GitServer,
        *,
        organisation: str,
    ) -> None:
        self._directory = directory
        self._steps = steps
        self._edge_access = edge_access
        self._accounts = accounts
        self._git = git
        self._organisation = organisation

    @activity.defn(name="allocate_address")
    async def allocate_address(self, step: StepInput) -> StepResult:
        """Allocates the Sparkplug Group-ID."""
        row = await self._row(step.fence)
        group = f"{self._organisation}-{row.spec.name}"
        await self._steps.allocate_address(step.fence, group)
        return StepResult(note=f"Sparkplug Group-ID {group}.")

    @activity.defn(name="create_accounts")
    async def create_accounts(self, step: StepInput) -> StepResult:
        """Creates two principals with their grants, and reactivates suspended credentials."""
        row = await self._row(step.fence)
        await self._accounts.ensure(step.fence, accounts_of(row.uuid, row.spec.name))
        if row.commissioning > 1:  # nobody is let in before the first one
            await self._edge_access.resume(step.fence)
        return StepResult()

    @activity.defn(name="publish_status")
    async def publish_status(self, step: StepInput) -> StepResult:
        """Publishes the setup status with ``ready: true``."""
        row = await self._row(step.fence)
        spec = row.spec.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        counted = {"generation": row.generation, "commissioning": row.commissioning}
        body = {"ready": True, "spec": spec, **counted}
        await self._steps.publish_setup_status(step.fence, body)
        return StepResult()

    @activity.defn(name="withdraw_status")
    async def withdraw_status(self, step: StepInput) -> StepResult:
        """Deletes the setup status, and refuses commits that began earlier."""
        await self._steps.withdraw_setup_status(step.fence)
        await self._refuse_late_commits(step.fence)
        return StepResult()

    @activity.defn(name="suspend_credentials")
    async def suspend_credentials(self, step: StepInput) -> StepResult:
        """Suspends the credentials until the cluster is recreated."""
        await self._edge_access.suspend(step.fence)
        return StepResult()

    @activity.defn(name="begin_deletion")
    async def begin_deletion(self, step: StepInput) -> StepResult:
        """Marks the point of no return."""
        await self._steps.begin_deletion(step.fence)
        return StepResult()

    @activity.defn(name="revoke_credentials")
    async def revoke_credentials(self, step: StepInput) -> StepResult:
        """Revokes the credentials after a goodbye; without one, a returning edge is only told to clean up."""
        wanted = await self._steps.read_wanted(step.fence.cluster)
        said_goodbye = wanted is None or wanted.detached_at is not None or not wanted.bootstrapped
        await self._edge_access.retire(step.fence, said_goodbye=said_goodbye)
        return StepResult(note="" if said_goodbye else "The edge said no goodbye: its credentials can only detach.")

    @activity.defn(name="remove_accounts")
    async def remove_accounts(self, step: StepInput) -> StepResult:
        """Removes accounts, grants and memberships."""
        await self._accounts.remove(step.fence)
        return StepResult()

    @activity.defn(name="remove_address")
    async def remove_address(self, step: StepInput) -> StepResult:
        """Removes the Sparkplug address and the Git entry."""
        await self._steps.remove_central_entries(step.fence, step.step)
        return StepResult()

    @activity.defn(name="remove_edge_status")
    async def remove_edge_status(self, step: StepInput) -> StepResult:
        """Removes the edge status."""
        await self._steps.remove_central_entries(step.fence, step.step)
        return StepResult()

    @activity.defn(name="remove_setup_status")
    async def remove_setup_status(self, step: StepInput) -> StepResult:
        """Removes the setup status last, which closes the row and frees the name."""
        row = await self._directory.get(step.fence.cluster)
        if row is None or not row.closed:
            await self._steps.remove_central_entries(step.fence, step.step)
        return StepResult()

    async def _refuse_late_commits(self, fence: Fence) -> None:
        """Refuses earlier commits. Ignores a missing repository, and a damaged one, which takes no commits anyway."""
        with suppress(NotFound):
            try:
                await asyncio.to_thread(self._git.raise_fence, fence.cluster, fence.trailer())
            except Stalled as error:
                if error.code != "repository_damaged":
                    raise

    async def _row(self, fence: Fence) -> ClusterRow:
        row = await self._directory.get(fence.cluster)
        if row is None or (row.desired is Desired.DELETED and row.closed):
            raise NotFound(f"There is no cluster {fence.cluster}.", code="cluster_unknown")
        return row
