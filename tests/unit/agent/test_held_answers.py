"""An agent whose centre holds its answers back."""

import asyncio
import threading
from dataclasses import replace

from agent_life import HOUR, WHOLE, Life
from scripted_centre import Reply, Request, ScriptedCentre, answer, taken

from edgewright.agent.observation import Host

COMMIT = "c" * 40


async def test_what_is_seen_while_an_answer_is_held_back_is_reported_at_once(centre: ScriptedCentre) -> None:
    reported = threading.Event()

    def reply(request: Request) -> Reply:
        if request.path != "/v1/agent/heartbeat":
            if centre.statuses[1:]:
                reported.set()
            return taken()
        if "wants_digest" in request.body and not centre.beats[3:]:
            assert reported.wait(20), "the status came while this was held back"
        return answer(request, wants_digest="d", revisions={"self-link": "a" * 40})

    centre.reply = reply
    life = Life(centre, HOUR)
    changed = replace(WHOLE, hosts=(Host("press-1", True, False),))

    async def change() -> None:
        while len(centre.beats) < 2:
            await asyncio.sleep(0.01)
        life.see(changed)

    _, _logged = await asyncio.gather(change(), life.live())
    assert [request.body for request in centre.statuses] == [WHOLE.to_json(), changed.to_json()]
    assert centre.beats[0].body["wait"] == 5.0, "the interval that was told is the longest wait"
    assert centre.beats[1].body["wait"] == 50.0
    assert {"wants_digest": "d", "revisions": {"self-link": "a" * 40}}.items() <= centre.beats[1].body.items()


async def test_what_the_centre_wants_fetched_is_asked_of_flux(centre: ScriptedCentre) -> None:
    centre.reply = lambda request: (
        answer(request, wants_digest="d", revisions={"self-link": COMMIT, "helm-charts": "no commit"})
        if request in centre.beats
        else taken()
    )
    life = Life(centre, 20)
    await life.live()
    assert set(life.asked_for) == {("edgewright", "self-link")}
    assert set(life.expected) == {COMMIT}
