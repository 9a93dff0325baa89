"""A Temporal that takes connections and never answers keeps nobody who looks after the sweep."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.client import Client

from edgewright.adapters.temporal.fleet import TemporalFleet
from edgewright.ports.fleet import FleetUnavailable

PATIENCE_SECONDS = 60


async def take_and_say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(65536):
        pass
    writer.close()


async def test_who_restores_the_sweep_is_told_that_temporal_does_not_answer() -> None:
    async with await asyncio.start_server(take_and_say_nothing, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        fleet = TemporalFleet(await Client.connect(f"127.0.0.1:{port}", lazy=True))
        for attempt in (fleet.restore_sweep(timedelta(hours=1)), fleet.sweep_is_paused()):
            with pytest.raises(FleetUnavailable, match="does not answer"):
                await asyncio.wait_for(attempt, PATIENCE_SECONDS)
