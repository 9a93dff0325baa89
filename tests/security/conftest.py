"""A cluster that has lived its whole life with marked secrets, and what is left of it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded import EmbeddedEdgewright
from process_watch import ProcessWatch, record_program
from remains import Remains
from whole_life import WholeLife


@pytest.fixture
def remains(tmp_path: Path) -> Iterator[Remains]:
    surroundings = tmp_path / "surroundings"
    (surroundings / "tmp").mkdir(parents=True)
    git_calls = record_program("git", tmp_path / "recorders")
    variables = {
        "EDGEWRIGHT_DEMO": "0",
        "EDGEWRIGHT_LOG_LEVEL": "DEBUG",
        "EDGEWRIGHT_SWEEP_SECONDS": "2",
        "HOME": str(surroundings),
        "TMPDIR": str(surroundings / "tmp"),
        "PATH": f"{tmp_path / 'recorders'}:{_search_path()}",
    }
    centre = EmbeddedEdgewright(tmp_path / "home", variables)
    life = WholeLife(centre, tmp_path / "people")
    life.folder.mkdir()
    with ProcessWatch() as watch:
        try:
            centre.up()
            life.live()
            names = ("endpoints.json", "processes.json", "ports.json")
            while_running = [(f"{name} of the run", (centre.home / name).read_bytes()) for name in names]
            assert centre.interrupt() == 0, centre.said()
        finally:
            centre.clear_up()
        shutil.copy(tmp_path / "home.said", centre.home / "said")
        calls = [("calls of git", git_calls.read_bytes())]
        calls += [(f"calls of kubectl on edge {at}", edge.calls) for at, edge in enumerate(life.edges)]
        yield Remains(centre.home, surroundings, life.markers, life.heard, watch, calls, while_running)


def _search_path() -> str:
    git = shutil.which("git")
    assert git, "this machine has no git"
    return f"{Path(git).parent}:/usr/bin:/bin"
