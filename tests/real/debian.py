"""Programs that the machine has, or else takes from a Debian package: unpacked into the cache, never installed.

It needs no root: apt works on lists of its own in a temporary folder.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from components import ComponentMissing, components_dir
from filelock import FileLock

PACKAGES = {"busybox": ("busybox-static", "bin/busybox"), "dash": ("dash", "bin/dash"), "bash": ("bash", "bin/bash")}
"""Program -> (package, path in it). All need nothing but libc, which every Debian has."""
DEADLINE = 300  # seconds


def debian_program(name: str, *, say: Callable[[str], None] = print) -> Path:
    """The path of a program.

    Raises:
        ComponentMissing: it is not on PATH, and there is no package of it to be had.
    """
    found = shutil.which(name)
    if found:
        return Path(found)
    package, member = PACKAGES[name]
    kept = components_dir() / f"debian-{name}" / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(kept.parent.with_suffix(".lock")):
        if not kept.is_file():
            say(f"{name} is not on PATH: taking Debian's {package} (about 30 s, 2 MB kept).")
            with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
                _unpack(package, Path(folder))
                (Path(folder) / "x" / member).replace(kept)
    return kept


def _unpack(package: str, folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise ComponentMissing(f"{package} cannot be had: this is no Debian. Install the program itself.")
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    apt = ["apt-get", "-q", "-o", f"Dir::State={folder}/state", "-o", f"Dir::Cache={folder}/cache"]
    apt += ["-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=root"]
    _run([*apt, "update"], folder)
    _run([*apt, "download", package], folder)
    archive = next(folder.glob("*.deb"))
    _run(["dpkg-deb", "-x", str(archive), str(folder / "x")], folder)


def _run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    if done.returncode != 0:
        raise ComponentMissing(f"could not run {' '.join(command[:1] + command[-2:])}:\n{done.stderr[-2000:]}")
