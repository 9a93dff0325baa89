"""A disk that is really full: what is said then, and that everything goes on once there is room again."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from desk import CHECKOUT, Desk
from embedded import PROGRAM, EmbeddedEdgewright
from supervised import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

MEBIBYTES = 64
MOUNTED = 'mount -t tmpfs -o size="$1",mode=700 small "$2" && shift 2 && exec "$@"'


@dataclass
class OnSmallDisk(EmbeddedEdgewright):
    """An `edgewright up` whose home is a small file system of its own, in a mount namespace of its own."""

    def begin(self) -> None:
        here = self.home
        here.mkdir()
        own_namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        may = subprocess.run([*own_namespace, "true"], capture_output=True, text=True, check=False)
        assert may.returncode == 0, f"this user may not make a mount namespace here: {may.stderr}"
        mounted = ["sh", "-c", MOUNTED, "sh", f"{MEBIBYTES}m", str(here)]
        with (here.parent / f"{here.name}.said").open("w") as said:
            self.running = subprocess.Popen(
                [*own_namespace, *mounted, *PROGRAM, "up"],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        # The same folder, as it is from outside.
        self.home = Path(f"/proc/{self.running.pid}/root{here}")

    def fill(self) -> None:
        """Leaves no block free."""
        with (self.home / "filler").open("wb", buffering=0) as filler:
            for size in (1024 * 1024, 4096):
                try:
                    while filler.write(b"\xff" * size) == size:
                        pass
                except OSError as error:
                    assert error.strerror == "No space left on device"
        assert shutil.disk_usage(self.home).free < 4096

    def free(self) -> None:
        (self.home / "filler").unlink()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[OnSmallDisk]:
    assert shutil.which("unshare"), "this needs unshare, of util-linux"
    small = OnSmallDisk(tmp_path / "home", {"EDGEWRIGHT_SWEEP_SECONDS": "2"})
    yield small
    small.clear_up()


def test_full_disk_is_told_and_everything_goes_on_when_there_is_room(
    small: OnSmallDisk, kubeseal: Path, tmp_path: Path
) -> None:
    small.up()
    (tmp_path / "desk").mkdir()
    desk = Desk(small, tmp_path / "desk", kubeseal)
    desk.edgewright("cluster", "create", "before", "--wait")
    uuid, parts, heads = desk.uuid_of("before"), small.children(), desk.heads()
    values = desk.folder / "values.yaml"
    values.write_text(f"global: {{note: {'long' * 25_000}}}\n")
    small.fill()

    full = desk.run(str(CHECKOUT / "bin" / "edgewright"), "cluster", "create", "during", "--values", str(values))
    assert full.code == 5, full
    assert re.search(r"There is no space left for the database .*/edgewright\.db\.", full.err)
    assert "Free space on its disk; everything goes on by itself." in full.err
    assert desk.names() == {"demo", "before"}, "reading goes on, and nothing is half there"
    desk.curl("DELETE", f"/v1/cluster/{uuid}")
    eventually(lambda: "database or disk is full" in (small.home / "logs" / "temporal.log").read_text(), seconds=60)

    small.free()
    assert small.children() == parts, "no part has fallen over"
    desk.edgewright("cluster", "create", "after", "--values", str(values), "--wait")
    assert desk.curl("DELETE", f"/v1/cluster/{uuid}").code in {202, 410}
    eventually(lambda: desk.is_gone(uuid), seconds=90)
    desk.await_sweeps(2)
    assert desk.names() == {"demo", "after"}
    demo = f"{desk.uuid_of('demo')}.git"
    assert desk.heads()[demo] == heads[demo]
