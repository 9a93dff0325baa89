"""What an agent reports, and what it does while its centre is away."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from agent_life import DAY, HOUR, WHOLE, AgentLife, states
from scripted_centre import ReceivedRequest, Reply, ScriptedCentre, answer, scripted_centre, taken, well

from edgewright.agent.lacks import Unknown
from edgewright.agent.observation import Host, Observation
from edgewright.agent.pauses import SHORTEST_PAUSE
from edgewright.agent.reporter import ATTACHED_ANEW, OWN_SECRET, PATIENCE
from edgewright.errors import Stalled


async def test_an_idle_hour_is_some_forty_heartbeats_and_one_status(centre: ScriptedCentre) -> None:
    life = AgentLife(centre, HOUR)
    logged = await life.live()
    assert 33 <= len(centre.beats) <= 40
    assert [request.body for request in centre.statuses] == [WHOLE.to_json()]
    assert states(logged) == ["active"]
    assert {"status_digest": "digest", "observed_revision": "main@sha1:a"}.items() <= centre.beats[-1].body.items()
    nonces = {request.body["nonce"] for request in centre.beats}
    assert len(nonces) == len(centre.beats)
    assert all(85 < pause < 115 for pause in life.clock.sleeps)


async def test_a_change_is_reported_at_once_and_once(centre: ScriptedCentre) -> None:
    life = AgentLife(centre, HOUR)
    changed = replace(WHOLE, hosts=(Host("press-1", True, False),))
    life.each_sleep = lambda: life.see(changed) if len(centre.beats) == 5 else None
    await life.live()
    paths = [request.path for request in centre.requests]
    assert [request.body for request in centre.statuses] == [WHOLE.to_json(), changed.to_json()]
    assert paths[6] == "/v1/agent/status", "the first status, five heartbeats, then the change"


async def test_changes_that_come_one_after_the_other_go_together(centre: ScriptedCentre) -> None:
    """The centre takes one status a second of an edge; whatever has changed meanwhile is in the next one."""
    life = AgentLife(centre, HOUR)
    moments: list[float] = []
    last = [Host(f"press-{number}", True, False) for number in range(50)]

    def reply(request: ReceivedRequest) -> Reply:
        if request in centre.statuses:
            moments.append(life.clock.monotonic())
        return well(request)

    def changed() -> None:
        if last:
            life.see(replace(WHOLE, hosts=(last.pop(),)))

    centre.reply, life.each_sleep = reply, changed
    await life.live()
    assert len(moments) > 10
    assert all(later - earlier >= SHORTEST_PAUSE for earlier, later in pairwise(moments))
    assert centre.statuses[-1].body["hosts"][0]["hostname"] == "press-0"


async def test_the_centre_may_ask_for_a_status_again(centre: ScriptedCentre) -> None:
    centre.reply = lambda request: (
        answer(request, status_due=len(centre.beats) == 3) if request in centre.beats else taken()
    )
    await AgentLife(centre, HOUR).live()
    assert len(centre.statuses) == 2


async def test_a_day_without_a_centre_needs_no_hand_and_no_log(centre: ScriptedCentre) -> None:
    back = DAY
    life = AgentLife(centre, back + HOUR)

    def reply(request: ReceivedRequest) -> Reply:
        return well(request) if life.clock.monotonic() > back else Reply(503)

    centre.reply = reply
    logged = await life.live()
    away = [pause for pause in life.clock.sleeps if pause <= 300][:-40]
    assert states(logged) == ["away", "active"]
    assert states(logged, "status") == ["taken"]
    assert DAY / 220 < len(away) < DAY / 110, "five minutes at most, two and a half on average"
    assert len(centre.statuses) == 1


async def test_edges_that_lost_their_centre_together_do_not_come_back_together() -> None:
    first = []
    with scripted_centre(lambda _request: Reply(503)) as centre:
        for seed in range(20):
            life = AgentLife(centre, HOUR / 4, chance=Random(seed))
            await life.live()
            first.append(sum(life.clock.sleeps[:8]))
    assert len({round(moment / 10) for moment in first}) > 8


@pytest.mark.parametrize("status", [401, 403, 404, 418, 500, 503])
async def test_no_answer_and_no_silence_ends_the_agent_or_changes_the_edge(
    centre: ScriptedCentre, status: int
) -> None:
    centre.reply = lambda _request: Reply(status)
    logged = await AgentLife(centre, 4 * HOUR).live()
    assert states(logged) == ["refused" if status < 500 else "away"]
    assert {request.path for request in centre.requests} == {"/v1/agent/heartbeat"}
    assert len(centre.requests) < 4 * HOUR / 100


async def test_only_an_answer_of_the_centre_counts_as_one(centre: ScriptedCentre) -> None:
    """A new pod takes over once it has one: refusals, a proxy's page and another heartbeat's answer are none."""
    replies: dict[int, Callable[[ReceivedRequest], Reply]] = {
        1: lambda _request: Reply(503),
        2: lambda _request: Reply(401),
        3: lambda _request: Reply(200, b"<html>Please log in</html>"),
        4: lambda request: answer(request, nonce="another"),
        5: lambda request: answer(request, state="pending"),
    }

    def reply(request: ReceivedRequest) -> Reply:
        return replies.get(len(centre.beats), well)(request)

    centre.reply = reply
    life = AgentLife(centre, HOUR)
    await life.live()
    assert life.answered[:3] == [5, 6, 7]


async def test_retry_after_is_the_least_that_is_waited(centre: ScriptedCentre) -> None:
    centre.reply = lambda _request: Reply(429, headers={"Retry-After": "600"})
    life = AgentLife(centre, DAY)
    await life.live()
    assert all(600 <= pause <= 900 for pause in life.clock.sleeps)


@pytest.mark.parametrize(
    ("wanted", "state"),
    [
        ({"state": "pending"}, "pending"),
        ({"state": "suspended", "suspended": True}, "suspended"),
        ({"state": "active", "detach": True, "status_due": True}, "detach"),
        ({"state": "detach-only", "detach": True}, "detach"),
        ({"state": "of-a-later-version", "status_due": True}, "of-a-later-version"),
    ],
)
async def test_an_edge_that_may_not_report_waits_with_one_line(
    centre: ScriptedCentre, wanted: dict[str, Any], state: str
) -> None:
    centre.reply = lambda request: answer(request, **wanted)
    logged = await AgentLife(centre, HOUR).live()
    assert states(logged) == [state]
    assert centre.statuses == []
    assert 33 <= len(centre.beats) <= 40


async def test_an_accepted_edge_reports_and_every_turn_has_its_line(centre: ScriptedCentre) -> None:
    turns: list[dict[str, Any]] = [
        *[{"state": "pending"}] * 3,
        *[{"state": "active"}] * 3,
        *[{"state": "suspended", "suspended": True}] * 3,
        *[{"state": "active"}] * 50,
    ]
    centre.reply = lambda request: (
        answer(request, **turns[len(centre.beats) - 1]) if request.path.endswith("heartbeat") else taken()
    )
    logged = await AgentLife(centre, HOUR).live()
    assert states(logged) == ["pending", "active", "suspended", "active"]
    assert len(centre.statuses) == 1


async def test_a_status_that_is_not_taken_costs_no_lease(centre: ScriptedCentre) -> None:
    centre.reply = lambda request: well(request) if request.path.endswith("heartbeat") else Reply(500)
    logged = await AgentLife(centre, HOUR).live()
    assert 33 <= len(centre.beats) <= 40
    assert 10 < len(centre.statuses) < 60
    assert (states(logged), states(logged, "status")) == (["active"], ["not_taken"])


async def test_a_status_that_is_refused_is_not_sent_again_and_again(centre: ScriptedCentre) -> None:
    centre.reply = lambda request: well(request) if request.path.endswith("heartbeat") else Reply(422)
    logged = await AgentLife(centre, HOUR).live()
    assert (len(centre.statuses), states(logged, "status")) == (1, ["unacceptable"])


async def test_a_machine_that_has_just_started_does_not_report_half_of_itself(centre: ScriptedCentre) -> None:
    half = replace(WHOLE, certificate=None)
    life = AgentLife(centre, PATIENCE + 200, half)
    life.each_sleep = lambda: life.see(WHOLE) if len(centre.beats) == 2 else None
    await life.live()
    assert [request.body for request in centre.statuses] == [WHOLE.to_json()]


@pytest.mark.parametrize("asked", [True, False])
async def test_half_is_reported_where_the_centre_has_nothing_or_the_rest_never_comes(
    centre: ScriptedCentre, asked: bool
) -> None:
    half = replace(WHOLE, certificate=None)
    beats_before: list[int] = []

    def reply(request: ReceivedRequest) -> Reply:
        if request.path.endswith("heartbeat"):
            return answer(request, status_due=asked and not centre.statuses)
        beats_before.append(len(centre.beats))
        return taken()

    centre.reply = reply
    await AgentLife(centre, HOUR, half).live()
    assert [request.body for request in centre.statuses] == [half.to_json()]
    assert (beats_before[0] == 1) is asked


async def test_nothing_is_reported_before_anything_was_seen(centre: ScriptedCentre) -> None:
    await AgentLife(centre, HOUR, Observation()).live()
    assert centre.statuses == []
    assert "observed_revision" not in centre.beats[-1].body


async def test_an_edge_goes_where_its_secret_points(centre: ScriptedCentre) -> None:
    with scripted_centre(lambda _request: Reply(401)) as old:
        life = AgentLife(old, HOUR)
        assert life.attached
        life.attached = replace(life.attached, url=centre.url, generation=2)
        logged = await life.live()
        assert len(old.requests) == 1
    assert states(logged) == ["refused", "attachment_changed", "active"]
    assert len(centre.statuses) == 1


async def test_a_secret_that_is_gone_is_no_order(centre: ScriptedCentre) -> None:
    centre.reply = lambda request: well(request) if len(centre.requests) > 3 else Reply(503)
    life = AgentLife(centre, HOUR)
    life.attached = None
    assert states(await life.live()) == ["away", "active"]


async def test_an_edge_that_became_another_cluster_begins_anew(centre: ScriptedCentre) -> None:
    centre.reply = lambda _request: Reply(401)
    life = AgentLife(centre, HOUR)
    assert life.attached
    life.attached = replace(life.attached, cluster="other")
    assert (await life.end_by(Stalled)).code == ATTACHED_ANEW


async def test_an_agent_that_is_told_to_end_ends_at_once(centre: ScriptedCentre) -> None:
    life = AgentLife(centre, 10**9)
    running = asyncio.ensure_future(life._reporter.run())
    while not centre.requests:
        await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_what_is_to_be_resealed_is_handed_on_and_only_by_a_centre_that_takes_it(centre: ScriptedCentre) -> None:
    wanted: dict[str, Any] = {"reseal": ["default/db", "../../etc", 5, "default/UPPER"]}

    def reply(request: ReceivedRequest) -> Reply:
        return answer(request, **wanted) if request.path == "/v1/agent/heartbeat" else taken()

    centre.reply = reply
    life = AgentLife(centre, 200)
    await life.live()
    assert set(life.resealed) == {("default/db",)}
    wanted = {"reseal": ["default/db"], "suspended": True}
    suspended = AgentLife(centre, 200)
    await suspended.live()
    assert suspended.resealed == []


async def test_a_fresh_line_that_replaces_the_agents_own_secret_is_taken_up_without_a_refusal(
    centre: ScriptedCentre,
) -> None:
    life = AgentLife(centre, HOUR)
    gone = replace(WHOLE, missing=(OWN_SECRET,))

    def each_sleep() -> None:
        if len(centre.beats) == 5:
            life.see(gone)
        if len(centre.beats) == 10 and life.watch.seen == gone:
            assert life.attached
            life.attached = replace(life.attached, password="ewa_fresh", generation=2)
            life.see(WHOLE)

    life.each_sleep = each_sleep
    logged = await life.live()
    assert states(logged) == ["active", "attachment_changed", "active"]
    assert [status.body.get("missing") for status in centre.statuses][:2] == [None, [OWN_SECRET]]
    used = [request.headers["Authorization"] for request in centre.beats]
    assert used[0] != used[-1]


async def test_an_agent_that_may_not_see_the_nodes_reports_all_the_same(centre: ScriptedCentre) -> None:
    blind = replace(WHOLE, hosts=None, unknown=(Unknown("nodes", "list on nodes"),))
    await AgentLife(centre, HOUR, seen=blind).live()
    [status] = centre.statuses
    assert "hosts" not in status.body and status.body["unknown"] == [{"what": "nodes", "right": "list on nodes"}]


async def test_an_applied_revision_that_cannot_be_known_is_in_no_heartbeat(centre: ScriptedCentre) -> None:
    blind = replace(WHOLE, unknown=(Unknown("kustomizations", "list on kustomizations in edgewright"),))
    await AgentLife(centre, HOUR, seen=blind).live()
    assert all("observed_revision" not in request.body for request in [*centre.beats, *centre.statuses])
