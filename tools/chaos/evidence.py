"""What the checks look at: one case for each cluster that a store or the journal knows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tools.chaos.edge_keys import EdgeKey
from tools.chaos.golden import COMMISSIONED
from tools.chaos.journal import JournalLine
from tools.chaos.put_backs import PutBack, after_put_backs
from tools.chaos.repositories import CheckedRepository
from tools.chaos.sealed import Opener
from tools.chaos.stores import Row, Stores
from tools.chaos.wished import OWNED, Wished, follow, with_late_signals


@dataclass(frozen=True)
class Violation:
    """A promise that the stores break. ``name`` is stable; ``cluster`` is a UUID, or empty."""

    name: str
    cluster: str
    detail: str

    def __str__(self) -> str:
        return f"{self.name} ({self.cluster or 'everywhere'}): {self.detail}"


@dataclass(frozen=True)
class Case:
    """Everything about one cluster.

    Args:
        lines: in the order in which they began, or may have happened; without what a put-back has lost.
        asked: all of them.
        put_backs: of its repository.
    """

    uuid: str
    row: Row | None
    lines: Sequence[JournalLine]
    stores: Stores
    opener: Opener
    repositories: Sequence[CheckedRepository]
    asked: Sequence[JournalLine] = ()
    put_backs: Sequence[PutBack] = ()

    def violation(self, name: str, detail: object) -> Violation:
        called = f"{self.row['name']}: " if self.row else ""
        return Violation(name, self.uuid, f"{called}{detail}")

    @cached_property
    def followed(self) -> tuple[frozenset[Wished], JournalLine | None]:
        """What the cluster may be by now, and the answer that cannot be, if there is one."""
        states = frozenset({Wished()})
        for line in self.lines:
            if line.verb not in OWNED:
                continue
            shared = str(line.asked.get("name", "")).startswith("shared-")
            after = follow(states, line, shared_name=shared)
            if not after:
                return states, line
            states = after
        return with_late_signals(states), None

    @property
    def closed(self) -> bool:
        return self.row is not None and self.row["closed_at"] is not None

    @property
    def desired(self) -> str:
        return str(self.row["desired"]) if self.row else "none"

    @cached_property
    def was_ready(self) -> bool:
        """Whether it was ever commissioned to the end, as the timeline tells it."""
        phases = [e["detail"]["phase"] for e in self.stores.of("events", self.uuid) if e["kind"] == "phase.changed"]
        return any(phase in COMMISSIONED for phase in phases)

    @cached_property
    def restored(self) -> int:
        """How often the centre was restored during its life. Each time it is rendered once more, if that differs, and
        with a fence that the repository may have seen before.
        """
        return sum(event["kind"] == "centre.restored" for event in self.stores.of("events", self.uuid))

    @cached_property
    def commits(self) -> frozenset[str]:
        """Those of all its repositories."""
        return frozenset(commit.id for repository in self.repositories for commit in repository.commits)

    @property
    def in_service(self) -> list[CheckedRepository]:
        return [repository for repository in self.repositories if not repository.archived]

    @property
    def fitting(self) -> list[Wished]:
        """The states that the row may stand for, by what is desired and how often it was commissioned."""
        row = self.row
        if row is None:
            return []
        counted = (row["desired"], row["generation"], row["commissioning"])
        return [s for s in self.followed[0] if (s.desired, s.generation, s.commissioning) == counted]


def cases_of(
    stores: Stores, lines: Sequence[JournalLine], keys: Sequence[EdgeKey], put_backs: Sequence[PutBack] = ()
) -> list[Case]:
    """One for each cluster that anybody knows."""
    opener = Opener(keys)
    named = _with_clusters(stores, lines)
    known = sorted({line.cluster for line in named if line.cluster} | set(stores.clusters))
    rows, kept = stores.clusters, after_put_backs(named, put_backs)
    return [
        Case(
            uuid=uuid,
            row=rows.get(uuid),
            lines=_in_order([line for line in kept if line.cluster == uuid]),
            stores=stores,
            opener=opener,
            repositories=[repository for repository in stores.repositories if repository.uuid == uuid],
            asked=[line for line in named if line.cluster == uuid],
            put_backs=[put_back for put_back in put_backs if put_back.cluster == uuid],
        )
        for uuid in known
    ]


def _in_order(lines: Sequence[JournalLine]) -> list[JournalLine]:
    """As they began; but who was refused because the other one of a contest had won comes after that one."""
    over: dict[str, float] = {}
    for line in lines:
        if (contest := line.asked.get("contest")) is not None:
            over[contest] = max(line.began, over.get(contest, 0.0))

    def place(line: JournalLine) -> tuple[float, bool]:
        refused = line.outcome == "no" and "contest" in line.asked
        return (over[line.asked["contest"]] if refused else line.began), refused

    return sorted(lines, key=place)


def _with_clusters(stores: Stores, lines: Sequence[JournalLine]) -> list[JournalLine]:
    """The lines, each creation with the cluster that came of it: an attempt without an answer does not know it.

    Of several such attempts at one name, nobody knows which has made the cluster: each may have.
    """
    made = {line.wish: [str(line.said["uuid"])] for line in lines if line.said.get("uuid") and line.wish}
    claimed = {*(uuid for those in made.values() for uuid in those), *(line.cluster for line in lines)}
    unanswered = {
        line.wish: line.asked["name"]
        for line in lines
        if line.verb == "create" and not line.cluster and line.outcome == "maybe" and line.wish not in made
    }
    for uuid, row in stores.clusters.items():
        for wish, name in unanswered.items():
            if uuid not in claimed and name == row["name"]:
                made.setdefault(wish, []).append(uuid)
    return [each for line in lines for each in _of(line, made.get(line.wish, []))]


def _of(line: JournalLine, clusters: Sequence[str]) -> list[JournalLine]:
    return [line] if line.cluster or not clusters else [replace(line, cluster=cluster) for cluster in clusters]
