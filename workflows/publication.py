"""Publishes the state of a cluster's workflow: its projection in the database, its events, and the Web UI."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError

from edgewright.domain.cluster import ConditionStatus, ConditionType, Phase, Wanted
from edgewright.domain.events import EventKind, NewEvent, event_id
from edgewright.domain.projection import Projection
from edgewright.messages import names
from edgewright.messages.steps import Publish
from workflows import policies
from workflows.failures import superseded

PORTIONS = "events in portions"
"""Patch. Earlier runs keep events that do not fit into one publication for the next one."""
NAME = SearchAttributeKey.for_keyword(names.ATTRIBUTE_NAME)
PHASE = SearchAttributeKey.for_keyword(names.ATTRIBUTE_PHASE)
READY = SearchAttributeKey.for_bool(names.ATTRIBUTE_READY)
AVAILABLE = SearchAttributeKey.for_keyword(names.ATTRIBUTE_AVAILABLE)
LABELS = SearchAttributeKey.for_keyword_list(names.ATTRIBUTE_LABELS)
REVISION = SearchAttributeKey.for_keyword(names.ATTRIBUTE_REVISION)

ALWAYS_SHOWN = frozenset({ConditionType.AVAILABLE, ConditionType.SYNCED})
"""Conditions to show even if unknown: then the edge is silent, or has not reported what it applied."""


class Publication:
    """Publishes what differs from what was published last."""

    def __init__(
        self,
        cluster: UUID,
        projection: Projection | None,
        events: tuple[NewEvent, ...],
        attempted: int = 0,
        *,
        untold: bool = False,
    ) -> None:
        self.cluster = cluster
        self.projection = projection
        self.attempted = max(attempted, projection.sequence if projection else 0)
        self.events = list(events)
        self._untold = untold
        self._notice = ""
        self._shown: tuple[object, ...] | None = None

    def tell(
        self, kind: EventKind, message: str, *, actor: str = "centre", **detail: str | int | float | bool | None
    ) -> None:
        """Adds an event for the next publication."""
        at = workflow.now()
        same = (kind, message, detail, at)
        twins = sum((told.kind, told.message, told.detail, told.happened_at) == same for told in self.events)
        self.events.append(
            NewEvent(
                id=event_id(self.cluster, kind=kind, message=message, facts=detail, at=at, twins=twins),
                cluster=self.cluster,
                actor=actor,
                kind=kind,
                message=message,
                detail=detail,
                happened_at=at,
            )
        )

    def refuse(self, kind: EventKind, message: str, *, actor: str, **detail: str | int | float | bool | None) -> None:
        """Adds an event that answers somebody, who looks for it where the message was sent: in the Web UI."""
        self.tell(kind, message, actor=actor, **detail)
        self._notice = f"Refused at {moment(workflow.now())}: {message.removeprefix('Refused: ')}"

    def overtaken(self, wanted: Wanted) -> bool:
        """Whether the database holds a newer projection than this run ever sent: an older copy of Temporal was put
        back, or this run was reset, so its memory is out of date."""
        return wanted.projected_sequence > self.attempted

    async def publish(self, projection: Projection, wanted: Wanted) -> bool:
        """Publishes if something differs. False: the database is unavailable, or has a newer projection (then
        ``overtaken`` is true); everything is kept for later.

        Sets ``projection.sequence``.
        """
        self._note_phase(projection)
        before = self.projection
        sequence = max(before.sequence if before else 0, wanted.projected_sequence)
        if (
            before is not None
            and not self.events
            and not self._untold
            and projection.model_copy(update={"sequence": before.sequence}) == before
            and wanted.projected_sequence == before.sequence
            and not wanted.unread_news
        ):
            return True
        numbered = projection.model_copy(update={"sequence": sequence + 1})
        self.attempted = sequence + 1
        message = Publish(cluster=self.cluster, projection=numbered, events=tuple(self.events))
        try:
            await workflow.execute_activity(
                "publish",
                message,
                summary=f"{numbered.phase}",
                **policies.PUBLISH,
            )
        except ActivityError as error:
            if superseded(error):
                self.attempted = 0  # what was sent under these numbers is not what the database holds
            return False
        self.projection, self._untold = numbered, False
        del self.events[: len(message.events)]
        if self.events and workflow.patched(PORTIONS):
            return await self.publish(projection, self.reread(wanted))
        return True

    def reread(self, wanted: Wanted) -> Wanted:
        """Returns what a new reading would say about publications since."""
        number = self.projection.sequence if self.projection else 0
        return wanted.model_copy(update={"projected_sequence": max(number, wanted.projected_sequence)})

    def without_phases(self) -> tuple[NewEvent, ...]:
        """Returns unpublished events for a caller that continues from another projection."""
        return tuple(event for event in self.events if event.kind != EventKind.PHASE_CHANGED)

    def _note_phase(self, projection: Projection) -> None:
        before = self._phase_told()
        if before == projection.phase.value:
            return
        came_from = f" (was {before})" if before else ""
        self.tell(EventKind.PHASE_CHANGED, f"Now {projection.phase}{came_from}.", phase=projection.phase.value)

    def _phase_told(self) -> str:
        """Returns the phase of the last event, whether or not it could be published."""
        waiting = [str(event.detail["phase"]) for event in self.events if event.kind == EventKind.PHASE_CHANGED]
        published = self.projection.phase.value if self.projection else ""
        return waiting[-1] if waiting else published

    def show(self, projection: Projection, wanted: Wanted) -> None:
        """Sets search attributes and current details. Only writes changes, because each one costs an event."""
        details = describe(projection, wanted, notice=self._notice)
        available = projection.status_of(ConditionType.AVAILABLE).value
        labels = searchable(wanted.labels)
        shown = (
            wanted.name,
            projection.phase,
            projection.ready,
            available,
            tuple(labels),
            projection.desired_revision,
        )
        workflow.set_current_details(details)
        if shown == self._shown:
            return
        self._shown = shown
        workflow.upsert_search_attributes(
            [
                NAME.value_set(wanted.name),
                PHASE.value_set(projection.phase.value),
                READY.value_set(projection.ready),
                AVAILABLE.value_set(available),
                LABELS.value_set(labels),
                REVISION.value_set(projection.desired_revision)
                if projection.desired_revision
                else REVISION.value_unset(),
            ]
        )


def describe(projection: Projection, wanted: Wanted, *, notice: str = "") -> str:
    """Returns the current details for the Web UI: Markdown for people who have never seen the code.

    Args:
        notice: the newest refusal of a message.
    """
    lines = [f"**{wanted.name}** is **{projection.phase}**."]
    if projection.waiting_for:
        lines.append(f"Waiting for: {projection.waiting_for}")
    elif projection.phase is Phase.AWAITING_BOOTSTRAP:
        lines.append("Commissioned. Run the bootstrap line on the edge cluster.")
    elif projection.phase is Phase.PENDING_ACCEPTANCE:
        lines.append("An edge has registered. Accept or reject it.")
    stated = [c for c in projection.conditions if c.status is not ConditionStatus.UNKNOWN or c.type in ALWAYS_SHOWN]
    if stated:
        lines.append("")
        lines += [f"- {c.type}: {c.status} ({c.reason}){': ' + c.message if c.message else ''}" for c in stated]
    if projection.residue:
        lines.append("")
        lines.append("Not cleaned up yet:")
        lines += [f"- {r.step}: {r.reason}" for r in projection.residue]
    if notice:
        lines += ["", notice]
    return "\n".join(lines)


def searchable(labels: Mapping[str, str]) -> list[str]:
    """Returns as many labels as fit into a search attribute, sorted: one byte too many would wedge the workflow."""
    fitting: list[str] = []
    left = names.LABELS_BYTES
    for label in sorted(f"{key}={value}" for key, value in labels.items()):
        left -= len(f'"{label}",')
        if left < 0:
            break
        fitting.append(label)
    return fitting


def moment(at: datetime) -> str:
    """A moment in a sentence."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
