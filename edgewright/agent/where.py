"""Where the centre is reached: what the agent says of it, and what it is told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from edgewright.agent.urls import is_base_url

LONGEST_URL = 600
"""Characters; the centre looks at no longer one."""
LONGEST_PROBLEM = 300


@dataclass(frozen=True, slots=True)
class CentreDoor:
    """A way to the centre.

    Args:
        url: base URL, without a slash at its end.
        authority: PEM that signs its certificate, without white space around it; None: what this machine trusts.
    """

    url: str
    authority: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Where:
    """What is said of the way that is used.

    Args:
        holds_former: the way before is kept.
        problem: why it is not that which the centre wants.
    """

    door: CentreDoor
    holds_former: bool = False
    problem: str | None = None

    def to_json(self) -> dict[str, str | bool | None]:
        """Its part of a heartbeat."""
        authority = self.door.authority
        return {
            "centre_url": self.door.url if len(self.door.url) <= LONGEST_URL else None,
            "centre_ca_sha256": None if authority is None else sha256(authority.encode()).hexdigest(),
            "centre_problem": None if self.problem is None else self.problem[:LONGEST_PROBLEM],
            "holds_former": self.holds_former or None,
        }


def read_door(said: object) -> CentreDoor | None:
    """A way to the centre, as JSON has it; None for what the agent could not use."""
    if not isinstance(said, Mapping):
        return None
    url, bundle = said.get("url"), said.get("ca_bundle")
    if not isinstance(url, str) or not is_base_url(url) or not isinstance(bundle, str | None):
        return None
    return CentreDoor(url.rstrip("/"), bundle.strip() or None if bundle is not None else None)


def door_json(door: CentreDoor) -> Mapping[str, Any]:
    """What ``read_door`` reads."""
    return {"url": door.url, "ca_bundle": door.authority}
