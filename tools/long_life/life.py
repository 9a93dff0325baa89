"""One cluster, week after week: what operators, teams and its edge do to it."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from centre import WorkflowCentre, eventually
from cluster_states import is_told, states

from edgewright.adapters.temporal.nudging import nudge_all
from edgewright.domain.cluster import Acceptance, ClusterSettings, Phase
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.lifecycle import COMMISSIONING, REMOVAL, RENDERING
from edgewright.domain.projection import Projection
from edgewright.domain.wellknown import APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.secret_staging import StagedChange, StagedState
from edgewright.sealing import Plaintext, Scope, seal
from tools.long_life.edge import LEASE_SECONDS, LongLifeEdge
from tools.long_life.ledger import Ledger
from tools.long_life.plan import LongLifePlan
from tools.long_life.shared_clock import SharedClock

NAME = "old-timer"
ACTOR = "token:life"
KEYS = 60
"""Different keys of secrets; what is written beyond them replaces one."""
AT_ONCE = 3


class LongLife:
    """Notes in the ledger what it does; each call returns when the workflow has told of it."""

    def __init__(self, centre: WorkflowCentre, clock: SharedClock, plan: LongLifePlan) -> None:
        self._centre = centre
        self._plan = plan
        self._week = 0
        self._written = 0
        self._present: set[int] = set()
        self.cluster = uuid4()
        self.ledger = Ledger()
        self.edge = LongLifeEdge(centre, clock, self.cluster, self.ledger)

    async def begin(self) -> None:
        """Commissioned and attached."""
        settings = ClusterSettings(lease_seconds=LEASE_SECONDS)
        await self._centre.wishes.write_configuration(
            self.cluster, self._configuration(), actor=ACTOR, settings=settings, create_object=True
        )
        await self._centre.fleet.nudge(self.cluster)
        self.ledger.note("cluster.created")
        self.ledger.note("phase.changed", f"Now {Phase.AWAITING_BOOTSTRAP}.")
        self.ledger.note_steps(*COMMISSIONING)
        await self.settled()
        await self._attach()

    async def week(self) -> None:
        """What is due this week."""
        self._week += 1
        rhythm = self._plan.rhythm
        await self._write_secrets()
        await self.edge.report()
        due = (
            (rhythm.config, self._change_configuration),
            (rhythm.lapse, self.edge.fall_silent_and_come_back),
            (rhythm.pause, self._pause),
            (rhythm.certificate, self.edge.change_certificate),
            (rhythm.template, self._change_template),
            (rhythm.rotation, self.edge.rotate_credentials),
            (rhythm.removal, self._remove_and_come_back),
            (rhythm.recreation, self._recreate),
            (rhythm.new_hardware, self._move_to_new_hardware),
        )
        for weeks, moment in due:
            if self._week % weeks == 0:
                await self.settled()
                await moment()
        await self.settled()

    async def upgraded(self) -> None:
        """After the start of another version, which wakes every cluster."""
        before = await self._digest()
        await nudge_all(self._centre.fleet, await self._centre.directory.open_clusters())
        await self._rendered_anew(before)

    async def settled(self) -> None:
        """Returns when the workflow has done and told all that is wanted."""
        seen: list[ClusterRow] = []

        async def rests() -> bool:
            seen[:] = [await self._centre.row(self.cluster)]
            shown = seen[0].projection
            if shown is None or not _rests(seen[0], shown):
                return False
            return shown.desired_revision == await asyncio.to_thread(self._centre.git.head, self.cluster)

        await eventually(rests, shows=lambda: str(seen))

    async def told(self) -> None:
        """Returns when the workflow has nothing left to tell."""
        await self.settled()
        await eventually(lambda: is_told(self._centre, self.cluster))

    async def _write_secrets(self) -> None:
        """Several at once, as teams do; now and then one is deleted. The edge applies what came of it."""
        for first in range(0, self._plan.secrets, AT_ONCE):
            changes = [self._next_change() for _ in range(min(AT_ONCE, self._plan.secrets - first))]
            await asyncio.gather(*(self._write(change) for change in changes))
        await self.settled()
        await self.edge.beat(applied=await asyncio.to_thread(self._centre.git.head, self.cluster))

    async def _write(self, change: StagedChange) -> None:
        await self._centre.ports.staging.stage([change])
        await self._centre.fleet.change_secrets(self.cluster, [change.request])
        assert await states(self._centre, [change]) == {StagedState.COMMITTED: 1}

    def _next_change(self) -> StagedChange:
        self._written += 1
        number = self._written % KEYS
        deletes = self._written % 11 == 0 and number in self._present
        (self._present.discard if deletes else self._present.add)(number)
        name, certificate = f"secret-{number % 20}", self.edge.certificate
        assert certificate
        value = Plaintext(f"value {self._written} of this key".encode() * 2)
        sealed = seal(value, certificate, scope=Scope.STRICT, secret=SecretReference("default", name))
        change = StagedChange(
            request=uuid4(),
            cluster=self.cluster,
            generation=self.edge.generation,
            place=SecretKey("default", name, f"key-{number}"),
            ciphertext=None if deletes else sealed,
            fingerprint=None if deletes else certificate.fingerprint,
            sealed_at=datetime.now(UTC),
            actor=ACTOR,
        )
        self.ledger.note_secret(change)
        return change

    async def _change_configuration(self) -> None:
        written = await self._centre.wishes.write_configuration(self.cluster, self._configuration(), actor=ACTOR)
        self.ledger.note("cluster.changed", written.entry.etag)
        self.ledger.note_steps(*RENDERING)
        await self._centre.fleet.nudge(self.cluster)

    async def _change_template(self) -> None:
        place, entries = (APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART), self._centre.ports.config
        entry, before = await entries.get(*place), await self._digest()
        assert entry
        body = {**entry.body, "values": {**entry.body.get("values", {}), "season": self._week}}
        await entries.put(*place, body, actor=ACTOR)
        for cluster in await self._centre.directory.using_template(*place):
            await self._centre.fleet.nudge(cluster, bulk=True)
        await self._rendered_anew(before)

    async def _pause(self) -> None:
        """A secret that is written meanwhile waits for the end of it."""
        fleet, reason = self._centre.fleet, f"maintenance in week {self._week}"
        await fleet.pause(self.cluster, reason=reason, actor=ACTOR)
        self.ledger.note("cluster.paused", reason)
        change = self._next_change()
        await self._centre.ports.staging.stage([change])
        await fleet.nudge(self.cluster)
        await fleet.resume(self.cluster, actor=ACTOR)
        self.ledger.note("cluster.resumed")

        async def committed() -> bool:
            return await states(self._centre, [change]) == {StagedState.COMMITTED: 1}

        await eventually(committed)

    async def _remove_and_come_back(self) -> None:
        """The entry is deleted in the Config Store and written again."""
        await self._centre.wishes.request_removal(self.cluster, actor=ACTOR)
        self.ledger.note("cluster.removed")
        self.ledger.note_steps(*REMOVAL)
        self.ledger.note("credential.suspended")
        await self._centre.fleet.nudge(self.cluster)
        await self.settled()
        await self._centre.wishes.write_configuration(self.cluster, self._configuration(), actor=ACTOR)
        self.ledger.note_phases(Phase.ACTIVE, Phase.REMOVED, Phase.COMMISSIONING, Phase.ACTIVE)
        await self._commissioned_anew()
        self.ledger.note("credential.resumed")

    async def _recreate(self) -> None:
        await self._centre.wishes.request_recreation(self.cluster, actor=ACTOR, new_hardware=False)
        self.ledger.note_phases(Phase.ACTIVE, Phase.COMMISSIONING, Phase.ACTIVE)
        self.ledger.note_steps("withdraw_status")
        await self._commissioned_anew()

    async def _move_to_new_hardware(self) -> None:
        await self._centre.wishes.request_recreation(self.cluster, actor=ACTOR, new_hardware=True)
        self.ledger.note_phases(Phase.ACTIVE, Phase.COMMISSIONING, Phase.AWAITING_BOOTSTRAP)
        self.ledger.note_steps("withdraw_status", "withdraw_secrets")
        self._present.clear()
        await self._commissioned_anew()
        await self._attach()

    async def _commissioned_anew(self) -> None:
        row = await self._centre.row(self.cluster)
        self.ledger.note("cluster.recreated", row.commissioning)
        self.ledger.note_steps(*COMMISSIONING)
        await self._centre.fleet.nudge(self.cluster)
        await self.settled()

    async def _attach(self) -> None:
        await self.edge.attach()
        self.ledger.note_phases(Phase.AWAITING_BOOTSTRAP, Phase.ACTIVE)
        await self.settled()
        assert (await self._centre.row(self.cluster)).acceptance is Acceptance.ACCEPTED

    async def _rendered_anew(self, before: str | None) -> None:
        self.ledger.note_steps(*RENDERING)

        async def another() -> bool:
            return await self._digest() != before

        await eventually(another)
        await self.settled()

    async def _digest(self) -> str | None:
        projection = (await self._centre.row(self.cluster)).projection
        return projection.done.rendered_digest if projection else None

    def _configuration(self) -> dict[str, Any]:
        return {"name": NAME, "namespace": "edgewright", "values": {"week": self._week}}


def _rests(row: ClusterRow, shown: Projection) -> bool:
    """Whether what was published last is all that is wanted."""
    if shown.change_done != row.change or shown.lease_epoch != row.lease.epoch:
        return False
    return shown.plan == "idle" or (shown.plan.startswith("remove/") and all(s.state == "done" for s in shown.steps))
