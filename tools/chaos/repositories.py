"""Bare repositories, read with git alone."""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.chaos.golden import SECRETS_FOLDER

LOG = ["log", "--reverse", "--format=%x00%H%x1f%T%x1f%P%x1f%B%x1e", "--raw", "--no-abbrev", "--no-renames", "--root"]
FOLDER = re.compile(r"([0-9a-f-]{36})(-[0-9a-z]+(?:-\d+)?)?\.git")


@dataclass(frozen=True)
class CheckedCommit:
    """One commit. ``changed``: path -> its blob, None if it goes; ``trailers``: key -> values."""

    id: str
    tree: str
    parents: tuple[str, ...]
    subject: str
    trailers: Mapping[str, tuple[str, ...]]
    changed: Mapping[str, str | None]

    @property
    def fence(self) -> tuple[int, int] | None:
        [text] = self.trailers.get("Edgewright-Fence", ("",))[:1]
        generation, slash, change = text.partition("/")
        return (int(generation), int(change)) if slash else None


@dataclass(frozen=True)
class CheckedRepository:
    """A repository in service or in the archive."""

    uuid: str
    archived: bool
    folder: Path

    @cached_property
    def commits(self) -> Sequence[CheckedCommit]:
        """All of ``main``, oldest first; none before the first commit."""
        done = _git(self.folder, *LOG, "main")
        return [] if done.returncode else [_commit(text) for text in done.stdout.split("\0")[1:]]

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Path -> blob at the head."""
        done = _git(self.folder, "ls-tree", "-r", "main")
        lines = [] if done.returncode else done.stdout.splitlines()
        return {path: meta.split()[2] for meta, _, path in (line.partition("\t") for line in lines)}

    @cached_property
    def blobs(self) -> Mapping[str, str]:
        """Text of every file at the head, and of every sealed Secret that ever was."""
        ever = {blob for commit in self.commits for path, blob in commit.changed.items() if is_secret(path) and blob}
        return _read_blobs(self.folder, ever | set(self.files.values()))

    @cached_property
    def damage(self) -> str:
        """What fsck says; empty if it is whole."""
        done = _git(self.folder, "fsck", "--full", "--strict", "--no-dangling", "--no-progress")
        return (done.stdout + done.stderr).strip() if done.returncode else ""


def is_secret(path: str) -> bool:
    return path.startswith(SECRETS_FOLDER) and path.endswith(".yaml")


def read_repositories(root: Path) -> list[CheckedRepository]:
    """Those of clusters and the shared ones, in service and archived."""
    found = []
    for folder in sorted([*root.glob("*.git"), *root.glob("archive/*.git")]):
        match = FOLDER.fullmatch(folder.name)
        if match is not None:
            found.append(CheckedRepository(match[1], folder.parent.name == "archive", folder))
    return found


def _commit(text: str) -> CheckedCommit:
    head, _, raw = text.partition("\x1e")
    name, tree, parents, message = head.split("\x1f", 3)
    trailers: dict[str, tuple[str, ...]] = {}
    for key, value in re.findall(r"^(Edgewright-[A-Za-z-]+): (.*)$", message, re.MULTILINE):
        trailers[key] = (*trailers.get(key, ()), value)
    changed: dict[str, str | None] = {}
    for line in raw.splitlines():
        if line.startswith(":"):
            meta, path = line.split("\t")
            blob, kind = meta.split()[3:5]
            changed[path] = None if kind == "D" else blob
    return CheckedCommit(name, tree, tuple(parents.split()), message.split("\n", 1)[0], trailers, changed)


def _read_blobs(folder: Path, names: Iterable[str]) -> dict[str, str]:
    wanted = sorted(names)
    done = subprocess.run(
        ["git", "-C", str(folder), "cat-file", "--batch"],
        input="".join(f"{name}\n" for name in wanted).encode(),
        capture_output=True,
        env=_surroundings(),
        check=False,
    )
    blobs, left = {}, done.stdout
    for name in wanted:
        header, _, left = left.partition(b"\n")
        if header.endswith(b"missing"):
            continue
        size = int(header.split()[2])
        blobs[name], left = left[:size].decode(), left[size + 1 :]
    return blobs


def _git(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        env=_surroundings(),
        check=False,
    )


def _surroundings() -> dict[str, str]:
    return {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
