"""Somebody who asks the gateway; what was asked and answered goes into the journal that the checker reads."""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
from centre import eventually
from embedded import EmbeddedEdgewright

from failing.records import Records
from tools.chaos import requests
from tools.chaos.journal import JournalLine, Outcome
from tools.chaos.journaling_client import Facts, SentRequest, nothing
from tools.chaos.wishes import SecretRequest, Step

TIMEOUT = 90.0
"""Seconds; longer than anything in the gateway waits."""


@dataclass
class Caller:
    """An operator. Every method that asks returns the answer, whatever it is."""

    centre: EmbeddedEdgewright
    records: Records
    _http: httpx.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        token = (self.centre.home / "admin-token").read_text().strip()
        self._operator = {"Authorization": f"Bearer {token}"}
        url = str(self.centre.endpoints()["gateway"])
        limits = httpx.Limits(max_connections=None)
        self._http = httpx.AsyncClient(base_url=url, timeout=TIMEOUT, limits=limits, trust_env=False)

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, **params: Any) -> httpx.Response:
        return await self._http.get(path, params=params, headers=self._operator)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        return await self._http.post(path, json=body or {}, headers=self._operator)

    async def create(self, name: str, *, wish: str = "") -> httpx.Response:
        """The same ``wish`` again is the same request."""
        fields = {"namespace": "edgewright", "chart": None, "stamp": name, "label": name}
        step = Step("create", wish or f"create {name}", {"name": name, "door": "rest", "fields": fields})
        return await self._send(step, "", requests.create(step), lambda answer: {"uuid": answer.json()["uuid"]})

    async def change(self, cluster: str, stamp: str) -> httpx.Response:
        step = Step("change", f"change {stamp}", {"door": "rest", "fields": {"stamp": stamp}})
        return await self._send(step, cluster, requests.patch(step, cluster))

    async def recreate(self, cluster: str, *, wish: str) -> httpx.Response:
        step = Step("recreate", wish, {"door": "rest", "fields": {}})
        return await self._send(step, cluster, requests.recreate(step, cluster))

    async def delete(self, cluster: str, *, force: bool = False) -> httpx.Response:
        wish = f"delete {cluster}{' by force' if force else ''}"
        step = Step("delete", wish, {"door": "rest", "force": force, "deadline": None})
        return await self._send(step, cluster, requests.delete(step, cluster))

    async def put_secret(self, cluster: str, place: str, value: str, *, calm: bool = True) -> httpx.Response:
        """``place``: ``namespace/name/key``; the idempotency key follows from place and value."""
        wish = SecretRequest(f"secret {cluster} {place} {value}", ((place, value),))
        step = Step("secrets", wish.wish, {"changes": wish.changes, "calm": calm})
        return await self._send(step, cluster, requests.change_secrets(wish, cluster), requests.committed)

    async def certify(self, cluster: str) -> httpx.Response:
        """An edge status with a sealing certificate, by an operator."""
        step = Step("status", f"status {uuid4()}", {"key": 0})
        return await self._send(step, cluster, requests.status(cluster, self.records.keys[0]))

    async def show(self, cluster: str) -> dict[str, Any]:
        answer = await self.get(f"/v1/cluster/{cluster}")
        assert answer.is_success, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def cluster(self, name: str) -> str:
        """One that is ready and takes secrets; its UUID."""
        answer = await self.create(name)
        assert answer.status_code == 201, answer.text
        uuid = str(answer.json()["uuid"])
        await self.until_ready(uuid)
        certified = await self.certify(uuid)
        assert certified.is_success, certified.text
        return uuid

    async def until(self, cluster: str, holds: Callable[[dict[str, Any]], bool], *, seconds: float) -> dict[str, Any]:
        """Waits for what the cluster shows; returns that."""
        seen: list[dict[str, Any]] = [{}]

        async def reached() -> bool:
            seen[0] = await self.show(cluster)
            return holds(seen[0])

        await eventually(reached, seconds=seconds, shows=lambda: str(seen[0]))
        return seen[0]

    async def until_ready(self, cluster: str, *, seconds: float = 60) -> None:
        await self.until(cluster, lambda shown: bool(shown["ready"]), seconds=seconds)

    async def until_gone(self, cluster: str, *, seconds: float = 60) -> None:
        async def gone() -> bool:
            return (await self.get(f"/v1/cluster/{cluster}")).status_code == 410

        await eventually(gone, seconds=seconds)

    async def attach(self, cluster: str) -> "CallingEdge":
        """An edge that registers, reports, and beats once."""
        line = await self.post(f"/v1/cluster/{cluster}/registration-token")
        assert line.is_success, line.text
        agent, flux = f"ewa_{secrets.token_hex(32)}", f"ewf_{secrets.token_hex(32)}"
        body = {"kube_system_uid": str(uuid4()), "kubernetes_version": "v1.31.2+k3s1"}
        body |= {"flux_secret": flux, "agent_secret": agent}
        token = line.json()["url"].partition("token=")[2]
        asked = {role: hashlib.sha256(s.encode()).hexdigest() for role, s in (("flux", flux), ("agent", agent))}
        step = Step("register", f"register {cluster}", asked)
        headers = {"Authorization": f"Bearer {token}"}
        registered = await self._send(step, cluster, SentRequest("POST", "/v1/register", json=body, headers=headers))
        assert registered.is_success, registered.text
        edge = CallingEdge(self._http, cluster, agent)
        assert (await edge.beat()).is_success
        return edge

    async def _send(self, step: Step, cluster: str, request: SentRequest, facts: Facts = nothing) -> httpx.Response:
        """One attempt, in the journal."""
        began = self.records.journal.now()
        outcome: Outcome = "maybe"
        answer: httpx.Response | None = None
        said: Mapping[str, Any] = {}
        try:
            answer = await self._http.request(
                request.method,
                request.path,
                json=request.json,
                content=request.content,
                params=dict(request.params),
                headers={**self._operator, **request.headers},
            )
            outcome = "yes" if answer.is_success else "maybe" if answer.is_server_error else "no"
            said = facts(answer) if answer.is_success else {}
            return answer
        finally:
            status, code = (answer.status_code, problem_code(answer)) if answer is not None else (0, "")
            ended = self.records.journal.now()
            self.records.journal.write(
                JournalLine(step.wish, step.verb, cluster, step.asked, began, ended, outcome, status, code, said)
            )


@dataclass(frozen=True)
class CallingEdge:
    """Beats when it is told to."""

    http: httpx.AsyncClient
    cluster: str
    agent: str = field(repr=False)

    async def beat(self) -> httpx.Response:
        return await self.http.post("/v1/agent/heartbeat", json={}, auth=(self.cluster, self.agent))


def problem_code(answer: httpx.Response) -> str:
    """The ``code`` of a problem document; empty for an answer that is none."""
    if "problem+json" not in answer.headers.get("content-type", ""):
        return ""
    return str(answer.json()["code"])


async def timed(asking: "asyncio.Future[httpx.Response] | Any") -> tuple[httpx.Response, float]:
    """An answer, and after how many seconds it came."""
    began = asyncio.get_running_loop().time()
    answer: httpx.Response = await asking
    return answer, asyncio.get_running_loop().time() - began
