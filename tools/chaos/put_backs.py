"""Repositories of single clusters, copied and put back while the centre runs, and what that does to what was asked.

What was answered between the copy and the put-back is lost: the checker asks that the centre says so.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tools.chaos.journal import JournalLine
from tools.chaos.stores import Row

IN_GIT = frozenset({"secrets", "push"})
"""Verbs whose effect only the repository holds."""
OF_COMMITS = {
    "git.pushed": "new",
    "secret.deleted": "commit",
    "secret.put": "commit",
    "secret.resealed": "commit",
    "step.done": "commit",
}
"""Kinds of events that tell of a commit, and where in their detail."""


@dataclass(frozen=True)
class PutBack:
    """One repository that was put back; moments by the journal's clock.

    Args:
        copy_began, copy_ended: when the copy was made.
        began, ended: when it was put in its place.
    """

    cluster: str
    copy_began: float
    copy_ended: float
    began: float
    ended: float

    def loses(self, line: JournalLine) -> bool:
        """Whether all of an answered request lies between the copy and the put-back."""
        return line.outcome == "yes" and self._concerns(line) and self._is_between(line)

    def seen_after(self, line: JournalLine, since: float) -> JournalLine | None:
        """What may be held against the centre of an attempt since; None: nothing.

        Args:
            since: when its request was made first. One that is repeated may be answered with the commit of an
                earlier attempt, which the repository has lost.
        """
        if not self._concerns(line) or line.ended < self.copy_began or since > self.ended:
            return line
        if line.verb == "secrets" and (line.outcome == "no" or self.loses(line)):
            return None
        return line if line.outcome == "no" else replace(line, outcome="maybe")

    def _concerns(self, line: JournalLine) -> bool:
        return line.cluster == self.cluster and line.verb in IN_GIT

    def _is_between(self, line: JournalLine) -> bool:
        return line.began > self.copy_ended and line.ended < self.began


def after_put_backs(lines: Sequence[JournalLine], put_backs: Sequence[PutBack]) -> list[JournalLine]:
    """What the journal says of a centre whose repositories were put back, in this order."""
    first: dict[str, float] = {}
    for line in lines:
        if line.wish:
            first[line.wish] = min(line.began, first.get(line.wish, line.began))
    for put_back in put_backs:
        seen = (put_back.seen_after(line, first.get(line.wish, line.began)) for line in lines)
        lines = [line for line in seen if line is not None]
    return list(lines)


def untold(events: Sequence[Row], commits: frozenset[str]) -> list[str]:
    """What the repository has lost, as the timeline knows, and nobody was told since.

    Args:
        events: of one cluster.
        commits: all that its repository still has.
    """
    told = max((int(event["position"]) for event in events if event["kind"] == "git.drifted"), default=-1)
    return [
        f"{commit} of {event['kind']}"
        for event in events
        if (commit := _commit_of(event)) and commit not in commits and int(event["position"]) > told
    ]


def lost_values(events: Sequence[Row], commits: frozenset[str]) -> set[str]:
    """Secrets of which the newest word in the timeline is a value in a commit that is lost."""
    newest: dict[str, Row] = {}
    for event in sorted(events, key=lambda event: int(event["position"])):
        if event["kind"] in {"secret.put", "secret.deleted"}:
            detail = event["detail"]
            newest["/".join((detail["namespace"], detail["name"], detail["key"]))] = event
    return {
        place
        for place, event in newest.items()
        if event["kind"] == "secret.put" and event["detail"]["commit"] not in commits
    }


def read_put_backs(path: Path) -> list[PutBack]:
    """Those of a journal, in the order in which they happened."""
    return list(_read(path))


def _read(path: Path) -> Iterator[PutBack]:
    for text in path.read_text("utf-8").splitlines():
        record = json.loads(text)
        if "put_back" in record:
            yield PutBack(**record["put_back"])


def _commit_of(event: Row) -> str:
    return str(event["detail"].get(OF_COMMITS.get(event["kind"], ""), "") or "")
