"""Whether Temporal's frontend serves: for a moment after its start it takes connections and refuses every call."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from temporalio.client import Client
from temporalio.service import RPCError

_SECONDS = 3


def serves(address: str) -> bool:
    """What the frontend at ``host:port`` says of its own health; False if it says nothing within three seconds."""
    with ThreadPoolExecutor(1) as thread:  # whoever asks may be inside an event loop
        return thread.submit(asyncio.run, _healthy(address)).result()


async def _healthy(address: str) -> bool:
    try:
        client = await Client.connect(address, lazy=True)
        return await asyncio.wait_for(client.service_client.check_health(), _SECONDS)
    except (RPCError, RuntimeError, TimeoutError):
        return False
