"""Bodies of upgrades."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from api.schemas.base import Answer, Wish
from edgewright.domain.upgrades import Component, UpgradeState

_EXAMPLE: JsonDict = {
    "cluster": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
    "name": "press-7",
    "component": "agent",
    "version": "0.4.0-1f2e3d4c5b6a",
    "before": "0.3.0-9a8b7c6d5e4f",
    "state": "under_way",
    "since": "2026-03-01T12:00:00Z",
    "ended_at": None,
    "reason": "",
}


class WantedUpgrade(Wish):
    """``version``: of Flux, one that was imported; absent: what the centre offers now. ``at_once``: with this one, no
    more upgrades than this are under way in the whole fleet. ``even_if_silent``: begin though the edge is not heard.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"component": "flux", "version": "v2.7.3", "at_once": 5}]},
    )

    component: Component
    version: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    at_once: Annotated[int, Field(ge=1, le=500)] | None = None
    even_if_silent: bool = False


class UpgradeBody(Answer):
    """The last upgrade of one component of a cluster.

    ``before``: what the edge had, null if it did not say. ``reason``: why it ended as it did.
    """

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_EXAMPLE]})

    cluster: UUID
    name: str
    component: Component
    version: str
    before: str | None
    state: UpgradeState
    since: datetime
    ended_at: datetime | None
    reason: str


class AgentImageBody(Answer):
    """``version``: as upgrades call it, the tag of the image or the beginning of its digest."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"examples": [{"image": "registry.example.com/edge/agent:0.4.0", "version": "0.4.0"}]},
    )

    image: str
    version: str


class UpgradeList(Answer):
    """``next``: pass it as ``after`` to go on; null at the end."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [{"items": [_EXAMPLE], "next": None}]})

    items: list[UpgradeBody]
    next: str | None
