"""Notifications reach a real receiver, whatever happens to it, to the worker and to Temporal meanwhile."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, open_centre, working
from killable_worker import Death, KillableWorker, dying_in_turn, killable_worker
from standardwebhooks import WebhookVerificationError
from temporal_server import temporal_server
from webhook_receiver import Received, Receiver, set_webhook

from edgewright.adapters.webhook.key_file import FILE_NAME
from edgewright.adapters.webhook.sender import open_sender
from edgewright.cli.initialise import ensure_webhook_key
from edgewright.domain import notifications as rules
from edgewright.messages import names
from edgewright.messages.sweep import SweepResult
from edgewright.ports.notifications import Webhook

pytestmark = pytest.mark.timeout(300)  # workers are killed and started again, as in test_kill_points


@pytest.fixture
def temporal(tmp_path: Path) -> Iterator[str]:
    """A server of its own for each test: there is one such workflow on each."""
    with temporal_server(tmp_path / "temporal.log") as address:
        yield address


@pytest.fixture
async def idle_centre(temporal: str, tmp_path: Path) -> AsyncIterator[WorkflowCentre]:
    async with open_centre(tmp_path / "centre", temporal) as centre:
        yield centre


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().serving() as serving:
        yield serving


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries again after a tenth of a second, up to a second."""
    monkeypatch.setattr(rules, "FIRST_BACKOFF", timedelta(seconds=0.1))
    monkeypatch.setattr(rules, "LONGEST_BACKOFF", timedelta(seconds=1))


async def sweep(centre: WorkflowCentre) -> None:
    await centre.client.execute_workflow(
        names.SWEEP_TYPE, id=f"sweep-{uuid4()}", task_queue=names.CLUSTERS_QUEUE, result_type=SweepResult
    )


async def webhook_to(centre: WorkflowCentre, receiver: Receiver) -> str:
    return await set_webhook(centre.ports.webhooks, centre.ports.signing, receiver.url)


async def shown(centre: WorkflowCentre) -> Webhook:
    webhook = await centre.ports.webhooks.get()
    assert webhook is not None
    return webhook


async def add(centre: WorkflowCentre, name: str) -> UUID:
    """A cluster in the database only: no workflow is needed for what is told of it."""
    cluster = uuid4()
    body = {"name": name, "namespace": "edgewright"}
    await centre.wishes.write_configuration(cluster, body, actor="token:test", create_object=True)
    return cluster


async def join(centre: WorkflowCentre, name: str) -> UUID:
    cluster = await add(centre, name)
    await centre.ports.edge_reports.write_status(
        cluster, {"hosts": []}, certificate=None, certificate_problem=None, generation=None, actor="token:test"
    )
    return cluster


async def all_taken(centre: WorkflowCentre, receiver: Receiver, number: int) -> None:
    """Waits until so many were taken, and nothing waits any more."""

    async def taken() -> bool:
        return len({each.id for each in receiver.taken}) >= number and (await shown(centre)).waiting is None

    await eventually(taken, shows=lambda: str((receiver.types(), len(receiver.asked))))


async def asked(receiver: Receiver, number: int) -> None:
    async def reached() -> bool:
        return len(receiver.asked) >= number

    await eventually(reached, shows=lambda: str(len(receiver.asked)))


async def test_what_happens_is_told_signed_and_once(idle_centre: WorkflowCentre, receiver: Receiver) -> None:
    secret = await webhook_to(idle_centre, receiver)
    cluster = await join(idle_centre, "press-shop")
    async with working(idle_centre):
        await sweep(idle_centre)
        await all_taken(idle_centre, receiver, 1)
        await sweep(idle_centre)
    [told] = receiver.asked
    document = told.verified_with(secret)
    [event] = [each for each in await idle_centre.audit.timeline(cluster) if each.kind == "edge.joined"]
    assert (told.id, document["type"]) == (str(event.id), "cluster.joined")
    assert datetime.fromisoformat(document["timestamp"]) == event.at
    assert document["data"]["cluster"] == {"uuid": str(cluster), "name": "press-shop"}
    assert told.headers["content-type"] == "application/json"
    with pytest.raises(WebhookVerificationError):
        Received(told.headers, told.body.replace(b"press", b"other")).verified_with(secret)
    last = (await shown(idle_centre)).last
    assert last is not None
    assert (last.status, last.attempts, last.problem) == (204, 1, "")


