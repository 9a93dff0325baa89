"""A sign of life from every activity, so that the death of a worker is noticed within seconds."""

import asyncio
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

INTERVAL = 1.0
"""Seconds between two signs; a quarter of the time-out in workflows/policies.py."""


class HeartbeatInterceptor(Interceptor):
    """Beats while an activity runs. It is also how an activity hears that it was cancelled."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the SDK's name
        return _HeartbeatInbound(next)


class _HeartbeatInbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the SDK's name
        beating = asyncio.create_task(_beat())
        try:
            return await self.next.execute_activity(input)
        finally:
            beating.cancel()


async def _beat() -> None:
    while True:
        await asyncio.sleep(INTERVAL)
        activity.heartbeat()
