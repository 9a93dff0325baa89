"""An agent whose centre holds its answers back."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from agent_life import HOUR, WHOLE, AgentLife
from scripted_centre import ReceivedRequest, Reply, ScriptedCentre, answer, taken

from edgewright.agent.observation import Fetched, Host
from edgewright.errors import Forbidden

COMMIT = "c" * 40
FETCHED = replace(WHOLE, sources=(Fetched("self-link", fetched=f"main@sha1:{COMMIT}"),))
"""Nothing is left to be fetched."""


def held_until(
    centre: ScriptedCentre, event: threading.Event, in_time: list[bool]
) -> Callable[[ReceivedRequest], Reply]:
    """Holds the second heartbeat back until then, and notes whether that came."""

    def reply(request: ReceivedRequest) -> Reply:
        if request.path != "/v1/agent/heartbeat":
            return taken()
        if "wants_digest" in request.body and not centre.beats[3:]:
            in_time.append(event.wait(20))
        return answer(request, wants_digest="d", revisions={"self-link": COMMIT})

    return reply


async def test_what_is_seen_while_an_answer_is_held_back_is_reported_at_once(centre: ScriptedCentre) -> None:
    reported = threading.Event()

    def reply(request: ReceivedRequest) -> Reply:
        if request.path != "/v1/agent/heartbeat":
            if centre.statuses[1:]:
                reported.set()
            return taken()
        if "wants_digest" in request.body and not centre.beats[3:]:
            assert reported.wait(20), "the status came while this was held back"
        return answer(request, wants_digest="d", revisions={"self-link": COMMIT})

    centre.reply = reply
    life = AgentLife(centre, HOUR, FETCHED)
    changed = replace(FETCHED, hosts=(Host("press-1", True, False),))

    async def change() -> None:
        while len(centre.beats) < 2:
            await asyncio.sleep(0.01)
        life.see(changed)

    _, _logged = await asyncio.gather(change(), life.live())
    assert [request.body for request in centre.statuses] == [FETCHED.to_json(), changed.to_json()]
    assert centre.beats[0].body["wait"] == 5.0, "the interval that was told is the longest wait"
    assert 40.0 <= centre.beats[1].body["wait"] <= 50.0
    assert {"wants_digest": "d", "revisions": {"self-link": COMMIT}}.items() <= centre.beats[1].body.items()


async def test_what_is_seen_right_after_a_report_waits_for_no_answer(centre: ScriptedCentre) -> None:
    """Reports keep a pause of a second; what comes within it is sent at its end."""
    told, loop = threading.Event(), asyncio.get_running_loop()
    first, second = (replace(FETCHED, hosts=(Host("press-1", True, ready),)) for ready in (False, True))
    life = AgentLife(centre, HOUR, FETCHED)
    in_time: list[bool] = []
    held = held_until(centre, told, in_time)

    def reply(request: ReceivedRequest) -> Reply:
        if request in centre.statuses and len(centre.statuses) == 2:
            loop.call_soon_threadsafe(life.see, second)
        if len(centre.statuses) == 3:
            told.set()
        return held(request)

    async def change() -> None:
        while len(centre.beats) < 2:
            await asyncio.sleep(0.01)
        life.see(first)

    centre.reply = reply
    await asyncio.gather(change(), life.live())
    assert [request.body for request in centre.statuses] == [each.to_json() for each in (FETCHED, first, second)]
    assert in_time and all(in_time)


async def test_flux_is_asked_again_for_what_it_has_not_fetched_while_an_answer_is_held_back(
    centre: ScriptedCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bootstrap script grants the right last of all: the first request after an attachment may be refused."""
    allowed = threading.Event()
    life, refused, in_time = AgentLife(centre, HOUR), list[str](), list[bool]()

    async def ask(_namespace: str, source: str, _at: datetime) -> None:
        if not refused:
            refused.append(source)
            raise Forbidden("Not yet.", code="kubernetes_forbidden")
        allowed.set()
        life.see(FETCHED)

    monkeypatch.setattr(life, "ask_to_fetch", ask)
    centre.reply = held_until(centre, allowed, in_time)
    await life.live()
    assert refused and in_time and all(in_time)


async def test_what_the_centre_wants_fetched_is_asked_of_flux(centre: ScriptedCentre) -> None:
    centre.reply = lambda request: (
        answer(request, wants_digest="d", revisions={"self-link": COMMIT, "helm-charts": "no commit"})
        if request in centre.beats
        else taken()
    )
    life = AgentLife(centre, 20)
    await life.live()
    assert set(life.asked_for) == {("edgewright", "self-link")}
    assert set(life.expected) == {COMMIT}
