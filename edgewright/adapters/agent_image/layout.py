"""An OCI image layout on disk: `oci-layout`, `index.json` and blobs named by their digests.

The index is replaced in one step and refers to blobs that are already there, so whoever reads meanwhile sees either
image whole. Specification: https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

import fcntl
import io
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from edgewright.adapters.agent_image.layers import sha256_of
from edgewright.errors import Invalid, NotFound
from edgewright.ports.agent_images import PublishedImage, StoredManifest

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
TAG = "org.opencontainers.image.ref.name"
_NAME = "io.containerd.image.name"
"""The annotation by which containerd, and what is built on it, names what it loads."""
MOST_IMAGES = 10
"""Kept, each of some 30 MB, most of which images of one Python have in common."""
LARGEST_ARCHIVE = 512 * 1024 * 1024
_MOST_FILES = 64
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_IN_LAYOUT = re.compile(r"(?:\./)?(?:oci-layout|index\.json|blobs/sha256/[0-9a-f]{64})")
_MAKING = ".making-"
_NOTE = "dev.edgewright.inputs."
_MARK = b'{"imageLayoutVersion":"1.0.0"}'

Digest = Annotated[str, Field(pattern=rf"^{_DIGEST.pattern}$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)


class Platform(_Model):
    """What an image runs on."""

    architecture: str
    os: str = "linux"


class Descriptor(_Model):
    """Names a blob; ``size`` in bytes."""

    media_type: str
    digest: Digest
    size: int = Field(ge=0)
    platform: Platform | None = None
    annotations: dict[str, str] | None = None


class ImageManifest(_Model):
    """An image for one platform."""

    schema_version: Literal[2] = 2
    media_type: Literal["application/vnd.oci.image.manifest.v1+json"] = "application/vnd.oci.image.manifest.v1+json"
    config: Descriptor
    layers: list[Descriptor]


class Index(_Model):
    """An image for several platforms, of which a node takes its own."""

    schema_version: Literal[2] = 2
    media_type: Literal["application/vnd.oci.image.index.v1+json"] = "application/vnd.oci.image.index.v1+json"
    manifests: list[Descriptor]


@dataclass(frozen=True)
class _KeptImage:
    """An image in the layout. ``outer``: what ``index.json`` says of it."""

    image: PublishedImage
    outer: Descriptor
    platforms: tuple[Descriptor, ...]

    @property
    def notes(self) -> Mapping[str, str]:
        """What it was published with."""
        return self.outer.annotations or {}


class ImageLayout:
    """The layout in one folder, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = folder / "index.json"
        self._state: tuple[tuple[int, int], Sequence[_KeptImage]] | None = None

    def published(self) -> PublishedImage | None:
        """See ``AgentImages``; read again only when it was replaced."""
        return next((kept.image for kept in self._kept()), None)

    def tags(self) -> Sequence[str]:
        """See ``AgentImages``."""
        return [kept.image.tag for kept in self._kept()]

    def manifest(self, reference: str) -> StoredManifest | None:
        """See ``AgentImages``."""
        for kept in self._kept():
            types = {kept.image.digest: INDEX_TYPE, **{one.digest: one.media_type for one in kept.platforms}}
            digest = kept.image.digest if reference == kept.image.tag else reference
            if digest in types and (path := self.blob(digest)):
                return StoredManifest(path.read_bytes(), types[digest], digest)
        return None

    def has(self, version: str, platform: Platform, note: str) -> bool:
        """Whether an image of that version and platform is there, published with that note, with all its blobs."""
        newest = next(iter(self._kept()), None)
        if newest is None or newest.image.version != version:
            return False
        if newest.notes.get(_NOTE + platform.architecture) != note:
            return False
        try:
            wanted = [digest for one in newest.platforms if one.platform == platform for digest in self._digests(one)]
        except Invalid:
            return False
        return bool(wanted) and all(self.blob(digest) for digest in wanted)

    def blob(self, digest: str) -> Path | None:
        """See ``AgentImages``."""
        if _DIGEST.fullmatch(digest) is None:
            return None
        path = self._path(digest)
        return path if path.is_file() else None

    def work(self) -> "tempfile.TemporaryDirectory[str]":
        """A folder on the layout's file system for what is being made."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=self.folder, prefix=_MAKING)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Nobody else builds or adds an image meanwhile: deleting old blobs would take theirs away."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in self.folder.glob(f"{_MAKING}*"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            yield

    def take_blob(self, file: Path, digest: str) -> None:
        """Moves a file of the same file system into the layout, to stay there under its digest."""
        target = self._path(digest)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.chmod(0o644)
        _synchronise(file)
        file.replace(target)

    def add_document(self, document: BaseModel, media_type: str) -> Descriptor:
        """Stores a manifest, an index or a configuration."""
        content = as_json(document)
        with self.work() as work:
            made = Path(work) / "document"
            made.write_bytes(content)
            self.take_blob(made, digest := sha256_of(content))
        return Descriptor(media_type=media_type, digest=digest, size=len(content))

    def publish(self, version: str, images: Sequence[Descriptor], notes: Mapping[str, str]) -> PublishedImage:
        """Makes these the image of their platforms. Those of other platforms stay, if they are of the same version.

        Images before stay under their tags, for edges that run them: a pod that moves to another node pulls what it
        was installed with. Of these, the newest ``MOST_IMAGES`` are kept.

        Args:
            notes: architecture -> what ``has`` compares. It is no part of the image and of its digest.
        """
        before = self._kept()
        same = next((kept for kept in before[:1] if kept.image.version == version), None)
        platforms = [one.platform for one in images]
        others = [one for one in same.platforms if one.platform not in platforms] if same else []
        told = {_NOTE + architecture: note for architecture, note in notes.items()}
        noted = {key: note for key, note in (same.notes if same else {}).items() if key.startswith(_NOTE)} | told
        order = sorted([*others, *images], key=lambda one: one.platform.architecture if one.platform else "")
        index = self.add_document(Index(manifests=order), INDEX_TYPE)
        outer = index.model_copy(update={"annotations": noted | {TAG: version}})
        older = [kept.outer for kept in before if kept.image.digest != outer.digest]
        with self.work() as work:
            _write(Path(work) / "oci-layout", _MARK, self.folder)
            kept_index = Index(manifests=[outer, *older][:MOST_IMAGES])
            _write(Path(work) / self._index.name, as_json(kept_index), self.folder)
        _synchronise(self.folder)
        now = self._kept()
        if not now:
            raise _invalid("what has just been written cannot be read")
        self._prune(now)
        return now[0].image

    def save(self, target: Path, reference: str) -> PublishedImage:
        """Writes the image as an archive that containerd, k3s, kind, k3d, podman and docker load.

        It is written once, beside the target, and takes its place when it is whole. A pipe or a device gets it as it
        is made.

        Args:
            reference: what they are to call the image.

        Raises:
            NotFound: code ``agent_image_unset``: none has been built.
            Invalid: code ``image_invalid``: a blob is missing or damaged.
            OSError: the target cannot be written.
        """
        newest = next(iter(self._kept()), None)
        if newest is None:
            raise NotFound("No image of the agent has been built here.", code="agent_image_unset")
        outer = newest.outer.model_copy(update={"annotations": {TAG: newest.image.version, _NAME: reference}})
        digests = sorted({newest.image.digest, *self._checked(newest.platforms)})
        form = tarfile.PAX_FORMAT
        with _written_whole(target) as stream, tarfile.open(fileobj=stream, mode="w|", format=form) as tar:
            _add(tar, "oci-layout", _MARK)
            _add(tar, "index.json", as_json(Index(manifests=[outer])))
            for digest in digests:
                _add(tar, f"blobs/{digest.replace(':', '/')}", self._path(digest).read_bytes())
        return newest.image

    def load(self, source: Path, *, version: str) -> PublishedImage:
        """Takes the images in an archive that ``save`` has written, each for its platform.

        Args:
            version: of Edgewright here; no other is taken.

        Raises:
            Invalid: code ``image_invalid``: no such archive, too large, or a blob that does not have its digest;
                ``image_of_other_version``.
        """
        with self.changing(), self.work() as work:
            extracted = ImageLayout(Path(work))
            _extract(source, extracted.folder)
            found = next(iter(extracted._kept()), None)
            if found is None or not found.image.platforms:
                raise _invalid("it is not one that this command has made")
            if found.image.version != version:
                raise Invalid(
                    f"The archive holds the agent of Edgewright {found.image.version}; this is {version}.",
                    code="image_of_other_version",
                    hint=f"Build it with Edgewright {version} on the other machine, too.",
                )
            for digest in extracted._checked(found.platforms):
                self.take_blob(extracted._path(digest), digest)
            return self.publish(version, found.platforms, {})

    def _checked(self, images: Iterable[Descriptor]) -> list[str]:
        """The digests of all blobs of some images, each read and compared.

        Raises:
            Invalid: code ``image_invalid``: one is not there, or is something else.
        """
        digests = []
        for image in images:
            for digest in self._digests(image):
                path = self.blob(digest)
                if path is None or sha256_of(path.read_bytes()) != digest:
                    raise _invalid(f"the blob {digest} is missing or damaged")
                digests.append(digest)
        return digests

    def _kept(self) -> Sequence[_KeptImage]:
        """The images that the files name, the newest first; none if they are not ours."""
        try:
            state = self._index.stat()
        except FileNotFoundError:
            return ()
        key = (state.st_mtime_ns, state.st_ino)
        if self._state is None or self._state[0] != key:
            self._state = key, self._read_anew()
        return self._state[1]

    def _read_anew(self) -> Sequence[_KeptImage]:
        try:
            outer = Index.model_validate_json(self._index.read_bytes()).manifests
        except (OSError, ValueError):
            return ()
        return [kept for kept in map(self._image, outer) if kept is not None]

    def _image(self, outer: Descriptor) -> _KeptImage | None:
        """What a line of ``index.json`` names; None if it is damaged."""
        try:
            platforms = tuple(Index.model_validate_json(self._path(outer.digest).read_bytes()).manifests)
        except (OSError, ValueError):
            return None
        if not (version := (outer.annotations or {}).get(TAG)):
            return None
        names = tuple(f"{one.platform.os}/{one.platform.architecture}" for one in platforms if one.platform)
        return _KeptImage(PublishedImage(version=version, digest=outer.digest, platforms=names), outer, platforms)

    def _prune(self, kept: Sequence[_KeptImage]) -> None:
        """Deletes the blobs of no image."""
        needed = {one.image.digest for one in kept}
        for platform in (platform for one in kept for platform in one.platforms):
            with suppress(Invalid):
                needed.update(self._digests(platform))
        for path in (self.folder / "blobs" / "sha256").glob("*"):
            if f"sha256:{path.name}" not in needed:
                with suppress(FileNotFoundError):
                    path.unlink()

    def _digests(self, image: Descriptor) -> list[str]:
        try:
            manifest = ImageManifest.model_validate_json(self._path(image.digest).read_bytes())
        except (OSError, ValidationError):
            raise _invalid(f"the manifest {image.digest} is missing or damaged") from None
        return [image.digest, manifest.config.digest, *(layer.digest for layer in manifest.layers)]

    def _path(self, digest: str) -> Path:
        return self.folder / "blobs" / Path(*digest.split(":", 1))


def as_json(document: BaseModel) -> bytes:
    """A document as it is stored and digested."""
    return document.model_dump_json(by_alias=True, exclude_none=True).encode()


def _extract(source: Path, folder: Path) -> None:
    """Unpacks the files of a layout, and nothing else that an archive may hold."""
    try:
        with tarfile.open(source) as archive:
            members = [one for one in archive.getmembers() if one.isfile() and _IN_LAYOUT.fullmatch(one.name)]
            if len(members) > _MOST_FILES or sum(member.size for member in members) > LARGEST_ARCHIVE:
                raise _invalid(f"it holds more than {LARGEST_ARCHIVE // 1024**2} MiB or {_MOST_FILES} files")
            for member in members:
                target, content = folder / member.name, archive.extractfile(member)
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as stream:
                    shutil.copyfileobj(content, stream)  # type: ignore[arg-type] # files have content
    except (tarfile.TarError, EOFError) as error:
        raise _invalid("it is no tar archive, or not all of it") from error


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


@contextmanager
def _written_whole(target: Path) -> Iterator[IO[bytes]]:
    """A stream into a file beside the target, which it replaces at the end of the block; nothing stays of one that
    fails. What is there and no file, such as a pipe, is written itself."""
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            yield stream
        return
    place = target.resolve()  # a link stays
    descriptor, made = tempfile.mkstemp(dir=place.parent, prefix=_MAKING)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, 0o644)
            yield stream
        Path(made).replace(place)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise


def _write(made: Path, content: bytes, folder: Path) -> None:
    """Puts a file into a folder, whole."""
    made.write_bytes(content)
    made.chmod(0o644)
    _synchronise(made)
    made.replace(folder / made.name)


def _invalid(why: str) -> Invalid:
    return Invalid(
        f"The archive does not hold an image of the agent: {why}.",
        code="image_invalid",
        hint="Make one with `edgewright agent-image build --output FILE` on a machine like the edges' nodes.",
    )


def _synchronise(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
