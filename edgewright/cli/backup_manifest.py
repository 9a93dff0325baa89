"""What a backup says of itself: `manifest.json`, written last, with the SHA-256 of every other file in it."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, Field, ValidationError, field_validator

from edgewright.adapters.git.bundles import PLACE
from edgewright.adapters.webhook.key_file import FILE_NAME as WEBHOOK_KEY
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.cluster import Frozen

MANIFEST = "manifest.json"
DATABASE = "edgewright.db"
HOME_FILES = ("admin-token", "ports.json", WEBHOOK_KEY, "share.json", "authority.key")
"""Files of the home that are kept: the administrator's token, the ports that were picked at the first start, the key
that webhooks are signed with, the address that edges use, and the authority that they trust."""
_CHUNK = 1 << 20


class BackupPart(Frozen):
    """One file of a backup.

    Args:
        size: bytes.
        sha256: of its content, hexadecimal.
    """

    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class KeptRepository(Frozen):
    """One repository.

    Args:
        place: where it lives below the root of the repositories.
        head: the commit of ``main``; None while it has none, and then there is no bundle.
    """

    place: str
    head: str | None = Field(pattern="^[0-9a-f]{40}$")
    bundle: BackupPart | None

    @field_validator("place")
    @classmethod
    def _only_where_repositories_live(cls, place: str) -> str:
        if PLACE.fullmatch(place) is None:
            raise ValueError("not the place of a repository")
        return place

    @property
    def file(self) -> str:
        """Path of the bundle in the backup."""
        return f"repositories/{self.place.removesuffix('.git')}.bundle"


class Manifest(Frozen):
    """Everything that a backup holds.

    Args:
        format: of the backup; another number is refused.
        edgewright: the version that made it.
        made_at: the moment before which everything that was answered is in it.
        database: the copy of the SQLite database; None: it is kept elsewhere, in a dump of PostgreSQL.
        home: files of ``HOME_FILES``, by name.
    """

    format: Literal[1] = 1
    edgewright: str
    made_at: AwareDatetime
    database: BackupPart | None
    home: dict[str, BackupPart]
    repositories: tuple[KeptRepository, ...]

    @field_validator("home")
    @classmethod
    def _only_known_names(cls, home: dict[str, BackupPart]) -> dict[str, BackupPart]:
        if not home.keys() <= set(HOME_FILES):
            raise ValueError("a file that no backup holds")
        return home

    def parts(self) -> Iterator[tuple[str, BackupPart]]:
        """Path in the backup, and what has to be there."""
        if self.database:
            yield DATABASE, self.database
        yield from self.home.items()
        yield from ((kept.file, kept.bundle) for kept in self.repositories if kept.bundle)


def part_of(file: Path) -> BackupPart:
    """A file as the manifest names it; its bytes are on disk when this returns."""
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
        os.fsync(stream.fileno())
    return BackupPart(size=size, sha256=digest.hexdigest())


def checked_manifest(backup: Path) -> Manifest:
    """The manifest of a backup of which every byte is as it was when it was made.

    Raises:
        CliError: it is no backup, is not whole, or holds something else than its manifest says.
    """
    try:
        manifest = Manifest.model_validate_json((backup / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        if not backup.is_dir():
            raise CliError(
                f"There is no folder {backup}.",
                "Name a folder that `edgewright admin backup` has made.",
                ExitCode.USAGE,
            ) from None
        raise _refused(f"{backup} is no backup: there is no {MANIFEST} in it.") from None
    except ValidationError:
        raise _refused(f"{backup / MANIFEST} cannot be read: it is damaged, or of another version.") from None
    expected = dict(manifest.parts())
    for path, part in expected.items():
        file = backup / path
        if file.is_symlink() or not file.is_file():
            raise _refused(f"The backup {backup} is not whole: {path} is missing.")
        if file.stat().st_size != part.size or part_of(file) != part:
            raise _refused(f"The backup {backup} is damaged: {path} is not what the manifest says.")
    if strange := _files(backup) - expected.keys() - {MANIFEST}:
        raise _refused(f"The backup {backup} holds {min(strange)}, which its manifest does not name.")
    return manifest


def _files(backup: Path) -> set[str]:
    return {path.relative_to(backup).as_posix() for path in backup.rglob("*") if path.is_symlink() or path.is_file()}


def _refused(sentence: str) -> CliError:
    return CliError(sentence, "Nothing was changed. Take another backup.", ExitCode.REFUSED)
