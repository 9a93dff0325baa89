"""Every answered request holds: the rows are what the wishes have made of them."""

from collections.abc import Iterator

from tools.chaos.evidence import Case, Violation
from tools.chaos.golden import CONFIGURATION
from tools.chaos.requests import stamp_of
from tools.chaos.wished import FIELDS, Wished

SECRET_REFUSALS = {
    "cluster_unknown",
    "cluster_deleted",
    "deleting",
    "removed",
    "no_edge_status",
    "superseded",
    "new_hardware",
    "not_present",
    "secret_unknown",
    "paused",
}


def check_wishes(case: Case) -> Iterator[Violation]:
    yield from _check_answers(case)
    states, impossible = case.followed
    if impossible is not None:
        shown = f"{impossible.verb} {impossible.wish} answered {impossible.status} {impossible.code}"
        yield case.violation(
            "impossible_answer", f"{shown} {dict(impossible.said)}, but it was {sorted_states(states)}"
        )
        return
    yield from _check_row(case, states)


def sorted_states(states: frozenset[Wished]) -> list[str]:
    return sorted(map(str, states))


def _check_answers(case: Case) -> Iterator[Violation]:
    for line in case.lines:
        if line.status == 500:
            yield case.violation("internal_error", f"{line.verb} {line.wish} at {line.began}")
        if line.verb != "secrets" or line.outcome != "no":
            continue
        allowed = {"secret_unknown"} if line.asked["calm"] else SECRET_REFUSALS
        if line.code not in allowed:
            yield case.violation("impossible_answer", f"secrets {line.wish} refused: {line.status} {line.code}")


def _check_row(case: Case, states: frozenset[Wished]) -> Iterator[Violation]:
    row, desired = case.row, {state.desired for state in states}
    if row is None:
        if "none" not in desired:
            yield case.violation("cluster_missing", f"wished: {sorted_states(states)}")
        return
    if not case.lines or desired == {"none"}:
        yield case.violation("cluster_unexplained", f"desired {case.desired}, and nobody has wished for it")
    elif desired == {"deleted"} and case.desired != "deleted":
        yield case.violation("resurrected", f"it was deleted, and is {case.desired}")
    elif case.desired not in desired:
        yield case.violation("wish_lost", f"it is {case.desired}, wished: {sorted_states(states)}")
    elif not case.fitting:
        counted = f"generation {row['generation']}, commissioning {row['commissioning']}"
        yield case.violation("recreation_miscounted", f"{counted}, wished: {sorted_states(states)}")
    elif case.desired != "deleted" and not any(_has_fields(case, state) for state in case.fitting):
        yield case.violation("update_lost", f"{_fields(case)}, wished: {sorted_states(states)}")
    elif case.desired != "deleted" and not any(bool(row["paused"]) == state.paused for state in case.fitting):
        yield case.violation("pause_wrong", f"paused: {row['paused']}, wished: {sorted_states(states)}")


def _has_fields(case: Case, state: Wished) -> bool:
    return _fields(case) == {name: getattr(state, name) for name in FIELDS}


def _fields(case: Case) -> dict[str, object]:
    """What the configuration entry says; of a removed cluster the row keeps the last one."""
    assert case.row is not None
    body = case.stores.entries().get((CONFIGURATION, case.uuid)) or {}
    if case.desired == "removed":
        body = case.row["spec"]
    return {
        "namespace": body.get("namespace"),
        "chart": body.get("chart"),
        "stamp": stamp_of(body),
        "label": case.row["labels"].get("stamp"),
    }
