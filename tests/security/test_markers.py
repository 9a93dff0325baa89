"""No secret is anywhere but where it belongs, and the search for them finds what it looks for."""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from embedded import EmbeddedEdgewright
from markers import (
    DATABASES,
    MarkerSearch,
    Place,
    cells_of,
    disguised,
    files_below,
    histories_at,
    marked_text,
    objects_of,
    stores,
)
from planting import (
    plant_in_files,
    plant_in_history,
    plant_in_processes,
    plant_in_repository,
    planted_answers,
    planted_in_database,
)
from process_watch import ProcessWatch
from remains import Remains
from temporal_server import temporal_server
from whole_life import WholeLife

REPEATS = "import sys; sys.stdout.write('said'); sys.stderr.buffer.write(sys.stdin.buffer.read())"


@pytest.mark.timeout(400)
def test_secrets_of_a_whole_life_are_nowhere_but_in_the_token_file(remains: Remains, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(remains.home, copy)
    planted = marked_text("planted")
    written = disguised(planted.value)
    plants = Plants(MarkerSearch([planted]), written)
    plants.in_stores(copy)
    plants.in_outputs(tmp_path)

    search = MarkerSearch(remains.markers)
    token_file = remains.home / "admin-token"
    # On a second copy: the server writes, and what it writes is none of the life.
    shutil.copy(remains.home / "temporal.db", tmp_path / "histories.db")
    with temporal_server(tmp_path / "histories.log", db=tmp_path / "histories.db") as address:
        histories = histories_at(address)
        plants.in_histories(address)
    assert [place for place, _ in histories if place.startswith("workflow cluster-")], "there are histories"

    everything = [
        *histories,
        *stores(remains.home, without=[token_file]),
        *files_below(remains.surroundings),
        *remains.calls,
        *remains.while_running,
        *remains.watch.places(),
        *remains.heard,
    ]
    assert [str(finding) for finding in search.through(everything)] == []
    of_token = search.through([("admin-token", token_file.read_bytes())])
    assert {finding.marker for finding in of_token} == {"the admin token", "the admin token, its bytes"}


class Plants:
    """Shows that a search finds a marker, in each place and in each way that it may be written."""

    def __init__(self, search: MarkerSearch, written: dict[str, bytes]) -> None:
        self._search = search
        self._written = written

    def in_stores(self, copy: Path) -> None:
        """In files, databases and repositories of a copied home."""
        self._are_found(plant_in_files(copy, self._written), files_below(copy))
        for name in DATABASES:
            with planted_in_database(copy / name, self._written):
                self._are_found([f"{name}-wal"], files_below(copy))
                self._are_found([f"{name}, table planted"], cells_of(copy / name))
            self._are_found([name, f"{name}, table planted"], stores(copy))
        repositories = copy / "repositories"
        for repository in sorted(repositories.rglob("*.git")):
            for packed in (False, True):
                plant_in_repository(repository, self._written, packed=packed)
                self._are_found([f"{repository.relative_to(repositories)}, objects"], objects_of(repositories))

    def in_outputs(self, folder: Path) -> None:
        """In arguments, environments, answers and what commands print."""
        with ProcessWatch() as watch:
            plant_in_processes(watch, self._written)
        program = Path(sys.executable).name
        self._are_found([f"arguments of {program}", f"environment of {program}"], watch.places())
        (folder / "planted").mkdir()
        (folder / "planted" / "admin-token").write_text("nobody's\n")
        centre = EmbeddedEdgewright(folder / "planted")
        life = WholeLife(centre, folder, program=[sys.executable, "-c", REPEATS], operator="nobody's")
        with planted_answers(self._written) as url:
            (centre.home / "endpoints.json").write_text(f'{{"gateway": "{url}"}}')
            life.ask("GET", "/planted")
        life.type("planted", stdin=b"\n".join(self._written.values()))
        self._are_found(["answer to GET /planted", "output of planted"], life.heard)

    def in_histories(self, address: str) -> None:
        """In the payloads of a workflow."""
        workflow = plant_in_history(address, self._written)
        self._are_found([f"workflow {workflow}"], histories_at(address))

    def _are_found(self, places: Iterable[str], looked_through: Iterable[Place]) -> None:
        found = {(each.place, each.form) for each in self._search.through(looked_through)}
        wanted = {(place, form) for place in places for form in self._written}
        assert wanted - found == set()
