"""What a signal says, and what is told of one that cannot be carried out: the timeline is its only answer."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Any, Final

from pydantic_core import from_json
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from edgewright.domain.bounds import AtMost
from edgewright.domain.events import EventKind
from edgewright.messages import names
from edgewright.messages.cluster import ReconcileSignal
from workflows.publication import Publication

TOLD = "signals that cannot be carried out are told"
"""Patch. Runs that began before it pass over signals without a handler, and over inputs that mean nothing."""
MOST_TOLD = 5
"""Refused signals of an hour that get an event of their own, of each kind. The others are counted, and share one."""
HOUR = timedelta(hours=1)
LONGEST_LINE = 1000
LONGEST_NAME = 60
"""Characters that are repeated of a name that somebody has sent."""

SignalName = Annotated[str, AtMost(1000)]
"""A name as somebody has sent it. Temporal takes no longer one."""
NOTHING = RawValue(Payload())
"""The input of a signal that was sent without one."""
UNREADABLE: Final = object()
"""Instead of an input that is not JSON."""
UNCHECKED = {b"binary/null", b"binary/plain"}
"""Encodings that the SDK reads whatever type it is asked for."""

SIGNALS = (names.SIGNAL_DELETE, names.SIGNAL_EDGE_STATUS, names.SIGNAL_RECONCILE, names.SIGNAL_SEALING_KEY_ROTATED)
_SAME_WORD = ("accept", "bootstrap", "pause", "recreate", "reject", "resume", "retry", "revoke", "rotate", "skip")
COMMANDS: Mapping[str, str] = {
    **{word: word for word in (*_SAME_WORD, "undelete")},
    names.UPDATE_RETRY_STEP: "retry",
    names.UPDATE_SKIP_STEP: "skip",
    names.QUERY_READINESS: "show",
    names.QUERY_STATUS: "show",
    names.QUERY_STEPS: "show",
}
"""What else people want of a cluster, and the command that does it."""
REFUSED_SIGNALS: Mapping[str, EventKind] = {
    names.SIGNAL_DELETE: EventKind.DELETE_REFUSED,
    names.SIGNAL_EDGE_STATUS: EventKind.EDGE_STATUS_REFUSED,
    names.SIGNAL_SEALING_KEY_ROTATED: EventKind.SEALING_KEY_REFUSED,
}
"""What is told when the input of a signal means nothing."""
ADVICE: Mapping[str, str] = {
    names.SIGNAL_DELETE: 'Send `delete` without input, with {"force": true} or with {"purge": true}. '
    "Nothing was deleted.",
    names.SIGNAL_EDGE_STATUS: 'Send an edge status such as {"hosts": []}. Nothing was changed.',
    names.SIGNAL_SEALING_KEY_ROTATED: 'Send {"kubeseal_cert": PEM}, or the PEM as a JSON text. Nothing was changed.',
}
DELETE_OPTIONS = ("force", "purge")
CERTIFICATE = "kubeseal_cert"


# --- inputs --------------------------------------------------------------------------------------------------------


def json_of(raw: RawValue) -> Any:
    """The input of a signal; None where none was sent, or none of JSON.

    Raises:
        ValueError: it says that it is JSON, and is not.
    """
    if raw.payload.metadata.get("encoding") != b"json/plain":
        return None
    return from_json(raw.payload.data)


def is_foreign(raw: RawValue) -> bool:
    """Whether the input has another encoding than JSON, so that nobody reads it."""
    return bool(raw.payload.data) and raw.payload.metadata.get("encoding") != b"json/plain"


def is_nudge(raw: RawValue) -> bool:
    """Whether every version takes this input of `reconcile`; the present one takes any."""
    encoding = raw.payload.metadata.get("encoding")
    if raw is NOTHING or encoding != b"json/plain":
        return raw is NOTHING or encoding in UNCHECKED
    try:
        if from_json(raw.payload.data) is not None:
            ReconcileSignal.model_validate_json(raw.payload.data)
    except ValueError:
        return False
    return True


def input_problem(signal: str, body: Any) -> str:
    """Why nothing can be done with the input of a signal; empty if something can.

    Args:
        body: as ``json_of`` returns it, or ``UNREADABLE``.
    """
    if body is None:
        return ""
    problem = f"The input of `{signal}` is not JSON." if body is UNREADABLE else _misfit(signal, body)
    return f"{problem} {ADVICE[signal]}" if problem else ""


def _misfit(signal: str, body: Any) -> str:
    match signal, body:
        case names.SIGNAL_DELETE, dict():
            return _misfit_option(body)
        case names.SIGNAL_EDGE_STATUS, dict():
            return ""
        case names.SIGNAL_SEALING_KEY_ROTATED, str():
            return ""
        case names.SIGNAL_SEALING_KEY_ROTATED, dict():
            return _misfit_certificate(body)
    return f"The input of `{signal}` is {_what(body)}."


def _misfit_option(options: Mapping[str, Any]) -> str:
    for name, value in options.items():
        if name not in DELETE_OPTIONS:
            close = get_close_matches(name[:LONGEST_NAME].lower(), DELETE_OPTIONS, n=1)
            meant = f" Did you mean `{close[0]}`?" if close else ""
            return f"`{names.SIGNAL_DELETE}` has no option {_quoted(name)}.{meant}"
        if not isinstance(value, bool):
            return f"`{name}` is {_what(value)}, not true or false."
    return ""


def _misfit_certificate(body: Mapping[str, Any]) -> str:
    if CERTIFICATE not in body:
        return f"The input of `{names.SIGNAL_SEALING_KEY_ROTATED}` has no `{CERTIFICATE}`."
    pem = body[CERTIFICATE]
    return "" if isinstance(pem, str) else f"`{CERTIFICATE}` is {_what(pem)}, not a text."


def _what(value: Any) -> str:
    """What kind of JSON value it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = {str: "a text", list: "a list", dict: "an object", type(None): "null"}
    return kinds.get(type(value), "a number")


