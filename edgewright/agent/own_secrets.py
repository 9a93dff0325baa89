"""The Secrets on the edge that are this cluster's."""

from collections.abc import Mapping
from typing import Protocol

from edgewright.agent.attachment import CLUSTER_LABEL, Attachment
from edgewright.agent.passwords import HeldSecret
from edgewright.errors import Stalled


class Secrets(Protocol):
    """The Secrets of one namespace; see ``kubernetes.Kubernetes``."""

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None: ...

    async def change_secret(
        self, namespace: str, name: str, version: str, data: Mapping[str, str | None]
    ) -> HeldSecret: ...


async def read_own(secrets: Secrets, namespace: str, name: str, attachment: Attachment) -> HeldSecret:
    """A Secret of the cluster that is attached.

    Raises:
        Stalled: ``secret_missing``: there is none of that name, or it is another cluster's.
    """
    held = await secrets.held_secret(namespace, name)
    if held is None or held.labels.get(CLUSTER_LABEL) != attachment.cluster:
        raise Stalled(
            f"There is no Secret {name} of this cluster.",
            code="secret_missing",
            where=name,
            hint="Get a fresh bootstrap line from the centre and run it.",
        )
    return held
