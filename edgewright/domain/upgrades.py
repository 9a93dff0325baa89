"""Upgrades of an edge's own components: which version a cluster is to have, and what proves that it has it."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from edgewright.domain.cluster import Frozen
from edgewright.domain.edge_status import EdgeStatus

PATIENCE = timedelta(minutes=15)
"""From when an edge that is heard could have an upgrade until it must have proven it: Flux may need ten minutes to
fetch by itself."""
FLUX_DRIVER = "edgewright-flux-"
"""What the Kustomization that applies Flux is called, before the version."""
AGENT_DRIVER = "edgewright-agent"
"""The Kustomization that applies the agent."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.]+")
_IMAGE = "agent-image"
_LONGEST_IMAGE, _LONGEST_VERSION = 512, 128
_REPORTED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")
"""What a version or an image's name is made of: an edge may say anything, and what it says is shown and rendered."""
_SHOWN = 12
"""Digits of a digest that people are shown."""


class Component(StrEnum):
    """What bootstrap has installed on an edge, and the centre can upgrade there."""

    AGENT = "agent"
    FLUX = "flux"

    @property
    def titled(self) -> str:
        """As a sentence begins with it."""
        return {Component.AGENT: "The agent", Component.FLUX: "Flux"}[self]


class UpgradeState(StrEnum):
    """Where an upgrade is. Only the first is not an end."""

    UNDER_WAY = "under_way"
    DONE = "done"
    FELL_BACK = "fell_back"
    FAILED = "failed"
    REPLACED = "replaced"
    CANCELLED = "cancelled"


class AgentTarget(Frozen):
    """What the agent's pod is to run from.

    Args:
        image: with a tag or digest.
        pull_secret: name of the Secret with the registry's password; None: it needs none.
        priority_class: of the pod.
    """

    image: str
    pull_secret: str | None = None
    priority_class: str | None = None

    @property
    def version(self) -> str:
        """How people are told of it: the tag, or the beginning of the digest."""
        name, _, digest = self.image.partition("@")
        _, colon, tag = name.rpartition(":")
        if colon and "/" not in tag:
            return tag
        return digest.removeprefix("sha256:")[:_SHOWN]


class FluxTarget(Frozen):
    """Which imported Flux an edge is to have.

    Args:
        sha256: of the file.
        labelled: its version, such as ``v2.7.0``; empty if its objects are not labelled.
        mirror: registry that its images come from; None: as the file names them.
    """

    sha256: str
    labelled: str = ""
    mirror: str | None = None

    @property
    def version(self) -> str:
        """How people are told of it: its version, or the beginning of the file's SHA-256."""
        return self.labelled or self.sha256[:_SHOWN]

    @property
    def driver(self) -> str:
        """The Kustomization that applies it. Each version has one of its own, so that what it says is of no other."""
        return FLUX_DRIVER + _NOT_IN_NAMES.sub("-", self.version.lower()).strip("-.")


class WantedComponents(Frozen):
    """The desired versions of a cluster; None: what bootstrap has installed stays as it is."""

    agent: AgentTarget | None = None
    flux: FluxTarget | None = None

    def with_target(self, target: AgentTarget | FluxTarget) -> "WantedComponents":
        """The same with another version of one component."""
        name = Component.AGENT if isinstance(target, AgentTarget) else Component.FLUX
        return self.model_copy(update={name.value: target})


@dataclass(frozen=True)
class Upgrade:
    """The last upgrade of one component of a cluster.

    Args:
        before: what the edge had, as people are told of it; None: it did not say.
        since: when it was admitted.
        ended_at: None: it is under way.
        reason: why it ended as it did, or what it waits for; empty: there is nothing to say.
    """

    cluster: UUID
    name: str
    component: Component
    version: str
    before: str | None
    state: UpgradeState
    since: datetime
    ended_at: datetime | None
    reason: str


def is_proven(wanted: WantedComponents, component: Component, status: EdgeStatus) -> bool:
    """Whether an edge says that it runs what is wanted."""
    if component is Component.AGENT:
        image = wanted.agent.image if wanted.agent else None
        return image is not None and reported(status, _IMAGE) == image
    driver = wanted.flux.driver if wanted.flux else None
    kustomizations = status.flux.kustomizations if status.flux else ()
    return any(
        each.name == driver and any(said.type == "Ready" and said.status == "True" for said in each.conditions)
        for each in kustomizations
    )


def has_begun(wanted: WantedComponents, component: Component, status: EdgeStatus) -> bool:
    """Whether an edge says that it applies what is wanted; the agent, whose image says so, is not asked."""
    driver = wanted.flux.driver if wanted.flux and component is Component.FLUX else None
    return any(each.name == driver for each in (status.flux.kustomizations if status.flux else ()))


def trouble_of(wanted: WantedComponents, component: Component, status: EdgeStatus) -> str:
    """What Flux says of the Kustomization that is to bring it; empty: nothing."""
    driver = AGENT_DRIVER if component is Component.AGENT else wanted.flux.driver if wanted.flux else ""
    for each in status.flux.kustomizations if status.flux else ():
        if each.name == driver:
            return next((said.message or "" for said in each.conditions if said.type == "Ready"), "")
    return ""


def reported(status: EdgeStatus | None, program: str) -> str | None:
    """The version of a program on the edge, as its agent says; None: it does not, or not in a form that one has."""
    said = (status.versions or {}).get(program) if status else None
    longest = _LONGEST_IMAGE if program == _IMAGE else _LONGEST_VERSION
    return said if said is not None and len(said) <= longest and _REPORTED.fullmatch(said) else None
