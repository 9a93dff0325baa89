"""What a creation costs: its repository beside one of loose objects, and all of it beside another version's.

Both sides are measured in turns, in one run, because the speed of a machine changes within an hour.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple
from uuid import uuid4

import httpx

from bench import measures
from bench.lines import TableLine, ms, seconds
from bench.running_centre import running_centre
from edgewright.adapters.git.bare import BareGitServer
from edgewright.ports.git_server import CommitMessage

TURNS = 3
ALONE = 20
AT_ONCE = 100
REPOSITORIES = 60
MESSAGE = CommitMessage("Commission", "bench")


class Side(NamedTuple):
    """The best of some turns: seconds alone (p50) and of a crowd, and processor seconds of one of the crowd."""

    alone: float
    crowd: float
    worked: float


def creation_lines(beside: Path | None) -> Iterator[TableLine]:
    """``beside``: the files of another version; None: only repositories are compared."""
    yield from _repository_lines()
    if beside is not None:
        yield from _beside(beside)


# --- repositories --------------------------------------------------------------------------------------------------


def _repository_lines() -> Iterator[TableLine]:
    """As many files as a cluster has, of the same sizes; ``before``: a second commit, whose objects are loose."""
    files = _files()
    with tempfile.TemporaryDirectory(prefix="edgewright-bench-git-") as folder:
        server = BareGitServer(Path(folder), patience=60.0)
        for _ in range(5):
            _written(server, files, loose=False)
        turns = [
            (_written(server, files, loose=False), _written(server, files, loose=True)) for _ in range(REPOSITORIES)
        ]
    packed, loose = zip(*turns, strict=True)
    for what, place in (("of the clock, p50", 0), ("of a core, p50", 1)):
        here, there = (median(each[place] for each in side) for side in (packed, loose))
        figure = f"{here * 1000:.1f} ms; ratio {there / here:.1f}"
        yield TableLine(f"first commit as one pack, {what}", figure, f"loose: {there * 1000:.1f} ms", "-")


def _files() -> Mapping[str, bytes]:
    names = [f"edo/{folder}/{number}.yaml" for folder in ("cluster", "flux", "helm") for number in range(3)]
    return {name: (f"kind: {name}\n" * 40).encode() for name in [*names, "by-hand/README.md"]}


def _written(server: BareGitServer, files: Mapping[str, bytes], *, loose: bool) -> tuple[float, float]:
    """Seconds of the clock, and of this process's processor time."""
    name, head = uuid4(), None
    server.create_repository(name)
    if loose:
        head = server.commit(name, {"first": b""}, MESSAGE, expected_head=None)
    began, worked = time.perf_counter(), time.process_time()
    server.commit(name, dict(files), MESSAGE, expected_head=head)
    return time.perf_counter() - began, time.process_time() - worked


# --- a whole creation ----------------------------------------------------------------------------------------------


def _beside(other: Path) -> Iterator[TableLine]:
    turns = [(_side(Path.cwd()), _side(other)) for _ in range(TURNS)]
    here, there = (Side(*map(min, zip(*side, strict=True))) for side in zip(*turns, strict=True))
    for what, ours, theirs, shown in (
        ("create -> `ready: true` seen, alone, p50", here.alone, there.alone, ms),
        (f"{AT_ONCE} at once, all ready", here.crowd, there.crowd, seconds),
        (f"processor time of one of {AT_ONCE}", here.worked, there.worked, ms),
    ):
        yield TableLine(what, f"{shown(ours)}; ratio {theirs / ours:.2f}", f"{shown(theirs)} ({other.name})", "-")


def _side(code: Path) -> Side:
    with running_centre(code) as centre:

        async def measured() -> Side:
            async with httpx.AsyncClient(
                base_url=centre.url, headers=centre.headers, timeout=300, trust_env=False
            ) as client:
                await measures.created_alone(client, 3)
                alone = measures.p50(await measures.created_alone(client, ALONE))
                before = sum(centre.processor_seconds().values())
                crowd = await measures.created_at_once(client, AT_ONCE)
                return Side(alone, crowd, (sum(centre.processor_seconds().values()) - before) / AT_ONCE)

        return asyncio.run(measured())
