"""Takes what a signal says of an edge, by the rules of the HTTP door."""

from temporalio import activity

from activities.clusters import applied_once
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.errors import Refused
from edgewright.messages.steps import Receipt, RecordEdgeStatus


class EdgeActivities:
    """The signals `edge_status` and `sealing_key_rotated`."""

    def __init__(self, door: EdgeStatusDoor) -> None:
        self._door = door

    @activity.defn(name="record_edge_status")
    async def record_edge_status(self, message: RecordEdgeStatus) -> Receipt:
        """Checks and records a status; a refusal is an answer, not a failure."""
        try:
            await self._door.record(
                message.cluster,
                message.body,
                merge=message.merge,
                actor=message.actor,
                generation=None,
                proposes=True,
                once=applied_once(message.verb),
            )
        except Refused as refusal:
            return Receipt(refusal=refusal.detail)
        return Receipt()
