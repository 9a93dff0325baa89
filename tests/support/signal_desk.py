"""Sends signals of the table of mistakes as people do: with Temporal's own command line, to a cluster that lives."""

import asyncio
import shlex
import subprocess
from pathlib import Path
from uuid import UUID

from centre import WorkflowCentre, eventually, open_centre, working
from cluster_states import is_told
from mistake_table import Mistake, MistakeAnswer, filled
from temporal_server import temporal_binary

from edgewright.messages.names import workflow_id
from edgewright.ports.audit import Event

AFTER_IT = "the_signal_after_it"
"""Name of a signal that is told of, so that whatever the one before it leads to is told by then, too."""


async def play_signal(folder: Path, temporal: str, mistake: Mistake) -> MistakeAnswer:
    """How the command ends, and what the timeline says of it."""
    async with open_centre(folder / "centre", temporal) as centre, working(centre):
        cluster = await centre.create("press-shop")
        await eventually(lambda: is_told(centre, cluster))
        before = {event.id for event in await centre.audit.timeline(cluster)}
        [line] = mistake.given
        status = await asyncio.to_thread(_type, filled(line, {"cluster": workflow_id(cluster)}), temporal)
        await centre.handle(cluster).signal(AFTER_IT)
        told = [event for event in await _told_until_then(centre, cluster) if event.id not in before]
        return MistakeAnswer(status, told[0].kind if told else "-", tuple(event.message for event in told))


def _type(line: str, temporal: str) -> int:
    program, *words = shlex.split(line)
    assert program == "temporal"
    command = [str(temporal_binary()), *words, "--address", temporal]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False).returncode


async def _told_until_then(centre: WorkflowCentre, cluster: UUID) -> list[Event]:
    """All events but that of the last signal, once that is there."""
    events: list[Event] = []

    async def told() -> bool:
        events[:] = await centre.audit.timeline(cluster)
        return any(AFTER_IT in event.message for event in events)

    await eventually(told)
    return [event for event in events if AFTER_IT not in event.message]
