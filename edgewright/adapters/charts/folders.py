"""The folder of a chart, in a commit or in an archive such as ``helm package`` makes; read within bounds."""

import gzip
import io
import posixpath
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitId, GitServer

LARGEST_ARCHIVE, LARGEST_UNPACKED = 1_000_000, 8 * 1024 * 1024
"""Bytes."""
MOST_FILES = 2_000
"""In one folder."""


class Unusable(Exception):
    """A file of a chart that nothing can be checked with; the text completes "the chart's "."""


class Folder(Protocol):
    def read(self, path: str) -> bytes | None:
        """None: there is no such file."""

    def names(self, folder: str) -> Sequence[str]:
        """What stands in a folder below this one, sorted; nothing if there is none. Of ``MOST_FILES`` at most."""

    def below(self, folder: str) -> "Folder | None":
        """Another folder, by a path relative to this one; None: it would be outside of what is read here."""


@dataclass(frozen=True)
class CommittedFolder:
    """A folder of ``shared/helm-charts``."""

    git: GitServer
    at: CommitId
    path: str

    def read(self, path: str) -> bytes | None:
        return self.git.read(REPOSITORY_HELM_CHARTS, f"{self.path}/{path}", at=self.at)

    def names(self, folder: str) -> Sequence[str]:
        prefix = f"{self.path}/{folder}/"
        found = self.git.list(REPOSITORY_HELM_CHARTS, prefix, at=self.at)[:MOST_FILES]
        return sorted({path.removeprefix(prefix).partition("/")[0] for path in found})

    def below(self, folder: str) -> "CommittedFolder | None":
        path = posixpath.normpath(f"{self.path}/{folder}")
        return None if path.split("/")[0] in ("", ".", "..") else CommittedFolder(self.git, self.at, path)


@dataclass(frozen=True)
class ArchivedFolder:
    """A folder of an archive."""

    files: Mapping[str, bytes]
    path: str = ""

    def read(self, path: str) -> bytes | None:
        return self.files.get(f"{self.path}{path}")

    def names(self, folder: str) -> Sequence[str]:
        prefix = f"{self.path}{folder}/"
        return sorted({path.removeprefix(prefix).partition("/")[0] for path in self.files if path.startswith(prefix)})

    def below(self, folder: str) -> "ArchivedFolder | None":
        return None if ".." in folder.split("/") else ArchivedFolder(self.files, f"{self.path}{folder}/")


def unpacked(archive: bytes, file: str) -> ArchivedFolder:
    """The chart in an archive; in memory, and nothing but regular files.

    Raises:
        Unusable: it is none, or too large.
    """
    if len(archive) > LARGEST_ARCHIVE:
        raise Unusable(f"{file} has more than {LARGEST_ARCHIVE} bytes")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(archive)) as opened:
            content = opened.read(LARGEST_UNPACKED + 1)
        if len(content) > LARGEST_UNPACKED:
            raise Unusable(f"{file} has more than {LARGEST_UNPACKED} bytes unpacked")
        return ArchivedFolder(_files(content, file))
    except (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, OverflowError):
        raise Unusable(f"{file} is not a packed chart") from None


def _files(content: bytes, file: str) -> dict[str, bytes]:
    """Without the folder that everything in such an archive stands in."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as opened:
        for member in opened:
            if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                continue
            if len(found) == MOST_FILES:
                raise Unusable(f"{file} has more than {MOST_FILES} files")
            if member.issparse():  # its holes take no room in the archive, and as much memory as it says
                raise Unusable(f"{file} has a file with holes")
            body = opened.extractfile(member)
            path = posixpath.normpath(member.name).partition("/")[2]
            found[path] = body.read() if body is not None else b""
    return found
