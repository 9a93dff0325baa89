"""What a repository that was put back has lost is told: in the timeline, and as what has to be entered again."""

from collections.abc import Iterator

from tools.chaos.evidence import Case, Violation
from tools.chaos.put_backs import lost_values, untold


def check_put_backs(case: Case) -> Iterator[Violation]:
    if case.row is None or case.closed or not case.put_backs:
        return
    events = case.stores.of("events", case.uuid)
    for lost in untold(events, case.commits):
        yield case.violation("loss_untold", f"no git.drifted tells that {lost} is lost")
    for place in sorted(lost_values(events, case.commits) - set(case.row["must_reenter"])):
        yield case.violation("loss_untold", f"{place} is lost and is not listed to be entered again")
    told = [str(event["message"]) for event in events if event["kind"] == "git.drifted"]
    for line in case.asked:
        commit = str(line.said.get("commit", ""))
        gone = any(each.loses(line) for each in case.put_backs) and commit not in case.commits
        if gone and not any(commit[:12] in message or " more" in message for message in told):
            yield case.violation("loss_untold", f"{line.wish} was answered with {commit}, which no event names")
