"""Requests that come at the same time are staged in one transaction: a burst of secrets costs a few of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.engine.portions import execute_in_portions
from edgewright.adapters.database.events.feed import take_positions
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import present_row
from edgewright.adapters.database.rows.staged_rows import INSERT, new_row, of_requests
from edgewright.errors import EdgewrightError, Refused, Superseded
from edgewright.ports.secret_staging import StagedChange

Staged = Sequence[StagedChange]


@dataclass(frozen=True, eq=False)
class _WaitingRequest:
    """The changes of one request, and who waits for them to be staged."""

    request: UUID
    cluster: UUID
    generation: int
    changes: Staged
    outcome: "asyncio.Future[Staged]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class StagingBatcher:
    """Stages the requests of one process. While a transaction is under way, those that come wait for the next one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_WaitingRequest] = []
        self._runner: asyncio.Task[None] | None = None

    async def stage(self, changes: Staged) -> Staged:
        """See ``SecretStaging.stage``. Whoever is cancelled before its transaction began has staged nothing."""
        [(request, cluster, generation)] = {(change.request, change.cluster, change.generation) for change in changes}
        waiting = _WaitingRequest(request, cluster, generation, changes)
        self._waiting.append(waiting)
        if self._runner is None:
            self._runner = asyncio.create_task(self._run())
        return await waiting.outcome

    async def _run(self) -> None:
        batch: list[_WaitingRequest] = []
        try:
            while self._waiting:
                batch, self._waiting = [each for each in self._waiting if not each.outcome.done()], []
                await self._stage(batch)
        except Exception as error:  # noqa: BLE001 - each caller meets it; who came meanwhile waits for the same database
            batch, self._waiting = batch + self._waiting, []
            for each in batch:
                _settle(each, error)
        finally:
            self._runner = None
            for each in (*batch, *self._waiting):
                each.outcome.cancel()  # only if this task itself was cancelled: nobody may wait for it

    async def _stage(self, batch: Sequence[_WaitingRequest]) -> None:
        if not batch:
            return
        async with self._database.write() as connection:
            outcomes = await _staged(connection, batch)
        for each, outcome in zip(batch, outcomes, strict=True):
            _settle(each, outcome)


async def _staged(connection: AsyncConnection, batch: Sequence[_WaitingRequest]) -> list[Staged | EdgewrightError]:
    """What came of each request, in the order given; a refusal of one does not touch the others."""
    owners = {cluster: await _owner(connection, cluster) for cluster in sorted({each.cluster for each in batch})}
    staged = await of_requests(connection, [each.request for each in batch])
    fresh: dict[UUID, _WaitingRequest] = {}
    refusals: dict[_WaitingRequest, EdgewrightError] = {}
    for each in batch:
        owner = owners[each.cluster]
        if each.request in staged:
            continue  # another delivery of it came first: it may be committed, whatever the cluster takes now
        if isinstance(owner, EdgewrightError):
            refusals[each] = owner
        elif owner.generation != each.generation:
            refusals[each] = Superseded(
                f"{owner.name} lives on other hardware now.", hint="Seal the secret again, for its new certificate."
            )
        else:
            fresh.setdefault(each.request, each)
    changes = [change for each in fresh.values() for change in each.changes]
    if changes:
        positions = await take_positions(connection, len(changes))
        placed = [replace(change, sequence=at) for change, at in zip(changes, positions, strict=True)]
        await execute_in_portions(connection, INSERT, [new_row(change)._asdict() for change in placed])
        for change in placed:
            staged.setdefault(change.request, []).append(change)
    return [refusals.get(each) or staged[each.request] for each in batch]


async def _owner(connection: AsyncConnection, cluster: UUID) -> ClusterRecord | Refused:
    try:
        return await present_row(connection, cluster)
    except Refused as refusal:
        return refusal


def _settle(waiting: _WaitingRequest, outcome: "Staged | Exception") -> None:
    if waiting.outcome.done():
        return
    if isinstance(outcome, Exception):
        waiting.outcome.set_exception(outcome)
    else:
        waiting.outcome.set_result(outcome)
