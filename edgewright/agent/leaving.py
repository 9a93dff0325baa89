"""The agent's own part of a deletion: it says when no workload is left, and hands the order to detach on.

It removes nothing, and has no right to. What removes is the detacher, which rests until the agent starts it and which
asks the centre for the order itself; see ``detacher``.
"""

from collections.abc import Sequence
from typing import Protocol

from edgewright.agent.attachment import Attachment
from edgewright.agent.messages import ReceivedHeartbeatAnswer
from edgewright.agent.observation import OWN_SOURCE, Kustomized, Observation
from edgewright.agent.transitions import Transitions
from edgewright.errors import EdgewrightError

DETACHER = "edgewright-detach"
"""Deployment that has no pod until an edge is to go."""
EAGER_SECONDS = 15.0
"""At most that long until the next heartbeat, once the centre has heard that nothing is left: it goes on at once."""
DRIVER_FOLDER = "edo/cluster"
"""Folder of the driving repository with what drives the edge. It stays until the edge detaches."""


class Scales(Protocol):
    """See ``kubernetes.Kubernetes``."""

    async def scale(self, namespace: str, name: str, replicas: int) -> None: ...


class Leaving:
    """Plays one agent's part in the deletion of its cluster.

    Args:
        namespace: of the detacher.
    """

    def __init__(self, edge: Scales, *, namespace: str) -> None:
        self._edge = edge
        self._namespace = namespace
        self._matter = Transitions("detach")
        self._revision: str | None = None
        self._told_empty = False

    async def heard(self, answer: ReceivedHeartbeatAnswer, attachment: Attachment) -> None:
        """Takes note of what the centre wants. Only an order for this cluster and generation starts anything."""
        revision = answer.revision if answer.report_empty else None
        if revision != self._revision:
            self._revision, self._told_empty = revision, False
        if answer.report_empty:
            self._matter.well("emptying", note="The centre waits until no workload is left.")
        if not answer.detach:
            return
        order = answer.detach_order
        if order is None or not order.is_for(attachment):
            self._matter.trouble("not_meant", detail="The order to detach names no cluster, or another one.")
            return
        try:
            await self._edge.scale(self._namespace, DETACHER, 1)
        except EdgewrightError as trouble:
            self._matter.trouble("not_begun", detail=trouble.detail, code=trouble.code)
            return
        self._matter.well("handed_on", workloads=order.workloads)

    def says_empty(self, seen: Observation) -> bool:
        """Whether the next heartbeat says that no workload is left."""
        return self._revision is not None and is_empty(seen.kustomizations, self._revision)

    @property
    def expects_news(self) -> bool:
        """Whether the centre waits to hear that no workload is left: then no heartbeat may wait for the centre."""
        return self._revision is not None and not self._told_empty

    def has_news(self, seen: Observation) -> bool:
        """Whether no workload is left and no heartbeat has said so: one is due at once."""
        return not self._told_empty and self.says_empty(seen)

    def told(self, *, empty: bool) -> None:
        """A heartbeat is on its way. One that does not arrive is followed by the next as any other, not at once."""
        self._told_empty = self._told_empty or empty

    def pause(self, pause: float) -> float:
        """Seconds to the next heartbeat."""
        return min(pause, EAGER_SECONDS) if self._told_empty else pause


def is_empty(found: Sequence[Kustomized] | None, revision: str) -> bool:
    """Whether no workload that Flux runs for the centre is left. Flux keeps the inventory; nothing is guessed.

    That is so when every part of the driving repository has applied the commit that takes the workloads away, none
    but the drivers' holds an object that is not pruned, and Flux is not at work on the end of any of them. An edge
    on which nothing of Flux can be seen does not know, so it is not empty.

    Args:
        found: this cluster's Kustomizations, as seen last; None: never yet.
        revision: that commit, hexadecimal.
    """
    parts = [each for each in found or () if each.source == OWN_SOURCE]
    return (
        bool(parts)
        and all(_is_at(each.applied, revision) for each in parts)
        and all(each.holds == 0 for each in parts if _folder(each.path) != DRIVER_FOLDER)
        and not any(each.deleting for each in found or ())
    )


def _is_at(applied: str | None, revision: str) -> bool:
    """Flux spells a revision ``main@sha1:…``, older ones ``main/…``."""
    return applied is not None and applied.endswith((f":{revision}", f"/{revision}"))


def _folder(path: str) -> str:
    return path.removeprefix("./").rstrip("/")
