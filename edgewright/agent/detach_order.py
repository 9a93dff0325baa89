"""The order to detach, as the centre words it: the one thing that makes an edge remove anything.

It names a cluster and a generation. What is not exactly that is no order, whatever else an answer holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from edgewright.agent.attachment import Attachment

REMOVE, KEEP = "remove", "keep"
"""What becomes of what Flux has applied and did not prune yet: it goes as well, or it stays and runs on."""


@dataclass(frozen=True, slots=True)
class ReceivedDetachOrder:
    """To whom, and what becomes of the workloads.

    Args:
        purge: the kind SealedSecret and the sealing keys go, too; never without the workloads.
    """

    cluster: str
    generation: int
    workloads: str
    purge: bool = False

    def is_for(self, attachment: Attachment) -> bool:
        """Whether this edge is meant."""
        return (self.cluster, self.generation) == (attachment.cluster, attachment.generation)


def read_order(said: object) -> ReceivedDetachOrder | None:
    """The order in an answer of the centre; None: it is none."""
    if not isinstance(said, Mapping):
        return None
    cluster, generation, workloads = said.get("cluster"), said.get("generation"), said.get("workloads")
    if not isinstance(cluster, str) or not cluster or isinstance(generation, bool):
        return None
    if not isinstance(generation, int) or workloads not in (REMOVE, KEEP):
        return None
    return ReceivedDetachOrder(cluster, generation, str(workloads), said.get("purge") is True and workloads == REMOVE)