async def test_a_receiver_that_is_away_gets_everything_when_it_is_back(idle_centre: WorkflowCentre) -> None:
    receiver = Receiver()
    with receiver.serving():
        secret = await webhook_to(idle_centre, receiver)
    async with working(idle_centre):
        for name in ("one", "two"):
            await join(idle_centre, name)
        await sweep(idle_centre)

        async def was_tried() -> bool:
            last = (await shown(idle_centre)).last
            return last is not None and last.attempts > 1

        await eventually(was_tried)
        last = (await shown(idle_centre)).last
        assert last is not None
        assert (last.status, last.problem) == (None, "The receiver cannot be reached.")
        with receiver.serving():
            await all_taken(idle_centre, receiver, 2)
    assert sorted(each.cluster for each in receiver.taken) == ["one", "two"]
    for told in receiver.taken:
        told.verified_with(secret)  # with the time of this try: the first was long ago


async def test_a_receiver_that_hangs_holds_up_nothing_but_notifications(
    idle_centre: WorkflowCentre, receiver: Receiver
) -> None:
    receiver.answering = receiver.hangs
    await webhook_to(idle_centre, receiver)
    async with open_sender(patience=1.0) as sender, working(idle_centre, sender=sender):
        await join(idle_centre, "hung")
        await sweep(idle_centre)
        await asked(receiver, 1)
        await idle_centre.create("beside")  # commissioned while the receiver hangs
        await sweep(idle_centre)

        async def was_given_up_on() -> bool:
            last = (await shown(idle_centre)).last
            return last is not None and last.problem == "The receiver did not answer within 1 s."

        await eventually(was_given_up_on)


async def test_errors_and_redirects_are_tried_again_under_the_same_id(
    idle_centre: WorkflowCentre, receiver: Receiver
) -> None:
    answers = iter([500, 302, 404, 429])
    receiver.headers["location"] = receiver.url.replace("hook", "elsewhere")
    receiver.answering = lambda _request: next(answers, 204)
    secret = await webhook_to(idle_centre, receiver)
    async with working(idle_centre):
        await join(idle_centre, "press-shop")
        await sweep(idle_centre)
        await all_taken(idle_centre, receiver, 1)
    assert len(receiver.asked) >= 5
    assert len({each.id for each in receiver.asked}) == 1
    for each in receiver.asked:
        each.verified_with(secret)
    last = (await shown(idle_centre)).last
    assert last is not None
    assert (last.attempts > 1, last.status) == (True, 204)


async def test_one_cluster_that_is_refused_holds_up_only_itself_and_keeps_its_order(
    idle_centre: WorkflowCentre, receiver: Receiver
) -> None:
    refusing = True
    receiver.answering = lambda request: 400 if refusing and request.cluster == "poison" else 204
    await webhook_to(idle_centre, receiver)
    poison = await join(idle_centre, "poison")
    await idle_centre.ports.edge_reports.heartbeats([])
    for number in range(40):
        await join(idle_centre, f"sound-{number}")
    async with working(idle_centre):
        await sweep(idle_centre)

        async def others_taken() -> bool:
            waiting = (await shown(idle_centre)).waiting
            return waiting is not None and (waiting.count, waiting.problem) == (1, "The receiver answered 400.")

        await eventually(others_taken, shows=lambda: str(len(receiver.taken)))
        assert {each.cluster for each in receiver.taken} == {f"sound-{number}" for number in range(40)}
        refusing = False
        await all_taken(idle_centre, receiver, 41)
    assert UUID(receiver.taken[-1].document["data"]["cluster"]["uuid"]) == poison


async def test_a_webhook_that_is_removed_is_not_told_any_more(
    idle_centre: WorkflowCentre, receiver: Receiver
) -> None:
    receiver.answering = lambda _request: 503
    await webhook_to(idle_centre, receiver)
    async with working(idle_centre):
        await join(idle_centre, "press-shop")
        await sweep(idle_centre)
        await asked(receiver, 1)
        await idle_centre.ports.webhooks.remove(actor="token:test")
        await ended(idle_centre)
        heard = len(receiver.asked)
        await join(idle_centre, "paint-shop")
        await sweep(idle_centre)
        await ended(idle_centre)
    assert len(receiver.asked) == heard


async def test_the_web_ui_says_for_what_it_waits(
    idle_centre: WorkflowCentre, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "FIRST_BACKOFF", timedelta(minutes=1))
    monkeypatch.setattr(rules, "LONGEST_BACKOFF", timedelta(minutes=1))
    receiver.answering = lambda _request: 503
    await webhook_to(idle_centre, receiver)
    async with working(idle_centre):
        await join(idle_centre, "press-shop")
        await sweep(idle_centre)
        said = ""

        async def rests() -> bool:
            nonlocal said
            handle = idle_centre.client.get_workflow_handle(names.NOTIFICATIONS_ID)
            said = (await handle.query("__temporal_workflow_metadata")).current_details
            rest = re.fullmatch(r"The receiver answered 503\. Next try in (\d+) s\.", said)
            return rest is not None and int(rest[1]) > 10  # the notification's, not the workflow's own

        await eventually(rests, shows=lambda: said)


