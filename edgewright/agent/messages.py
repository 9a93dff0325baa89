"""What the agent and the centre say to each other, as the centre's OpenAPI document describes it.

The centre may be older or newer than the agent: what an answer has beyond this is not looked at.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from edgewright.agent.check_in import read_spans
from edgewright.agent.detach_order import ReceivedDetachOrder, read_order
from edgewright.agent.where import CentreDoor, Where, read_door
from edgewright.errors import Waiting

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SECRET = re.compile(rf"{_LABEL}/{_LABEL}(?:\.{_LABEL})*")

ACTIVE = "active"
PENDING = "pending"
ROLES = ("flux", "agent")
MOST_SOURCES = 8
LONGEST_DIGEST = 128
"""Characters."""


@dataclass(frozen=True, slots=True)
class SentHeartbeat:
    """A sign of life.

    Args:
        sent_at: by the edge's clock, aware.
        nonce: sent until it is answered; the answer repeats it.
        observed_revision: that Flux has applied, as it spells it; None: none yet.
        status_digest: what the centre's answer to the last status said; None: none was sent yet.
        flux_sha256: of the password that Flux uses, hexadecimal; None: it cannot be told, or not be replaced.
        inventory_empty: no workload is left; said only where the centre has asked.
        previous_nonce: the last one that was answered; None: none was since the start.
        where: the centre is reached; None: that is not told.
        wait: seconds for which the answer may be held back; 0: not at all.
        wants_digest, revisions: what the last answer said.
        asks_flux: Flux fetches when the agent asks it to; None: it has not tried yet.
    """

    sent_at: datetime
    nonce: str
    observed_revision: str | None = None
    status_digest: str | None = None
    flux_sha256: str | None = None
    inventory_empty: bool = False
    previous_nonce: str | None = None
    where: Where | None = None
    wait: float = 0.0
    wants_digest: str | None = None
    revisions: Mapping[str, str] = field(default_factory=dict)
    asks_flux: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The body of the request."""
        said = {
            "sent_at": self.sent_at.isoformat(),
            "nonce": self.nonce,
            "observed_revision": self.observed_revision,
            "status_digest": self.status_digest,
            "flux_sha256": self.flux_sha256,
            "inventory_empty": self.inventory_empty or None,
            "previous_nonce": self.previous_nonce,
            "wait": round(self.wait, 1) or None,
            "wants_digest": self.wants_digest,
            "revisions": dict(self.revisions) or None,
            "asks_flux": self.asks_flux,
            **({} if self.where is None else self.where.to_json()),
        }
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ReceivedHeartbeatAnswer:
    """What the centre wants.

    Args:
        state: of the agent's credential.
        interval: seconds to the next heartbeat.
        nonce: of the heartbeat that is answered; None if the centre does not say.
        rotate: roles whose credential to replace: ``flux``, ``agent``.
        reseal: Secrets to re-encrypt, ``namespace/name``.
        report_empty: it waits to hear that no workload is left.
        revision: the commit that takes the workloads away, hexadecimal; None: not asked.
        detach: this edge is to go; what it does then, ``detach_order`` says.
        check_in: when to call, in seconds after this answer, each week: when that opens and when it closes; empty: at
            any time.
        move_to: where to reach the centre from now on, if that works.
        forget_former: where the centre was before is gone for good.
        revisions: the commit that a source of Flux's is to fetch, by the name of the source.
        wants_digest: changes with whatever else is wanted; None: this centre holds no answer back.
    """

    state: str
    interval: float
    status_due: bool = False
    suspended: bool = False
    report_empty: bool = False
    revision: str | None = None
    detach: bool = False
    detach_order: ReceivedDetachOrder | None = None
    nonce: str | None = None
    rotate: tuple[str, ...] = ()
    reseal: tuple[str, ...] = ()
    check_in: tuple[tuple[float, float], ...] = ()
    move_to: CentreDoor | None = None
    forget_former: bool = False
    revisions: Mapping[str, str] = field(default_factory=dict)
    wants_digest: str | None = None


def read_answer(body: object, *, to: SentHeartbeat) -> ReceivedHeartbeatAnswer:
    """The answer to a heartbeat.

    Raises:
        Waiting: ``not_the_centre``: this is no answer of a centre, or one to another heartbeat, as something
            between us and it may give.
    """
    if not isinstance(body, Mapping):
        raise not_the_centre()
    state, interval, nonce = body.get("state"), body.get("interval"), body.get("nonce")
    if not isinstance(state, str) or isinstance(interval, bool) or not isinstance(interval, int | float):
        raise not_the_centre()
    if math.isnan(interval):  # a heartbeat that is due then is never due
        raise not_the_centre()
    if nonce not in (None, to.nonce):
        raise not_the_centre()
    return ReceivedHeartbeatAnswer(
        state=state,
        interval=interval,
        status_due=_is_wanted(body, "status_due"),
        suspended=_is_wanted(body, "suspended"),
        report_empty=_is_wanted(body, "report_empty"),
        revision=_commit(body.get("revision")),
        detach=_is_wanted(body, "detach"),
        detach_order=read_order(body.get("detach_order")),
        nonce=nonce,
        rotate=_rotations(body.get("rotate")),
        reseal=read_secrets(body.get("reseal")),
        check_in=read_spans(body.get("check_in")),
        move_to=read_door(body.get("move_to")),
        forget_former=_is_wanted(body, "forget_former"),
        revisions=_revisions(body.get("revisions")),
        wants_digest=_digest(body.get("wants_digest")),
    )


def read_secrets(value: object) -> tuple[str, ...]:
    """Names of Secrets, ``namespace/name``, each of which may become a part of a URL; the others are left out."""
    return tuple(
        name
        for name in (value if isinstance(value, list) else ())
        if isinstance(name, str) and _SECRET.fullmatch(name)
    )


def not_the_centre() -> Waiting:
    """What answered is something else: a proxy's page, a captive portal, a cache."""
    return Waiting(
        "What answered is not the centre; there may be a proxy in between.", code="not_the_centre", retry_after=0
    )


def _rotations(said: object) -> tuple[str, ...]:
    """Flux's first: with its own the agent connects anew."""
    return tuple(role for role in ROLES if isinstance(said, list) and role in said)


def _commit(said: object) -> str | None:
    return said if isinstance(said, str) and _COMMIT.fullmatch(said) else None


def _revisions(said: object) -> Mapping[str, str]:
    """Those that are commits; of no more sources than there can be."""
    found = said.items() if isinstance(said, Mapping) and len(said) <= MOST_SOURCES else ()
    return {name: commit for name, commit in found if isinstance(name, str) and _commit(commit)}


def _digest(said: object) -> str | None:
    return said if isinstance(said, str) and 0 < len(said) <= LONGEST_DIGEST else None


def _is_wanted(body: Mapping[str, Any], name: str) -> bool:
    return body.get(name) is True
