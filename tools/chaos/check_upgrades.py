"""Upgrades of agents: none is lost, none too many are under way, and the repository asks for what is wanted."""

from collections import Counter
from collections.abc import Iterator

from tools.chaos.evidence import Case, Violation
from tools.chaos.golden import AGENT_FILE, MOST_UPGRADES
from tools.chaos.secret_history import wishes_of
from tools.chaos.stores import Stores

BEGUN = "upgrade.begun"
ENDED = {f"upgrade.{end}" for end in ("done", "failed", "fell_back", "replaced", "cancelled")}


def check_limit(stores: Stores) -> Iterator[Violation]:
    """At no time were more under way than any client has allowed."""
    under_way: set[str] = set()
    for event in sorted(stores.tables["events"], key=lambda row: int(row["position"])):
        if event["kind"] == BEGUN:
            under_way.add(event["cluster"])
        elif event["kind"] in ENDED:
            under_way.discard(event["cluster"])
        if len(under_way) > MOST_UPGRADES:
            yield Violation(
                "upgrades_too_many", event["cluster"], f"{len(under_way)} at position {event['position']}"
            )
            return


def check_upgrades(case: Case) -> Iterator[Violation]:
    if case.row is None:
        return
    told = Counter(event["kind"] for event in case.stores.of("events", case.uuid))
    under_way = told[BEGUN] - sum(told[kind] for kind in ENDED)
    if under_way != int(case.row["upgrading"] is not None):
        yield case.violation("upgrade_lost", f"{under_way} are under way as told, in the row {case.row['upgrading']}")
    if not case.restored:
        yield from _check_answers(case, told)
    if case.desired == "present" and not case.closed:
        yield from _check_files(case)


def _check_answers(case: Case, told: Counter[str]) -> Iterator[Violation]:
    for verb, kind, status in (("upgrade", BEGUN, 202), ("call off", "upgrade.cancelled", 200)):
        asked = wishes_of(line for line in case.lines if line.verb == verb)
        answered = sum(wish.outcome == "yes" and wish.last.status == status for wish in asked)
        possible = sum(wish.outcome != "no" for wish in asked)
        if told[kind] < answered:
            yield case.violation("upgrade_lost", f"{told[kind]} times {kind}, {answered} were answered")
        elif told[kind] > possible:
            yield case.violation("event_doubled", f"{told[kind]} times {kind}, {possible} wishes")


def _check_files(case: Case) -> Iterator[Violation]:
    assert case.row is not None
    agent = (case.row["components"] or {}).get("agent")
    for repository in case.in_service:
        if repository.damage:
            continue
        blob = repository.files.get(AGENT_FILE)
        text = None if blob is None else repository.blobs[blob]
        if (text is not None) != (agent is not None) or (agent and f"image: {agent['image']}\n" not in str(text)):
            yield case.violation(
                "upgrade_not_delivered", f"wanted {agent}, and {AGENT_FILE} is {text and text[:300]}"
            )