async def ended(centre: WorkflowCentre) -> None:
    async def is_over() -> bool:
        status = (await centre.client.get_workflow_handle(names.NOTIFICATIONS_ID).describe()).status
        return status is not None and status.name == "COMPLETED"

    await eventually(is_over)


async def test_with_another_key_nothing_is_sent_and_the_webhook_says_why(
    idle_centre: WorkflowCentre, receiver: Receiver, tmp_path: Path
) -> None:
    await webhook_to(idle_centre, receiver)
    key = tmp_path / "centre" / FILE_NAME
    before = key.read_text()
    key.unlink()
    ensure_webhook_key(key)
    async with working(idle_centre):
        await join(idle_centre, "press-shop")
        await sweep(idle_centre)

        async def is_said() -> bool:
            last = (await shown(idle_centre)).last
            return last is not None and "not the one that this webhook was made with" in last.problem

        await eventually(is_said)
        assert receiver.asked == []
        key.write_text(before)
        await all_taken(idle_centre, receiver, 1)


async def test_a_worker_that_dies_after_sending_sends_the_same_again(
    idle_centre: WorkflowCentre, temporal: str, tmp_path: Path, receiver: Receiver
) -> None:
    secret = await webhook_to(idle_centre, receiver)
    await join(idle_centre, "press-shop")
    with killable_worker(tmp_path / "worker.log") as worker:
        receiver.answering = kills(worker)
        await worker.start(tmp_path / "centre", temporal)
        sweeping = asyncio.create_task(sweep(idle_centre))  # its other parts may have to wait for the next worker
        await asked(receiver, 1)
        await worker.died("the delivery")
        await worker.start(tmp_path / "centre", temporal)
        await all_taken(idle_centre, receiver, 1)
        await sweeping
        await worker.kill()
    assert len(receiver.asked) >= 2  # on a machine that is busy a living worker is taken for dead, and sends again
    assert len({each.id for each in receiver.asked}) == 1
    for each in receiver.asked:
        each.verified_with(secret)


async def test_a_worker_may_die_around_all_that_a_notification_needs(
    idle_centre: WorkflowCentre, temporal: str, tmp_path: Path, receiver: Receiver
) -> None:
    await webhook_to(idle_centre, receiver)
    await join(idle_centre, "press-shop")
    deaths = [
        Death(activity, point) for activity in ("sweep_notify", "send_notifications") for point in ("before", "after")
    ]

    async def taken() -> bool:
        await sweep(idle_centre)  # each finds what the one before has left
        return bool(receiver.taken) and (await shown(idle_centre)).waiting is None

    with killable_worker(tmp_path / "worker.log") as worker:
        async with dying_in_turn(worker, tmp_path / "centre", temporal, deaths):
            await eventually(taken)
        await worker.kill()
    assert len({each.id for each in receiver.asked}) == 1


def kills(worker: KillableWorker):  # type: ignore[no-untyped-def] # what a receiver does with a request
    """Kills the worker when it has sent, and before it hears the answer."""
    first = True

    def answer(_request: Received) -> int:
        nonlocal first
        if first:
            first = False
            assert worker._pid is not None
            os.kill(worker._pid, 9)
        return 204

    return answer


async def test_a_workflow_that_was_lost_is_started_again_by_the_sweep(
    idle_centre: WorkflowCentre, receiver: Receiver
) -> None:
    receiver.answering = lambda _request: 503
    await webhook_to(idle_centre, receiver)
    async with working(idle_centre):
        await join(idle_centre, "press-shop")
        await sweep(idle_centre)
        await asked(receiver, 1)
        await idle_centre.client.get_workflow_handle(names.NOTIFICATIONS_ID).terminate("its history is lost")
        receiver.answering = lambda _request: 204
        await sweep(idle_centre)
        await all_taken(idle_centre, receiver, 1)


async def test_many_edges_that_join_at_once_are_told_while_a_cluster_is_commissioned(
    idle_centre: WorkflowCentre, receiver: Receiver
) -> None:
    await webhook_to(idle_centre, receiver)
    for number in range(200):
        await join(idle_centre, f"edge-{number}")
    async with working(idle_centre):
        await asyncio.gather(sweep(idle_centre), idle_centre.create("beside"))
        await all_taken(idle_centre, receiver, 200)
    assert Counter(each.type for each in {each.id: each for each in receiver.asked}.values()) == {
        "cluster.joined": 200
    }
