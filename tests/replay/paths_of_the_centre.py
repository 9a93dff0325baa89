"""What runs for the whole installation: the sweep, and the delivery of notifications."""

import asyncio
from uuid import uuid4

from centre import eventually
from walk import Faulty, Walk, away, path, through_several_runs
from webhook_receiver import Receiver, set_webhook, takes

from edgewright.messages import names
from edgewright.messages.sweep import SweepResult

# --- the sweep ---------------------------------------------------------------------------------------------------


async def sweep(walk: Walk) -> str:
    """One round; the ID of its workflow."""
    workflow = f"sweep-{uuid4()}"
    await walk.centre.client.execute_workflow(
        names.SWEEP_TYPE, id=workflow, task_queue=names.CLUSTERS_QUEUE, result_type=SweepResult
    )
    return workflow


@path
async def sweep_round(walk: Walk) -> str:
    async with walk.working():
        return await sweep(walk)


# --- notifications -----------------------------------------------------------------------------------------------


async def sent(walk: Walk, receiver: Receiver) -> None:
    """An edge joins, and the sweep finds that somebody is to be told."""
    await set_webhook(walk.centre.ports.webhooks, walk.centre.ports.signing, receiver.url)
    cluster = await walk.create()
    await walk.centre.ports.edge_reports.write_status(
        cluster, {"hosts": []}, certificate=None, certificate_problem=None, generation=None, actor="token:test"
    )
    await sweep(walk)


async def over(walk: Walk) -> bool:
    described = await walk.centre.client.get_workflow_handle(names.NOTIFICATIONS_ID).describe()
    return described.status is not None and described.status.name == "COMPLETED"


@path
async def notification(walk: Walk) -> str:
    with Receiver().serving() as receiver:
        async with walk.working():
            await sent(walk, receiver)
            await eventually(lambda: over(walk))
    return names.NOTIFICATIONS_ID


@path
async def notification_to_a_receiver_that_comes_back(walk: Walk) -> str:
    with Receiver(answering=lambda _request: 503).serving() as receiver:
        async with walk.working():
            await sent(walk, receiver)
            await eventually(lambda: asyncio.sleep(0, len(receiver.asked) > 1))
            receiver.answering = takes
            await sweep(walk)
            await eventually(lambda: over(walk))
    return names.NOTIFICATIONS_ID


@path
async def notification_while_the_database_is_away(walk: Walk) -> str:
    notifications = Faulty(walk.centre.ports.notifications, "due")
    with Receiver().serving() as receiver:
        async with walk.working(notifications=notifications):
            notifications.fault = away(retry_after=5)
            await sent(walk, receiver)
            await asyncio.sleep(1.5)
            notifications.fault = None
            await eventually(lambda: over(walk))
    return names.NOTIFICATIONS_ID


@through_several_runs
async def notification_through_several_runs(walk: Walk) -> str:
    handle = walk.centre.client.get_workflow_handle(names.NOTIFICATIONS_ID)
    with Receiver(answering=lambda _request: 503).serving() as receiver:
        async with walk.working():
            await sent(walk, receiver)
            first = (await handle.describe()).run_id
            while (await handle.describe()).run_id == first:
                await handle.signal(names.SIGNAL_RECONCILE)
                await asyncio.sleep(0.2)
            receiver.answering = takes
            await eventually(lambda: over(walk))
    return names.NOTIFICATIONS_ID
