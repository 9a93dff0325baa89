"""The timeline is complete, and tells nothing twice."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tools.chaos.evidence import Case, Violation
from tools.chaos.stores import Row, Stores


def check_events(case: Case) -> Iterator[Violation]:
    if case.row is None:
        return
    events = sorted(case.stores.of("events", case.uuid), key=lambda row: int(row["position"]))
    if not events or events[0]["kind"] != "cluster.created":
        yield case.violation("event_lost", "the timeline does not begin with the creation")
    yield from _check_counts(case, Counter(event["kind"] for event in events))
    yield from _check_phases(case, [e["detail"]["phase"] for e in events if e["kind"] == "phase.changed"])
    yield from _check_secrets(case, events)


def check_unique(stores: Stores) -> Iterator[Violation]:
    """Each event has an ID and a position of its own."""
    for column in ("id", "position"):
        counted = Counter(row[column] for row in stores.tables["events"])
        for value, count in counted.items():
            if count > 1:
                yield Violation("event_doubled", "", f"{count} events with {column} {value}")


def _check_counts(case: Case, told: Counter[str]) -> Iterator[Violation]:
    row = case.row
    assert row is not None
    states = case.fitting
    wanted: dict[str, set[int]] = {
        "cluster.created": {1},
        "cluster.deleted": {int(case.closed)},
        "cluster.recreated": {row["commissioning"] - 1},
    }
    if states:
        wanted["cluster.changed"] = {state.changes for state in states}
        wanted["cluster.removed"] = {state.removals for state in states}
    for kind, counts in wanted.items():
        if told[kind] not in counts:
            name = "event_lost" if told[kind] < min(counts) else "event_doubled"
            yield case.violation(name, f"{told[kind]} times {kind}, not {sorted(counts)}")
    if case.desired == "deleted" and not told["cluster.deletion_requested"]:
        yield case.violation("event_lost", "no cluster.deletion_requested")


def _check_phases(case: Case, phases: Sequence[str]) -> Iterator[Violation]:
    assert case.row is not None
    for before, after in pairwise(phases):
        if before == after:
            yield case.violation("event_doubled", f"the phase {after} was told twice in a row: {list(phases)}")
            break
    if not phases or phases[-1] != case.row["phase"]:
        yield case.violation("event_lost", f"the phase is {case.row['phase']}, told: {list(phases)}")


def _check_secrets(case: Case, events: Sequence[Row]) -> Iterator[Violation]:
    """One event for each change that a commit holds."""
    told = Counter(
        ("/".join((detail["namespace"], detail["name"], detail["key"])), detail["commit"])
        for detail in (event["detail"] for event in events if event["kind"] in {"secret.put", "secret.deleted"})
    )
    staged = Counter(
        (f"{row['namespace']}/{row['name']}/{row['key']}", row["commit"])
        for row in case.stores.of("staged_changes", case.uuid)
        if row["state"] == "committed"
    )
    for change in sorted(told.keys() | staged.keys()):
        if told[change] != staged[change]:
            name = "event_lost" if told[change] < staged[change] else "event_doubled"
            yield case.violation(name, f"{told[change]} events of {change}, {staged[change]} changes")
    for line in case.lines:
        if line.verb == "secrets" and line.outcome == "yes":
            for place, _ in line.asked["changes"]:
                if not told[(place, line.said["commit"])]:
                    yield case.violation("event_lost", f"{place} in {line.said['commit']} is not in the timeline")
