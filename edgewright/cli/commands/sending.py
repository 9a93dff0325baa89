"""Requests that must have their effect once, however often they have to be sent."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx

from edgewright.cli.client import GatewayClient, Params
from edgewright.cli.commands.durations import spoken
from edgewright.cli.commands.screen import say
from edgewright.cli.failures import CliError, ExitCode
from edgewright.retry_after import seconds_asked_for

PATIENCE_SECONDS = 45.0
"""After this long no other attempt begins."""
LONGEST_PAUSE_SECONDS = 5.0
"""A gateway that asks for a longer pause waits for something that takes its time: that is told at once."""
FIRST_PAUSE_SECONDS = 0.25


def send_once(
    gateway: GatewayClient,
    method: str,
    path: str,
    *,
    params: Params | None = None,
    body: Any = None,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Sends one request under an ``Idempotency-Key``; again, with the same key, when the answer is lost, 429 or 503.

    Raises:
        CliError: it is refused, or cannot be done soon. A gateway that nobody listens for is told at once.
    """
    keyed = {**(headers or {}), "Idempotency-Key": str(uuid4())}
    began = time.monotonic()
    pause = FIRST_PAUSE_SECONDS
    sent_before = False
    while True:
        try:
            answer = gateway.request(
                method, path, params=params, body=body, content=content, headers=keyed, accept=frozenset({429, 503})
            )
        except CliError as error:
            refused = isinstance(error.__cause__, httpx.ConnectError) and not sent_before
            if not is_out_of_reach(error) or refused or _is_over(began, pause):
                raise
            say(f"{error.sentence} Trying again.")
            wait = pause
        else:
            if answer.is_success:
                return answer
            problem = gateway.problem(answer)
            wait = _asked_for(answer, pause)
            if wait > LONGEST_PAUSE_SECONDS or _is_over(began, wait):
                raise problem
            say(f"{problem.sentence} Trying again in {spoken(wait)}.")
        sent_before = True
        time.sleep(wait)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def is_out_of_reach(error: CliError) -> bool:
    """Whether the gateway could not be reached or did not answer, as opposed to having answered with a problem."""
    return error.exit_code is ExitCode.UNAVAILABLE and isinstance(error.__cause__, httpx.TransportError)


def _asked_for(answer: httpx.Response, otherwise: float) -> float:
    """Seconds that the gateway asks to wait."""
    return max(otherwise, seconds_asked_for(answer.headers.get("Retry-After"), now=datetime.now(UTC)))


def _is_over(began: float, pause: float) -> bool:
    return time.monotonic() + pause - began > PATIENCE_SECONDS
