"""Writes down the history of every path of a cluster's life: `make record-histories`.

The files belong to the version of the product that made them. They stay when the workflow changes: a later version
has to replay them, because clusters that began under this one will be running when it is installed. Names of paths as
arguments record only these.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import paths_of_the_centre  # noqa: F401 - registers its paths
import paths_of_the_ending  # noqa: F401 - registers its paths
import paths_of_the_living  # noqa: F401 - registers its paths
import paths_of_the_secrets  # noqa: F401 - registers its paths
from temporal_server import temporal_server
from temporalio.client import WorkflowHandle
from walk import PATHS, SHORT_RUNS, setting_out

from edgewright.messages.names import workflow_id

HISTORIES = Path(__file__).parent / "histories"
SHORT_RUN = ("limit.historyCount.suggestContinueAsNew=90",)
"""Makes the server suggest to continue as new after so many events, and say so in the history."""

SCRUBBED = {"identity": "worker", "stackTrace": "", "buildId": "recorded", "binaryChecksum": "recorded"}
"""What names the machine that the history was made on."""


async def runs(handle: "WorkflowHandle[Any, Any]", client: Any) -> AsyncIterator[dict[str, Any]]:
    """The histories of all runs that led to the present one, oldest first."""
    present = (await handle.fetch_history()).to_json_dict()
    run = present["events"][0]["workflowExecutionStartedEventAttributes"]["firstExecutionRunId"]
    while run:
        history = (await client.get_workflow_handle(handle.id, run_id=run).fetch_history()).to_json_dict()
        yield history
        last = history["events"][-1]
        run = last.get("workflowExecutionContinuedAsNewEventAttributes", {}).get("newExecutionRunId")


def scrubbed(value: Any) -> Any:
    """A history without the traces of the machine that it was made on."""
    if isinstance(value, list):
        return [scrubbed(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "TASK_QUEUE_KIND_STICKY":
        value = {**value, "name": "sticky"}
    return {key: SCRUBBED.get(key, scrubbed(item)) for key, item in value.items()}


def one_event_a_line(history: dict[str, Any]) -> str:
    """JSON in which a person finds an event, and a version control system a difference."""
    events = ",\n".join(json.dumps(event, separators=(",", ":")) for event in history["events"])
    return f'{{"events":[\n{events}\n]}}\n'


async def record(name: str, folder: Path, temporal: str, into: Path) -> None:
    """Walks one path and writes one file for each run."""
    async with setting_out(name, folder, temporal) as walk:
        walked = await PATHS[name](walk)
        workflow = walked if isinstance(walked, str) else workflow_id(walked)
        handle = walk.centre.client.get_workflow_handle(workflow)
        histories = [history async for history in runs(handle, walk.centre.client)]
        for old in into.glob(f"{name}*.json"):
            if old.stem.removeprefix(name).strip(".0123456789") == "":
                old.unlink()
        for number, history in enumerate(histories, start=1):
            file = into / (f"{name}.json" if len(histories) == 1 else f"{name}.{number}.json")
            file.write_text(one_event_a_line(scrubbed(history)))
            sys.stdout.write(f"{file.name}: {len(history['events'])} events, {file.stat().st_size // 1000} kB\n")
        description = await handle.describe()
        if description.status is not None and description.status.name == "RUNNING":
            await handle.terminate()


async def main(wanted: list[str]) -> None:
    into = HISTORIES / version("edgewright")
    into.mkdir(parents=True, exist_ok=True)
    chosen = wanted or list(PATHS)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for short in (False, True):
            names = [name for name in chosen if (name in SHORT_RUNS) is short]
            with temporal_server(folder / "temporal.log", settings=SHORT_RUN if short else ()) as temporal:
                for name in names:
                    await record(name, folder / name, temporal, into)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