# --- names ---------------------------------------------------------------------------------------------------------


def unknown_signal(name: str) -> str:
    """What is told of a signal that clusters do not have."""
    there_is_none = f"There is no signal {_quoted(name)}"
    word = as_line(name[:LONGEST_NAME]).lower().replace("-", "_").replace(" ", "_")
    if word in COMMANDS:
        return f"{there_is_none}: use `edgewright cluster {COMMANDS[word]} NAME`. Nothing was changed."
    close = get_close_matches(word, [*SIGNALS, *COMMANDS], n=1, cutoff=0.7)
    if not close:
        known = ", ".join(f"`{each}`" for each in SIGNALS[:-1])
        return f"{there_is_none}. A cluster takes {known} and `{SIGNALS[-1]}`. Nothing was changed."
    command = COMMANDS.get(close[0])
    meant = f"edgewright cluster {command} NAME" if command else close[0]
    return f"{there_is_none}. Did you mean `{meant}`? Nothing was changed."


def _quoted(name: str) -> str:
    """A name that somebody has sent, fit to be repeated."""
    return f"`{short_name(name)}`"


def short_name(name: str) -> str:
    """A bounded name in which nothing is invisible, and nothing ends the quotation that it stands in."""
    cut = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return "".join(letter if letter.isprintable() else "?" for letter in cut).replace("`", "'")


def as_line(text: str) -> str:
    """One bounded line: Temporal's own tools send anything, and no database takes all of it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:LONGEST_LINE]


# --- telling -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Refusal:
    kind: EventKind
    signal: str
    sentence: str


class RefusedSignals:
    """Signals that cannot be carried out, until they are told: a few of each hour by name, the others as a number."""

    def __init__(self) -> None:
        self._untold: list[_Refusal] = []
        self._hour: datetime | None = None
        """When the hour began whose signals are counted."""
        self._named: Counter[EventKind] = Counter()
        self._counted = 0
        self._due = 0
        """Those that were only counted in an hour that is over."""

    @property
    def waiting(self) -> bool:
        """Whether there is one to tell by name."""
        return bool(self._untold)

    def take_unknown(self, name: str) -> None:
        """Takes a signal that clusters do not have."""
        if self._has_room(EventKind.SIGNAL_UNKNOWN):
            self._untold.append(_Refusal(EventKind.SIGNAL_UNKNOWN, short_name(name), unknown_signal(name)))

    def take_unfit(self, signal: str, problem: str) -> None:
        """Takes a signal whose input means nothing."""
        kind = REFUSED_SIGNALS[signal]
        if self._has_room(kind):
            self._untold.append(_Refusal(kind, signal, f"Refused: {problem}"))

    def _has_room(self, kind: EventKind) -> bool:
        """Whether the next one is told by name; otherwise it is counted."""
        if self._hour is None or self._hour_is_over():
            self._close_hour()
            self._hour, self._named = workflow.now(), Counter()
        if self._named[kind] < MOST_TOLD:
            self._named[kind] += 1
            return True
        self._counted += 1
        return False

    def _close_hour(self) -> None:
        self._due, self._counted = self._due + self._counted, 0

    def _hour_is_over(self) -> bool:
        return self._hour is not None and workflow.now() - self._hour >= HOUR

    def tell(self, publication: Publication, *, all_of_them: bool) -> None:
        """Tells what waits.

        Args:
            all_of_them: also those of the present hour that are only counted; otherwise once that is over.
        """
        for refusal in self._untold:
            publication.refuse(refusal.kind, refusal.sentence, actor="temporal", signal=refusal.signal)
        self._untold.clear()
        if all_of_them or self._hour_is_over():
            self._close_hour()
        if self._due:
            number, self._due = self._due, 0
            publication.tell(
                EventKind.SIGNALS_DROPPED,
                f"{counted(number)} refused without an event of their own: too many came within an hour.",
                signals=number,
            )


def counted(number: int) -> str:
    """How a sentence about so many signals begins."""
    return "1 signal was" if number == 1 else f"{number} signals were"
