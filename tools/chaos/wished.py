"""What a cluster may be by now, from the wishes and their answers: a set of states, for an answer may be missing.

A request that was answered 2xx has happened, once. One that was refused has not, and must have had a reason to be
refused. Of one that got no answer either may be true, until a later answer tells.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tools.chaos.journal import JournalLine

OWNED = frozenset(
    {"create", "change", "status", "observe", "remove", "recreate", "delete", "undelete", "pause", "resume"}
)
"""Verbs about the cluster itself; one client sends them one after the other."""
FIELDS = ("namespace", "chart", "stamp", "label")


@dataclass(frozen=True)
class Wished:
    """One state that a cluster may be in.

    Args:
        desired: ``none``, ``present``, ``removed`` or ``deleted``.
        generation, commissioning: as the row counts them.
        changes, removals: how many events must tell of one.
        keys: whose certificates the edge of this generation has reported, by number.
        taken: wishes that carry an idempotency key and have happened.
        contests: of two writers with one ETag, those that one of them has won.
        told: whether a signal to delete it may be on its way; it may arrive at any later time, or never.
        before: what was desired before the deletion.
        paused: whether commits are held back.
    """

    desired: str = "none"
    namespace: str = ""
    chart: str | None = None
    stamp: str | None = None
    label: str | None = None
    generation: int = 1
    commissioning: int = 1
    changes: int = 0
    removals: int = 0
    keys: frozenset[int] = frozenset()
    taken: frozenset[str] = field(default=frozenset())
    contests: frozenset[str] = field(default=frozenset())
    told: bool = False
    before: str = ""
    paused: bool = False

    def shows(self, seen: Mapping[str, Any]) -> bool:
        """Whether an answer to a reading fits."""
        if seen["desired"] != self.desired or seen["generation"] != self.generation:
            return False
        return self.desired == "deleted" or all(seen[name] == getattr(self, name) for name in FIELDS)


def follow(states: frozenset[Wished], line: JournalLine, *, shared_name: bool = False) -> frozenset[Wished]:
    """The states after an attempt; empty: its answer is impossible.

    Args:
        shared_name: whether other clients create clusters of that name.
    """
    states = with_late_signals(states)
    if line.verb == "observe":
        return frozenset(_after_reading(states, line))
    happened = {done for state in states if (done := _happened(state, line)) is not None}
    match line.outcome:
        case "yes":
            return frozenset(happened)
        case "no" if line.code == "overtaken" and line.verb in {"pause", "resume"}:
            # An unanswered one may come late, between the reading and the writing of this one: both are possible.
            return states if len({state.paused for state in states}) > 1 else frozenset()
        case "no":
            return frozenset(state for state in states if _may_refuse(state, line, shared_name=shared_name))
    return states | happened


def with_late_signals(states: frozenset[Wished]) -> frozenset[Wished]:
    """The states, and what they become when a signal arrives."""
    return states | {_deleted(state) for state in states if state.told}


def _after_reading(states: Iterable[Wished], line: JournalLine) -> Iterable[Wished]:
    if line.outcome == "maybe":
        return states
    if line.outcome == "no":
        ended = {"cluster_unknown": {"none"}, "cluster_deleted": {"deleted"}}.get(line.code, set())
        return [state for state in states if state.desired in ended]
    return [state for state in states if state.shows(line.said)]


def _happened(state: Wished, line: JournalLine) -> Wished | None:
    """The state once it has happened; None: it cannot, in this one."""
    if line.wish in state.taken:
        return state
    if line.verb == "delete" and line.asked["door"] == "signal":
        return None if state.desired == "none" else replace(state, told=True)
    if line.verb == "delete":
        return None if state.desired == "none" else _deleted(state)
    if line.verb == "undelete":
        return replace(state, desired=state.before, before="") if state.before else None
    if state.desired == "deleted" or (state.keys and _leaves_namespace(state, line)):
        return None
    match line.verb:
        case "pause" | "resume":
            return None if state.desired == "none" else replace(state, paused=line.verb == "pause")
        case "create":
            return _created(state, line)
        case "change":
            return _changed(state, line)
        case "status":
            return None if state.desired == "none" else replace(state, keys=state.keys | {line.asked["key"]})
        case "remove" if state.desired == "present":
            return replace(state, desired="removed", removals=state.removals + 1)
        case "recreate":
            return _recreated(state, line)
    return None


def _leaves_namespace(state: Wished, line: JournalLine) -> bool:
    """Whether an edge would lose the namespace that its credentials live in."""
    namespace = line.asked.get("fields", {}).get("namespace", state.namespace)
    return state.desired != "none" and namespace != state.namespace and not line.asked.get("new_hardware")


def _deleted(state: Wished) -> Wished:
    return state if state.desired == "deleted" else replace(state, desired="deleted", before=state.desired)


def _created(state: Wished, line: JournalLine) -> Wished | None:
    fields = line.asked["fields"]
    if state.desired == "none":
        taken = state.taken | ({line.wish} if line.asked["door"] == "rest" else set())
        return replace(state, desired="present", taken=taken, **fields)
    same = all(getattr(state, name) == value for name, value in fields.items())
    return state if state.desired == "present" and same else None


def _changed(state: Wished, line: JournalLine) -> Wished | None:
    fields = line.asked["fields"]
    if state.desired != "present" and set(fields) != {"label"}:
        return None
    after = replace(state, **fields)
    if (contest := line.asked.get("contest")) is not None:
        if contest in state.contests:
            return None
        after = replace(after, contests=state.contests | {contest})
    return state if after == state else replace(after, changes=state.changes + 1)


def _recreated(state: Wished, line: JournalLine) -> Wished | None:
    fields = line.asked["fields"]
    if state.desired == "none":
        return None
    if line.asked["door"] == "entry" and state.desired == "present":
        same = all(getattr(state, name) == value for name, value in fields.items())
        return state if same else replace(state, changes=state.changes + 1, **fields)
    after = replace(state, desired="present", commissioning=state.commissioning + 1, **fields)
    if line.asked["door"] == "rest":
        after = replace(after, taken=state.taken | {line.wish})
    if line.asked.get("new_hardware"):
        after = replace(after, generation=state.generation + 1, keys=frozenset())
    return after


def _may_refuse(state: Wished, line: JournalLine, *, shared_name: bool) -> bool:
    match line.code:
        case "name_taken":
            return line.verb == "create" and shared_name and state.desired == "none"
        case "precondition_failed":
            return line.asked.get("contest") in state.contests
        case "namespace_immutable":
            return _leaves_namespace(state, line)  # an edge that has registered is attached without a key, too
        case "removed":
            return line.verb == "change" and state.desired == "removed"
        case "entry_unknown":
            return line.verb == "remove" and state.desired in {"removed", "deleted"}
        case "deleting" | "cluster_deleted" | "cluster_unknown":
            return state.desired == "deleted" or (state.desired == "none" and line.code == "cluster_unknown")
        case "not_deleting":
            return line.verb == "undelete" and state.desired != "deleted"
        case "too_late":
            return line.verb == "undelete" and state.desired == "deleted"
        case "superseded" | "unauthorized" | "no_credentials" | "forbidden":
            return line.verb == "status"  # the credential of an edge that a move or a removal has overtaken
    return False
