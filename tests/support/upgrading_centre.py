"""A centre that upgrades edges, which prove it in random order, and the command line that goes to it."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import NAMESPACE_DNS, uuid5

from command_line import CommandLine, Shown, Terminal
from scripted_centre import ReceivedRequest, Reply, scripted_centre

from edgewright.domain.wellknown import APP_CLUSTER_STATUS, CLASS_EDGE_CLUSTER

NAMES = [f"press-{number:02}" for number in range(1, 21)]
OLD, NEW = "0.3.0", "0.4.0"
IMAGE = f"registry.example.com/agent:{NEW}"
STATUSES = f"/v1/app/{APP_CLUSTER_STATUS}"
TOKEN = "ew_0123456789abcdef_" + "A" * 43


def problem(code: str, detail: str, status: int = 409) -> Reply:
    return Reply(status, {"code": code, "detail": detail, "title": detail, "status": status})


SILENT = problem("edge_silent", "No heartbeat of this edge since 2031-02-03T04:05:06Z.")
NO_EDGE = problem("edge_not_attached", "No edge is attached to this cluster.")


def uuid_of(name: str) -> str:
    return str(uuid5(NAMESPACE_DNS, name))


@dataclass
class UpgradingCentre:
    """A centre that keeps the limit itself, and edges that prove their upgrades in random order.

    Args:
        ends: how an upgrade ends, where not with a proof.
        refused: which clusters it refuses, and why.
        others: upgrades of other people that are under way all the time.
        lost: so many answers to POST never arrive, although the upgrade has begun.
        holds: nothing is proven.
        lacks: a path that this centre does not know.
        offers_agent: it has an image of the agent.
    """

    random: random.Random
    names: list[str] = field(default_factory=lambda: list(NAMES))
    ends: dict[str, str] = field(default_factory=dict)
    refused: dict[str, Reply] = field(default_factory=dict)
    others: int = 0
    lost: int = 0
    holds: bool = False
    away: int = 0
    lacks: str = ""
    offers_agent: bool = True
    upgrades: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    asked: list[ReceivedRequest] = field(default_factory=list)
    most_under_way: int = 0
    begun_after_a_failure: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, request: ReceivedRequest) -> Reply:
        with self._lock:
            answer = self._answer(request)
            return Reply(answer.status, answer.body, {"Content-Type": "application/json", **answer.headers})

    def states(self) -> dict[str, str]:
        return {name: str(each["state"]) for name, each in self.upgrades.items()}

    def bodies(self) -> list[Any]:
        return [each.body for each in self.asked if each.method == "POST"]

    def _answer(self, request: ReceivedRequest) -> Reply:
        url = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.asked.append(request)
        if request.method == "POST":
            return self._begin(self._name(url.path.split("/")[3]), request.body)
        if request.method == "DELETE":
            return self._cancel(self._name(url.path.split("/")[3]), query.get("component"))
        if url.path == self.lacks:
            return problem("route_unknown", "There is nothing at this path.", 404)
        match url.path:
            case "/v1/agent-image" if not self.offers_agent:
                return problem("agent_image_unset", "This centre has no image of the agent.", 404)
            case "/v1/agent-image":
                return Reply(200, {"image": IMAGE, "version": NEW})
            case "/v1/flux":
                return Reply(200, {"version": "v2.7.3"})
            case "/v1/upgrade":
                return self._page(query)
            case "/v1/cluster":
                found = [self._cluster(name) for name in self.names if query.get("name", "") in name]
                return Reply(200, {"items": found, "next": None})
            case path if path.startswith("/v1/cluster/"):
                return Reply(200, self._cluster(self._name(path.split("/")[3])))
            case path if path == f"{STATUSES}/class/{CLASS_EDGE_CLUSTER}/search":
                program = query["@now"].removeprefix("versions.")
                return Reply(200, [{"uuid": uuid_of(n), "now": self._version(n, program)} for n in self.names[1:]])
            case path if path.startswith(f"{STATUSES}/object/"):
                name = self._name(path.split("/")[-1])
                return Reply(200, {"versions": {"agent": self._version(name, "agent")}})
        return problem("not_found", f"Nothing is at {url.path}.", 404)

    def _version(self, name: str, program: str) -> str:
        if self.states().get(name) == "done":
            return str(self.upgrades[name]["version"])
        return OLD if program == "agent" else "v2.7.0"

    def _name(self, uuid: str) -> str:
        return next(name for name in self.names if uuid_of(name) == uuid)

    def _cluster(self, name: str) -> dict[str, Any]:
        return {"uuid": uuid_of(name), "name": name, "phase": "Active", "desired": "present"}

    def _under_way(self) -> list[str]:
        return [name for name, state in self.states().items() if state == "under_way"]

    def _begin(self, name: str, body: Any) -> Reply:
        if name in self.refused:
            return self.refused[name]
        present = self.upgrades.get(name)
        if present is not None and present["state"] in {"under_way", "done"}:
            return Reply(200, present)
        if body["at_once"] is not None and len(self._under_way()) + self.others >= body["at_once"]:
            refused = problem("upgrade_limit_reached", "So many are under way.")
            return Reply(refused.status, refused.body, {"Retry-After": "30"})
        before, version = (OLD, NEW) if body["component"] == "agent" else ("v2.7.0", body["version"] or "v2.7.3")
        self.upgrades[name] = {
            "cluster": uuid_of(name),
            "name": name,
            "component": body["component"],
            "version": version,
            "before": before,
            "state": "under_way",
            "since": "2031-02-03T04:05:06Z",
            "ended_at": None,
            "reason": "",
        }
        self.begun.append(name)
        self.begun_after_a_failure += bool({"fell_back", "failed", "cancelled"} & set(self.states().values()))
        self.most_under_way = max(self.most_under_way, len(self._under_way()) + self.others)
        if self.lost:
            self.lost -= 1
            return problem("not_serving", "The database is away.", 503)
        return Reply(202, self.upgrades[name])

    def _cancel(self, name: str, component: str | None) -> Reply:
        upgrade = self.upgrades.get(name)
        if upgrade is None or upgrade["state"] != "under_way" or component not in {None, upgrade["component"]}:
            return problem("upgrade_not_under_way", f"{name} has agent {NEW} already: its edge has proven it.")
        reason = f"Called off by token:ann; the edge goes back to {upgrade['before']}."
        upgrade |= {"state": "cancelled", "ended_at": "2031-02-03T04:06:06Z", "reason": reason}
        return Reply(200, upgrade)

    def _page(self, query: dict[str, str]) -> Reply:
        if self.away:
            self.away -= 1
            return problem("not_serving", "The database is away.", 503)
        if query.get("state") == "under_way" and not self.holds:
            for name in self.random.sample(self._under_way(), self.random.randint(0, min(3, len(self._under_way())))):
                self._prove(name)
        items = [
            each
            for each in self.upgrades.values()
            if all(str(each[field]) == query[field] for field in ("component", "state", "cluster") if field in query)
        ]
        begin = int(query.get("after", 0))
        end = begin + min(int(query["limit"]), 3)  # short pages, as a centre may answer
        return Reply(200, {"items": items[begin:end], "next": str(end) if end < len(items) else None})

    def _prove(self, name: str) -> None:
        ending = self.ends.get(name, "done")
        reason = "" if ending == "done" else "The new agent\x1b[31m could not call."
        self.upgrades[name] |= {"state": ending, "ended_at": "2031-02-03T04:15:06Z", "reason": reason}


@dataclass
class UpgradeDesk:
    """A centre, and the command line that goes to it."""

    centre: UpgradingCentre
    environment: dict[str, str | None]

    def __call__(self, *arguments: str) -> Shown:
        return CommandLine(self.environment)(*arguments)

    def at_a_terminal(self, *arguments: str, typed: str = "") -> Shown:
        return Terminal(self.environment)(*arguments, typed=typed)


@contextmanager
def upgrade_desk(environment: dict[str, str | None], folder: Path, centre: UpgradingCentre) -> Iterator[UpgradeDesk]:
    token = folder / "token"
    token.write_text(TOKEN)
    with scripted_centre(centre.reply) as served:
        yield UpgradeDesk(centre, {**environment, "EDGEWRIGHT_URL": served.url, "EDGEWRIGHT_TOKEN_FILE": str(token)})


def outcomes(shown: str) -> dict[str, str]:
    """What is told of each cluster, from the lines of a result."""
    return dict(line.split("  ", 1) for line in shown.splitlines() if "  " in line)
