"""How the clients ask: one attempt after the other, each in the journal."""

import asyncio
import math
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from tools.chaos.centre import Address
from tools.chaos.journal import Journal, JournalLine, Outcome

TIMEOUT = 60.0
"""Longer than anything in the gateway waits: who gets no answer until then is not acted upon later either."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0
"""Seconds between two attempts."""
TAKES_TOO_MUCH = (429, "too_many_requests")
"""What a gateway on a slow machine says before it has done anything: the client comes back later."""
SECOND_ANSWERS = {("DELETE", 404), ("PUT", 412), ("DELETE", 429), ("PUT", 429)}
Facts = Callable[[httpx.Response], Mapping[str, Any]]


@dataclass(frozen=True)
class SentRequest:
    """What goes over the wire. ``auth``: user and password; None: the operator."""

    method: str
    path: str
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    auth: tuple[str, str] | None = None


def nothing(_answer: httpx.Response) -> Mapping[str, Any]:
    """For answers that say no more than their status."""
    return {}


class JournalingClient:
    """A client's way to the gateway."""

    def __init__(self, address: Address, journal: Journal) -> None:
        self.address = address
        self.journal = journal
        self.closing = math.inf
        """By the journal's clock: from here on nobody has patience."""
        self._operator = {"Authorization": f"Bearer {address.token}"}
        self._http = httpx.AsyncClient(
            base_url=address.url,
            timeout=httpx.Timeout(TIMEOUT, connect=5),
            trust_env=False,
            verify=ssl.create_default_context(cafile=address.authority) if address.authority else True,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(
        self,
        wish: str,
        verb: str,
        cluster: str,
        asked: Mapping[str, Any],
        request: SentRequest,
        facts: Facts = nothing,
    ) -> JournalLine | None:
        """One attempt; None if nothing can have come of it: nobody was reached, or the token has to wait its turn."""
        began = self.journal.now()
        answer: httpx.Response | None = None
        outcome: Outcome = "maybe"
        said: Mapping[str, Any] = {}
        code = ""
        try:
            answer = await self._send(request)
            outcome = "yes" if answer.is_success else "maybe" if answer.is_server_error else "no"
            said = facts(answer) if answer.is_success else {}
            code = "" if answer.is_success else _code(answer)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None
        except httpx.TransportError as error:
            code = type(error).__name__
        status = answer.status_code if answer is not None else 0
        line = JournalLine(wish, verb, cluster, asked, began, self.journal.now(), outcome, status, code, said)
        if self._may_be_the_second(request, line):
            self.journal.write(replace(line, outcome="maybe", status=0, code="behind the proxy"))
        if (status, code) == TAKES_TOO_MUCH:
            return None
        self.journal.write(line)
        return line

    def _may_be_the_second(self, request: SentRequest, line: JournalLine) -> bool:
        """Whether the refusal may be the answer to a repetition by the proxy.

        A proxy sends an idempotent request once more when the gateway that had it dies. If that one had done it
        already, the next one finds nothing to remove, or another revision; or it has no time for that token now.
        """
        if self.address.authority is None or (request.method, line.status) not in SECOND_ANSWERS:
            return False
        return any(kill.how == "kill" and kill.at >= line.began for kill in self.journal.kills)

    async def insist(
        self,
        wish: str,
        verb: str,
        cluster: str,
        asked: Mapping[str, Any],
        request: SentRequest,
        facts: Facts = nothing,
        *,
        patience: float,
    ) -> JournalLine | None:
        """The same request until it is answered yes or no, or patience (seconds) is over; the last attempt."""
        until, pause = self.journal.now() + patience, FIRST_PAUSE
        line: JournalLine | None = None
        while True:
            line = await self.ask(wish, verb, cluster, asked, request, facts) or line
            if (line is not None and line.outcome != "maybe") or self.journal.now() > min(until, self.closing):
                return line
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 1.5)

    async def _send(self, request: SentRequest) -> httpx.Response:
        return await self._http.request(
            request.method,
            request.path,
            json=request.json,
            content=request.content,
            params=dict(request.params),
            headers={**({} if request.auth else self._operator), **request.headers},
            auth=request.auth,
        )


def _code(answer: httpx.Response) -> str:
    try:
        return str(answer.json().get("code", ""))
    except (ValueError, AttributeError):
        return "no problem document"
