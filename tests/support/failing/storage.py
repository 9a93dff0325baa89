"""An `edgewright up` whose repositories and database lie on small file systems of their own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from embedded import EmbeddedEdgewright
from supervised import eventually

from failing import slow_disk

GIT, DATABASE = "repositories", "database"
SIZES = {GIT: 32, DATABASE: 32}
"""Mebibytes."""
MOUNTS = """
mount --make-rprivate / || exit
for each in "$@"; do mount -t tmpfs -o size="${each%%:*}m",mode=700 small "${each#*:}" || exit; done
echo mounted
exec sleep 100000
"""

LOCKS = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
other.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""

EMPTIES = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
while other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
    pass
"""
"""A journal of some megabytes that has been copied into the database is written from its beginning again."""


@dataclass
class FaultyStorage(EmbeddedEdgewright):
    """In a mount namespace that outlives the centre, so that its stores can be read when it is stopped."""

    holder: "subprocess.Popen[str] | None" = None
    inside: Path = field(default=Path())
    """The home, as the centre itself sees it."""

    @property
    def within(self) -> list[str]:
        assert self.holder is not None
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", str(self.holder.pid), "--mount", *user]

    @property
    def switches(self) -> Path:
        """The folder that ``slow_disk`` looks into."""
        return self.inside.parent / "slow-disk"

    def mount(self) -> None:
        """Makes the namespace and the small file systems. Needs root, or the right to make user namespaces."""
        self.inside = self.home
        for folder in (*(self.home / name for name in SIZES), self.switches, self.inside.parent / "startup"):
            folder.mkdir(parents=True)
        (self.home / "edgewright.db").symlink_to(Path(DATABASE) / "edgewright.db")
        startup = f"import runpy\nrunpy.run_path({slow_disk.__file__!r}, run_name='__main__')\n"
        (self.inside.parent / "startup" / "sitecustomize.py").write_text(startup)
        self.variables |= {
            "EDGEWRIGHT_HOME": str(self.inside),
            "SLOW_DISK": str(self.switches),
            "PYTHONPATH": str(self.inside.parent / "startup"),
        }
        volumes = [f"{size}:{self.home / name}" for name, size in SIZES.items()]
        own = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        self.holder = subprocess.Popen(
            [*own, "sh", "-c", MOUNTS, "sh", *volumes], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.holder.stdout and self.holder.stdout.readline() == "mounted\n", "no mount namespace of its own"
        self.home = Path(f"/proc/{self.holder.pid}/root{self.inside}")

    def clear_up(self) -> None:
        super().clear_up()
        if self.holder is not None:
            self.holder.kill()
            self.holder.wait()

    @contextmanager
    def read_only(self, volume: str) -> Iterator[None]:
        """Nothing on a volume can be written."""
        self._remount(volume, "ro")
        try:
            yield
        finally:
            self._remount(volume, "rw")

    @contextmanager
    def not_mounted(self, volume: str) -> Iterator[None]:
        """In the place of a volume there is an empty folder; who has a file of it open keeps that."""
        place = str(self.inside / volume)
        empty = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "empty", place]
        subprocess.run([*self.within, *empty], check=True, timeout=30)
        try:
            yield
        finally:
            assert not list((self.home / volume).glob("*.git")), "a repository was made that is gone with the mount"
            subprocess.run([*self.within, "umount", "--lazy", place], check=True, timeout=30)

    @contextmanager
    def full(self, volume: str) -> Iterator[None]:
        """No block of a volume is free, and the database's journal has no room left."""
        if volume == DATABASE:
            subprocess.run(
                [*self.within, sys.executable, "-c", EMPTIES, str(self.inside / DATABASE / "edgewright.db")],
                check=True,
                timeout=120,
            )
        filler = self.home / volume / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1024 * 1024, 4096):
                try:
                    while file.write(b"\xff" * size) == size:
                        pass
                except OSError as error:
                    assert error.strerror == "No space left on device"
        assert shutil.disk_usage(self.home / volume).free < 4096
        try:
            yield
        finally:
            filler.unlink()

    @contextmanager
    def slow(self, what: str, seconds: float) -> Iterator[None]:
        """Each access takes so long; see ``slow_disk``."""
        (self.switches / f"{what}.waits").unlink(missing_ok=True)
        draft = self.switches / "draft"
        draft.write_text(str(seconds))
        draft.rename(self.switches / what)
        try:
            yield
        finally:
            (self.switches / what).unlink()

    def waits_for(self, what: str) -> bool:
        """Whether somebody stands still there, since it is slow."""
        return (self.switches / f"{what}.waits").exists()

    @contextmanager
    def locked_database(self) -> Iterator[None]:
        """Another process writes to the database, and takes its time."""
        with subprocess.Popen(
            [*self.within, sys.executable, "-c", LOCKS, str(self.inside / DATABASE / "edgewright.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            assert other.stdout and other.stdout.readline() == "locked\n"
            yield
            other.communicate()

    def _remount(self, volume: str, mode: str) -> None:
        command = [*self.within, "mount", "-o", f"remount,{mode}", str(self.inside / volume)]

        def done() -> bool:  # refused while a file there is open for writing
            return subprocess.run(command, capture_output=True, check=False).returncode == 0

        eventually(done, seconds=30)
