"""Attaching clusters to a site, one after the other, and what both sides say of it."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
from components import component
from desk import Desk
from embedded import SWEEP_SECONDS, EmbeddedEdgewright
from flux_file import sha256_of
from free_ports import free_port

from edge_cluster.cluster import Cluster
from edge_cluster.line import BootstrapLine, Surroundings
from edge_cluster.patience import eventually
from edge_cluster.release import release
from edge_cluster.site import AGENT, Site

AGENT_IMAGE = "registry.example.com/edgewright:test"


def centre_variables(**more: str) -> dict[str, str]:
    """Variables of a centre that has an agent for edges, sweeps often, and comes back at the same port."""
    return {
        "EDGEWRIGHT_DEMO": "0",
        "EDGEWRIGHT_SWEEP_SECONDS": SWEEP_SECONDS,
        "EDGEWRIGHT_GATEWAY_PORT": str(free_port()),
        "EDGEWRIGHT_AGENT_IMAGE": AGENT_IMAGE,
        **more,
    }


@contextmanager
def desk_beside(centre: EmbeddedEdgewright, papers: Path) -> Iterator[Desk]:
    """A desk beside a centre that runs until the end of the context.

    Args:
        papers: folder of whoever sits there; it is made.
    """
    try:
        centre.up()
        papers.mkdir()
        yield Desk(centre, papers, component("kubeseal"))
    finally:
        centre.clear_up()


@dataclass
class Attaching:
    """Lines of new clusters for the site, by one person."""

    desk: Desk
    factory: Site
    folder: Path
    surroundings: Surroundings = Surroundings()
    uuids: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        file = release()
        imported = self.desk.centre.api("PUT", "/v1/flux", params={"sha256": sha256_of(file)}, content=file)
        assert imported.status_code == 200, imported.text
        return self

    def __exit__(self, *_raised: object) -> None:
        self._clear_up()

    def commission(self, name: str, **wish: Any) -> str:
        """Creates a cluster whose edge may come; returns its UUID."""
        created = self.desk.centre.api("POST", "/v1/cluster", json={"name": name, "lease_seconds": 15, **wish})
        assert created.status_code == 201, created.text
        self.uuids.append(created.json()["uuid"])
        eventually(lambda: self.desk.centre.is_ready(name))
        return self.uuids[-1]

    def line(self, uuid: str, *, on: Cluster | None = None, folder: Path | None = None) -> BootstrapLine:
        """A fresh one."""
        cluster, where = on or self.factory.cluster, folder or self.folder
        return BootstrapLine(self.desk.centre, cluster, uuid, where, surroundings=self.surroundings)

    def is_available(self, uuid: str) -> bool:
        return self.condition(uuid, "Available")[0] == "True"

    def condition(self, uuid: str, name: str) -> tuple[str, str]:
        """Status and reason."""
        [found] = [each for each in self.shown(uuid)["conditions"] if each["type"] == name]
        return found["status"], found["reason"]

    def shown(self, uuid: str) -> dict[str, Any]:
        """All that the centre shows of a cluster."""
        return dict(self.told(f"/v1/cluster/{uuid}"))

    def timeline(self, uuid: str) -> list[str]:
        """What is told of a cluster."""
        return [str(each["message"]) for each in self.events(uuid)]

    def events(self, uuid: str) -> list[dict[str, Any]]:
        """The same, whole."""
        return list(self.told(f"/v1/cluster/{uuid}/timeline?limit=500")["items"])

    def rotated(self, uuid: str) -> list[str]:
        """The roles whose successors were used for the first time, sorted."""
        return sorted(each["actor"] for each in self.events(uuid) if each["kind"] == "credential.rotated")

    def told(self, path: str) -> Any:
        """What the gateway answers as soon as it answers: it may just have been killed."""
        answers: list[Any] = []

        def is_answered() -> bool:
            with suppress(httpx.TransportError):
                answer = self.desk.centre.api("GET", path)
                if answer.is_success:
                    answers.append(answer.json())
            return bool(answers)

        eventually(is_answered)
        return answers[0]

    def put_secret(self, uuid: str, value: str) -> None:
        """The key ``password`` of ``default/db``."""
        path = f"/v1/cluster/{uuid}/secret/default/db/password"
        answer = self.desk.centre.api("PUT", path, content=value.encode())
        assert answer.status_code == 204, answer.text

    def opened_secret(self) -> str | None:
        """What the site's own controller has made of it; None: there is none."""
        return self._password("db", "default")

    def password(self, secret: str = "edgewright-agent") -> str | None:
        """In a Secret of the site; None if there is none."""
        return self._password(secret, "edgewright")

    def _password(self, secret: str, namespace: str) -> str | None:
        found = self.factory.cluster.find("secret", secret, namespace=namespace)
        held = (found or {}).get("data", {}).get("password")  # one that is only reserved has none yet
        return base64.b64decode(held).decode() if held else None

    def agent_said(self, key: str = "state") -> list[str]:
        """What the agent has logged of its centre since it was started last."""
        written, starts = self._agent_log(), self.agent_starts()
        return [str(line.get(key)) for line in written[starts[-1] :] if line["event"] == "centre"] if starts else []

    def agent_starts(self) -> list[int]:
        """Which lines of its log tell of a start."""
        return [at for at, line in enumerate(self._agent_log()) if line["event"] == "started"]

    def _agent_log(self) -> list[dict[str, Any]]:
        log = self.factory.cluster.folder / "logs" / f"{AGENT}.log"
        lines = log.read_text().splitlines(keepends=True) if log.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def fetch_now(self) -> str:
        """See ``Cluster.fetch_now``: the driving repository."""
        return self.factory.cluster.fetch_now()

    def has_fetched(self) -> bool:
        """Whether Flux has the driving repository, as far as it knows."""
        return self.source_said().startswith("stored artifact")

    def source_said(self) -> str:
        """What Flux says of its source, the driving repository."""
        found = self.factory.cluster.find("gitrepository", "self-link", namespace="edgewright")
        conditions = (found or {}).get("status", {}).get("conditions", [])
        return "".join(str(each["message"]) for each in conditions if each["type"] == "Ready")

    def _clear_up(self) -> None:
        """The site is as it was found, and the centre knows none of these clusters."""
        anchor = self.factory.cluster.find("clusterrole", "edgewright-anchor")
        if anchor is not None:
            owner = anchor["metadata"]["labels"]["edgewright.dev/cluster"]
            done = self.line(owner).run("--uninstall")
            assert done.returncode == 0, done.stdout + done.stderr
        for uuid in self.uuids:
            self.desk.curl("DELETE", f"/v1/cluster/{uuid}?force=true")
        eventually(lambda: all(self.desk.is_gone(uuid) for uuid in self.uuids))
