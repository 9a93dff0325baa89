"""Layers of an image: compressed archives that are the same to the byte whenever they hold the same files."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from edgewright.adapters.agent_image.contents import FileInImage
from edgewright.errors import Stalled

_COMPRESSION = 6
_COMPILE = (
    "import py_compile, sys\n"
    "for line in sys.stdin.read().splitlines():\n"
    "    source, shown, compiled = line.split('\\0')\n"
    "    py_compile.compile(source, compiled, shown, doraise=True,\n"
    "        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that was written.

    Args:
        digest: of the compressed archive, ``sha256:…``; ``diff_id``: of the archive itself.
        size: of the compressed archive, in bytes.
    """

    digest: str
    diff_id: str
    size: int


def write_layer(files: Iterable[FileInImage], target: Path, *, work: Path) -> Layer:
    """Writes an archive of the files, with the folders that they are in, each module with its compiled form.

    Args:
        work: an empty folder for what is in between.

    Raises:
        Stalled: code ``image_unbuildable``: a module cannot be compiled.
    """
    there = [*files]
    compiled = _compiled(there, work)
    with target.open("wb") as stream:
        packed = _Counted(stream)
        with gzip.GzipFile("", "wb", _COMPRESSION, packed, mtime=0) as zipped:
            plain = _Counted(zipped)
            with tarfile.open(mode="w|", fileobj=plain, format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload] # likewise
                _add_all(archive, sorted([*there, *compiled], key=lambda one: one.path))
    return Layer(digest=packed.digest, diff_id=plain.digest, size=packed.size)


def _compiled(files: Iterable[FileInImage], work: Path) -> list[FileInImage]:
    """The compiled form of each module, which an image that cannot be written to would otherwise make at each start.

    It is not compared with its source at run time, and made by one process whose order of sets is fixed: so it is the
    same each time.
    """
    results, lines = [], []
    for number, file in enumerate(files):
        if file.path.suffix == ".py" and isinstance(file.source, Path):
            made = work / f"{number}.pyc"
            cached = f"{file.path.stem}.{sys.implementation.cache_tag}.pyc"
            results.append(FileInImage(file.path.parent / "__pycache__" / cached, made))
            lines.append(f"{file.source}\0{file.path}\0{made}")
    done = subprocess.run(
        [sys.executable, "-P", "-s", "-c", _COMPILE],
        input="\n".join(lines),
        env={"PYTHONHASHSEED": "0", "PATH": os.defpath},
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Stalled(f"A module of the agent's image cannot be compiled: {reason}", code="image_unbuildable")
    return results


def _add_all(archive: tarfile.TarFile, files: Iterable[FileInImage]) -> None:
    folders: set[PurePosixPath] = set()
    for file in files:
        for parent in reversed(file.path.parents):
            if parent not in folders and parent != PurePosixPath("/"):
                folders.add(parent)
                archive.addfile(_entry(parent, tarfile.DIRTYPE, mode=0o755))
        if isinstance(file.source, PurePosixPath) and not isinstance(file.source, Path):
            link = _entry(file.path, tarfile.SYMTYPE, mode=0o777)
            link.linkname = str(file.source)
            archive.addfile(link)
            continue
        content = file.source if isinstance(file.source, bytes) else file.source.read_bytes()
        entry = _entry(file.path, tarfile.REGTYPE, mode=0o755 if file.executable else 0o644)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))


def _entry(path: PurePosixPath, kind: bytes, *, mode: int) -> tarfile.TarInfo:
    """An entry of the archive: nobody's in particular, of no time."""
    entry = tarfile.TarInfo(str(path).lstrip("/"))
    entry.type, entry.mode = kind, mode
    return entry


class _Counted:
    """Passes on what is written, and keeps its digest and size."""

    def __init__(self, target: IO[bytes] | gzip.GzipFile) -> None:
        self._target = target
        self._sha256 = hashlib.sha256()
        self.size = 0

    def write(self, part: bytes) -> int:
        self._sha256.update(part)
        self.size += len(part)
        self._target.write(part)
        return len(part)

    def flush(self) -> None:
        self._target.flush()

    @property
    def digest(self) -> str:
        return f"sha256:{self._sha256.hexdigest()}"


def sha256_of(content: bytes) -> str:
    """The digest of some bytes, as image manifests write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
