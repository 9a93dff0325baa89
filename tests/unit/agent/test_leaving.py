"""The agent's part of a deletion: what it says, and what it starts."""

from dataclasses import replace
from typing import Any

import pytest
from agent_life import HOUR, WHOLE, AgentLife, states
from scripted_centre import Reply, ScriptedCentre, answer, taken

from edgewright.agent.leaving import DETACHER
from edgewright.agent.observation import Kustomized

ORDER = {"cluster": "cluster", "generation": 1, "workloads": "remove"}
AT = "a" * 40
EMPTYING = {"report_empty": True, "revision": AT}


@pytest.mark.parametrize("state", ["active", "detach-only"])
async def test_the_order_to_detach_starts_what_removes(centre: ScriptedCentre, state: str) -> None:
    centre.reply = lambda request: answer(request, state=state, detach=True, detach_order=ORDER)
    life = AgentLife(centre, HOUR)
    logged = await life.live()
    assert set(life.scaled) == {("edgewright", DETACHER, 1)}
    assert (states(logged), states(logged, "detach")) == (["detach"], ["handed_on"])


@pytest.mark.parametrize(
    "wanted",
    [
        {"detach": True},
        {"detach": True, "detach_order": True},
        {"detach": True, "detach_order": {**ORDER, "cluster": "other"}},
        {"detach": True, "detach_order": {**ORDER, "generation": 2}},
        {"detach": True, "detach_order": {**ORDER, "generation": "1"}},
        {"detach": True, "detach_order": {**ORDER, "workloads": "everything"}},
        {"detach_order": ORDER},
        {"state": "detach-only"},
        {"state": "suspended", "suspended": True},
    ],
)
async def test_what_is_not_an_order_for_this_cluster_starts_nothing(
    centre: ScriptedCentre, wanted: dict[str, Any]
) -> None:
    centre.reply = lambda request: answer(request, **wanted) if request in centre.beats else taken()
    life = AgentLife(centre, HOUR / 4)
    await life.live()
    assert life.scaled == []


@pytest.mark.parametrize("status", [401, 403, 404, 410, 500, 503])
async def test_no_refusal_starts_what_removes(centre: ScriptedCentre, status: int) -> None:
    centre.reply = lambda _request: Reply(status, {"detach": True, "detach_order": ORDER, "nonce": None})
    life = AgentLife(centre, HOUR / 4)
    await life.live()
    assert life.scaled == []


async def test_that_nothing_is_left_is_said_once_it_is_so_and_at_once(centre: ScriptedCentre) -> None:
    centre.reply = lambda request: answer(request, **EMPTYING) if request in centre.beats else taken()
    drivers = Kustomized("self-link", "self-link", applied=f"main@sha1:{AT}", path="./edo/cluster", holds=6)
    full = Kustomized("by-hand", "self-link", applied=f"main@sha1:{AT}", path="./by-hand", holds=1)
    life = AgentLife(centre, HOUR, replace(WHOLE, kustomizations=(drivers, full)))
    empty = replace(WHOLE, kustomizations=(drivers, replace(full, holds=0)))
    life.each_sleep = lambda: life.see(empty) if len(centre.beats) == 5 else None
    await life.live()
    said = ["inventory_empty" in request.body for request in centre.beats]
    assert said.index(True) == 5 and all(said[5:])
    assert life.clock.sleeps[5] <= 15, "the centre goes on within seconds"


async def test_that_nothing_is_left_is_not_said_unasked(centre: ScriptedCentre) -> None:
    await AgentLife(centre, HOUR / 4).live()
    assert not [request for request in centre.beats if "inventory_empty" in request.body]


async def test_no_heartbeat_waits_while_the_centre_waits_for_an_empty_edge(centre: ScriptedCentre) -> None:
    centre.reply = lambda request: (
        answer(request, **EMPTYING, wants_digest="d", revisions={}) if request in centre.beats else taken()
    )
    full = Kustomized("by-hand", "self-link", applied=f"main@sha1:{AT}", path="./by-hand", holds=1)
    life = AgentLife(centre, HOUR / 4, replace(WHOLE, kustomizations=(full,)))
    await life.live()
    assert {request.body.get("wants_digest") for request in centre.beats[1:]} == {None}
    assert all(85 < pause < 115 for pause in life.clock.sleeps[1:]), "at the interval, as without"
