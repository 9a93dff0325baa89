"""``python -m edgewright.agent.detacher``: takes Edgewright away from its edge, once the centre orders it.

It has the rights for that, which the agent has not, and no pod until the agent starts it. It believes nobody but the
centre: it asks for the order itself, as this cluster, and carries out one that names this cluster and generation.
Every other answer, and silence, it waits out.
"""

import gc

if __name__ == "__main__":
    gc.disable()  # until all is loaded: none of it is garbage, and looking through it takes a third of a start

import asyncio
import sys
from collections.abc import Awaitable, Callable
from random import Random, SystemRandom
from typing import Any, Protocol

from edgewright.agent.attachment import ANCHOR, CLUSTER_LABEL, SECRET, Attachment, read_attachment
from edgewright.agent.centre import Centre
from edgewright.agent.cluster_objects import ANCHORS, ClusterObjects, Found
from edgewright.agent.detach_order import ReceivedDetachOrder
from edgewright.agent.detaching import GENERATION_LABEL, Detaching
from edgewright.agent.kubernetes import Kubernetes
from edgewright.agent.lifetime import main_of
from edgewright.agent.pauses import Backoff
from edgewright.agent.purging import Objects, Purged, read_outcome
from edgewright.agent.settings import AgentSettings
from edgewright.agent.timing import Clock, RealClock
from edgewright.agent.transitions import Transitions
from edgewright.errors import Conflict, EdgewrightError, Stalled, Unauthenticated, Waiting

GOODBYE = "edgewright.dev/goodbye"
"""Annotation of the anchor: all but the anchor is gone, and the centre is being told, as this generation."""
LONGEST_WAIT = 60.0


class DetachableEdge(Objects, Protocol):
    """See ``cluster_objects.ClusterObjects``."""

    async def get(self, kind: Any, name: str) -> Found | None: ...


class DetachingCentre(Protocol):
    """See ``centre.Centre``."""

    async def detach_order(self) -> ReceivedDetachOrder: ...

    async def goodbye(self, purged: Purged | None) -> None: ...

    async def close(self) -> None: ...


class Detacher:
    """Waits for the order to detach one edge, and carries it out.

    Args:
        attachment: asks for the attachment that is in force now; None: there is none.
        connect: makes the calls of an attachment.
    """

    def __init__(
        self,
        edge: DetachableEdge,
        *,
        attachment: Callable[[], Awaitable[Attachment | None]],
        connect: Callable[[Attachment], DetachingCentre],
        clock: Clock,
        chance: Random,
    ) -> None:
        self._edge = edge
        self._attachment = attachment
        self._connect = connect
        self._clock = clock
        self._matter = Transitions("detach")
        self._backoff = Backoff(chance, longest=LONGEST_WAIT)
        self._perhaps_heard = True

    async def run(self) -> None:
        """Returns when the anchor is deleted, or was not there any more."""
        while True:
            try:
                if await self._turn():
                    return
            except Conflict as answer:
                self._matter.well("not_ordered", detail=answer.detail)
                await self._clock.sleep(self._backoff.after_failure())
            except EdgewrightError as trouble:
                self._matter.trouble("waiting", detail=trouble.detail, code=trouble.code)
                asked = trouble.retry_after if isinstance(trouble, Waiting) else 0.0
                await self._clock.sleep(self._backoff.after_failure(asked))

    async def _turn(self) -> bool:
        """Whether all is done."""
        anchor = await self._edge.get(ANCHORS, ANCHOR)
        if anchor is None:
            self._matter.well("gone")
            return True
        attachment = await self._attachment()
        if attachment is None:
            raise Stalled(f"There is no Secret {SECRET}.", code="secret_missing")
        _refuse_foreign(anchor, attachment)
        centre = self._connect(attachment)
        try:
            if anchor.annotations.get(GOODBYE) != str(attachment.generation):
                order = await centre.detach_order()
                if not order.is_for(attachment):
                    raise Stalled("The order to detach names another cluster or generation.", code="not_meant")
                self._matter.well("ordered", workloads=order.workloads)
                await Detaching(self._edge, order, anchor=anchor, clock=self._clock).run()
                await self._edge.change(anchor, {"metadata": {"annotations": {GOODBYE: str(order.generation)}}})
                self._perhaps_heard = False
            told = await self._edge.get(ANCHORS, ANCHOR) or anchor
            await self._say_goodbye(centre, read_outcome(told, attachment.generation))
        finally:
            await centre.close()
        await self._edge.remove(anchor)
        self._matter.well("gone")
        return True

    async def _say_goodbye(self, centre: DetachingCentre, purged: Purged | None) -> None:
        """Returns when the centre has heard it. It revokes this credential then, so that an answer which was lost
        shows as a 401 to the next goodbye, and as nothing else: what is unknown before is unknown."""
        try:
            await centre.goodbye(purged)
        except Unauthenticated:
            if not self._perhaps_heard:
                raise
        except Waiting:
            self._perhaps_heard = True
            raise


def _refuse_foreign(anchor: Found, attachment: Attachment) -> None:
    """What is here is of the cluster and the generation that the anchor names, and of no other."""
    whose = (anchor.labels.get(CLUSTER_LABEL), anchor.labels.get(GENERATION_LABEL))
    if whose != (attachment.cluster, str(attachment.generation)):
        raise Stalled("What is installed here belongs to another cluster or generation.", code="anchor_foreign")


async def run(settings: AgentSettings) -> None:
    """Runs until it is cancelled: what is done stays done, and this pod goes with the rest."""
    kubernetes, objects = Kubernetes(), ClusterObjects()

    async def attachment() -> Attachment | None:
        content = await kubernetes.secret(settings.namespace or kubernetes.namespace(), SECRET)
        return None if content is None else read_attachment(content)

    try:
        await Detacher(objects, attachment=attachment, connect=Centre, clock=RealClock(), chance=SystemRandom()).run()
        await asyncio.Event().wait()
    finally:
        await objects.close()
        await kubernetes.close()


if __name__ == "__main__":
    sys.exit(main_of(run))
