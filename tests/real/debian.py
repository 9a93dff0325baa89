"""Programs that the machine has, or else takes from Debian packages: unpacked into the cache, never installed.

It needs no root: apt works on lists of its own in a temporary folder.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock
from workshop import ComponentMissing, components_dir

PACKAGES = {
    "busybox": ("busybox", "bin/busybox"),  # not -static: that one prefers its own programs to those on PATH
    "dash": ("dash", "bin/dash"),
    "bash": ("bash", "bin/bash"),
    "promtool": ("prometheus", "usr/bin/promtool"),
    "tinyproxy": ("tinyproxy-bin", "usr/bin/tinyproxy"),
}
"""Program -> (package, path in it). All need nothing but libc, which every Debian has."""
TREES = {
    "postgresql": "about a minute, 200 MB kept",
    "nginx": "about 30 s, 5 MB kept",
    "wrk": "about 30 s, 2 MB kept",
}
"""Package -> what it costs, with the packages it needs that the machine has not."""
DEADLINE = 300  # seconds


def debian_program(name: str, *, say: Callable[[str], None] = print) -> Path:
    """The path of a program that is one file.

    Raises:
        ComponentMissing: it is not on PATH, and there is no package of it to be had.
    """
    found = shutil.which(name)
    if found:
        return Path(found)
    package, member = PACKAGES[name]
    kept = components_dir() / f"debian-{package}-package" / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(kept.parent.with_suffix(".lock")):
        if not kept.is_file():
            say(f"{name} is not on PATH: taking Debian's {package} (about 30 s, 2 MB kept, of promtool 48).")
            with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
                tree = _unpack(["download", package], Path(folder))
                (tree / member).replace(kept)
    return kept


def debian_tree(package: str, *, say: Callable[[str], None] = print) -> Path:
    """The folder that a package, and all it needs that the machine has not, is unpacked in, as below ``/``.

    Raises:
        ComponentMissing: there is no package of it to be had.
    """
    kept = components_dir() / f"debian-tree-{package}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(kept.with_suffix(".lock")):
        if not kept.is_dir():
            say(f"{package} is not on this machine: taking Debian's packages ({TREES[package]}).")
            with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
                wanted = ["install", "--yes", "--download-only", "--no-install-recommends", package]
                _unpack(wanted, Path(folder)).rename(kept)
    return kept


def library_path(tree: Path) -> str:
    """Where programs of a tree find the libraries that came with it: a value of ``LD_LIBRARY_PATH``."""
    return os.pathsep.join(str(path) for path in sorted(tree.glob("usr/lib/*-linux-gnu*")))


def _unpack(wanted: list[str], folder: Path) -> Path:
    """What apt gets with these arguments, unpacked; the folder is the caller's to remove."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise ComponentMissing(f"{wanted[-1]} cannot be had: this is no Debian. Install the program itself.")
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    apt = ["apt-get", "-q", "-o", f"Dir::State={folder}/state", "-o", f"Dir::Cache={folder}/cache"]
    apt += ["-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=root"]
    apt += ["-o", "Debug::NoLocking=true"]  # of the machine's own installation, which is not touched
    _run([*apt, "update"], folder)
    _run([*apt, *wanted], folder)
    tree = folder / "x"
    for archive in [*folder.glob("*.deb"), *folder.glob("cache/archives/*.deb")]:
        _run(["dpkg-deb", "-x", str(archive), str(tree)], folder)
    if not tree.is_dir():
        raise ComponentMissing(f"apt had no archive of {wanted[-1]} to give.")
    return tree


def _run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    if done.returncode != 0:
        raise ComponentMissing(f"could not run {' '.join(command[:1] + command[-2:])}:\n{done.stderr[-2000:]}")
