"""A running `edgewright up` with everything on that can be watched, and a cluster that lives a little."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from embedded import EmbeddedEdgewright
from loopback import PLAIN
from otlp_collector import Collector
from supervised import eventually

from edgewright.adapters.temporal.client import connect
from edgewright.messages.names import SWEEP_SCHEDULE

ROOT = Path(__file__).parents[2]
STATUS_APP = "747a62c9-1b66-4a2e-8dd9-0b70a91b6b75"
NAME = "watched-press-shop"
SECRET = "a-plaintext-that-nobody-must-see"


@dataclass
class Watched:
    """A running centre. ``requests``: what was done -> the ID of the request that did it."""

    centre: EmbeddedEdgewright
    collector: Collector
    metrics_port: int
    cluster: str = ""
    registration_token: str = ""
    requests: dict[str, str] = field(default_factory=dict)

    def ask(self, what: str, method: str, path: str, **options: Any) -> httpx.Response:
        """One request with the admin token and a request ID of its own."""
        self.requests[what] = f"watch-{what}"
        token = (self.centre.home / "admin-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": self.requests[what]}
        url = f"{self.centre.endpoints()['gateway']}{path}"
        answer = httpx.request(method, url, headers=headers, timeout=60, **PLAIN, **options)
        assert answer.is_success, answer.text
        return answer

    def live(self) -> None:
        """A cluster is created, gets its bootstrap script and a status, takes a secret; the sweep comes by once."""
        self.cluster = self.ask("create", "POST", "/v1/cluster", json={"name": NAME}).json()["uuid"]
        eventually(lambda: self.centre.is_ready(NAME), seconds=60)
        url = self.ask("url", "POST", f"/v1/cluster/{self.cluster}/bootstrap-url").json()
        self.registration_token = url.partition("token=")[2]
        assert httpx.get(url, timeout=60, **PLAIN).is_success
        status = json.loads((ROOT / "docs" / "examples" / "edge-status.json").read_text())
        self.ask("status", "PUT", f"/v1/app/{STATUS_APP}/object/{self.cluster}", json=status)
        self.ask("secret", "PUT", f"/v1/cluster/{self.cluster}/secret/default/db/password", content=SECRET)

        asyncio.run(self._sweep())

    async def _sweep(self) -> None:
        client = await connect(self.centre.endpoints()["temporal"], "default")
        await client.get_schedule_handle(SWEEP_SCHEDULE).trigger()

    def gateway_metrics(self) -> str:
        return httpx.get(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=30, **PLAIN).text

    def worker_metrics(self) -> str:
        return httpx.get(self.centre.endpoints()["worker_metrics"], timeout=30, **PLAIN).text

    def log(self, part: str) -> list[dict[str, Any]]:
        """Every line of a log; fails if one is no JSON object."""
        lines = [json.loads(line) for line in (self.centre.home / "logs" / f"{part}.log").read_text().splitlines()]
        assert all(isinstance(line, dict) for line in lines)
        return lines
