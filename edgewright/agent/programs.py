"""Which programs are on the edge, in which versions, and whether bootstrap has installed its Flux."""

import math
from collections.abc import Mapping
from typing import Any, Protocol

from edgewright import __version__
from edgewright.agent.applied import LOOKS, METADATA
from edgewright.agent.attachment import BOOTSTRAP, CLUSTER_LABEL, PART_LABEL
from edgewright.agent.timing import Clock
from edgewright.agent.transitions import Transitions
from edgewright.errors import EdgewrightError, Forbidden, Unauthenticated

AGENT, AGENT_IMAGE, KUBERNETES, FLUX = "agent", "agent-image", "kubernetes", "flux"
"""Names of the programs; the image that the agent runs from counts as one."""
KUBERNETES_SECONDS = 3600.0
"""The API server is asked for its version so rarely: it changes by an upgrade only."""
FLUX_SECONDS = 60.0
"""Between two looks at Flux's definition: an upgrade from the centre changes it, and somebody waits for that."""
DEFINITION = "customresourcedefinitions"
GIT_REPOSITORIES = f"/apis/apiextensions.k8s.io/v1/{DEFINITION}/gitrepositories.source.toolkit.fluxcd.io"
"""Every Flux has this one."""
VERSION_LABEL = "app.kubernetes.io/version"
"""Flux's releases put it on each of their objects."""


class VersionedEdge(Protocol):
    """What is asked of the Kubernetes cluster; may raise an ``EdgewrightError``."""

    async def version(self) -> str: ...

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None: ...


class EdgePrograms:
    """Keeps what was seen last of the programs on one edge.

    Args:
        cluster: UUID, as the centre knows it.
        image: that this agent runs from; None: nobody has said.
    """

    def __init__(self, edge: VersionedEdge, *, cluster: str, image: str | None, clock: Clock) -> None:
        self._edge = edge
        self._cluster = cluster
        self._own = {AGENT: __version__} if image is None else {AGENT: __version__, AGENT_IMAGE: image}
        self._clock = clock
        self._kubernetes_due, self._flux_due = -math.inf, -math.inf
        self._kubernetes_matter, self._flux_matter = Transitions("version"), Transitions("flux_version")
        self._kubernetes: str | None = None
        self._flux: str | None = None
        self._refusals = 0
        self.flux_is_ours: bool | None = None
        """Whether bootstrap has installed Flux, for this cluster; None: there is none, or it may not be looked at."""

    @property
    def versions(self) -> Mapping[str, str] | None:
        """Program → version; None until the API server has told its own."""
        if self._kubernetes is None:
            return None
        flux = {} if self._flux is None else {FLUX: self._flux}
        return {**self._own, KUBERNETES: self._kubernetes, **flux}

    async def look(self) -> None:
        """Asks for what is due. What cannot be seen now stays as it was seen last."""
        now = self._clock.monotonic()
        if now >= self._kubernetes_due and await self._look_at_kubernetes():
            self._kubernetes_due = now + KUBERNETES_SECONDS
        if now >= self._flux_due and await self._look_at_flux():
            self._flux_due = now + FLUX_SECONDS

    async def _look_at_kubernetes(self) -> bool:
        """Whether there was an answer."""
        try:
            self._kubernetes = await self._edge.version()
        except EdgewrightError as error:
            self._kubernetes_matter.trouble("unseen", detail=error.detail, code=error.code)
            return False
        self._kubernetes_matter.well("seen")
        return True

    async def _look_at_flux(self) -> bool:
        """Whether there was an answer; a right that is missing is one, for an older version has installed none."""
        try:
            found = await self._edge.document(GIT_REPOSITORIES, METADATA, where=DEFINITION)
        except EdgewrightError as error:
            self._flux_matter.trouble("unseen", detail=error.detail, code=error.code)
            if not isinstance(error, Forbidden | Unauthenticated):
                return False
            self._refusals += 1
            if self._refusals >= LOOKS:  # an API server that has just started refuses, too
                self._flux, self.flux_is_ours = None, None
            return self._refusals >= LOOKS
        self._flux_matter.well("seen")
        self._refusals = 0
        labels = {} if found is None else _labels(found)
        self._flux = labels.get(VERSION_LABEL) or None
        ours = (labels.get(PART_LABEL), labels.get(CLUSTER_LABEL)) == (BOOTSTRAP, self._cluster)
        self.flux_is_ours = None if found is None else ours
        return True


def _labels(found: Mapping[str, Any]) -> dict[str, str]:
    metadata = found.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    said = labels.items() if isinstance(labels, Mapping) else ()
    return {name: value for name, value in said if isinstance(name, str) and isinstance(value, str)}
