"""The object store of one bare repository: durable writes of loose objects, or of one pack; reads of any object.

GitPython's object store (its package ``gitdb``) knows the format of loose objects and reads them. It never
calls fsync, so the writing of files is ours: an object gets its name only after its bytes are on disk (an
empty object left by a power cut would otherwise pass for the real one), and then the name is made durable.
``gitdb`` keeps packs open for good, so objects in packs are read by ``PackFiles``, and those that it leaves to git
from one ``git cat-file --batch`` process; both live as long as the store is open.
"""

import errno
import hashlib
import os
import secrets
import subprocess
import zlib
from collections.abc import Callable, Collection
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from gitdb.db.loose import LooseObjectDB  # type: ignore[import-untyped]  # gitdb ships no types
from gitdb.exc import BadObject  # type: ignore[import-untyped]  # gitdb ships no types
from gitdb.fun import loose_object_header  # type: ignore[import-untyped]  # gitdb ships no types

from edgewright.adapters.git.commands import git_environment
from edgewright.adapters.git.failures import damaged, memory_spent, unavailable
from edgewright.adapters.git.memory_limit import READ_MEMORY, bound_memory, ran_out_of_memory
from edgewright.adapters.git.packs import LARGEST, ROOM, PackFiles, write_pack

# Git's own names for unfinished files: `git prune` collects what a killed writer leaves.
_UNFINISHED = "tmp_obj_"
_UNFINISHED_PACK = "tmp_pack_"

_TRIES = 10


class ObjectStore:
    """Objects of one repository, for one thread and one operation; a context manager.

    Args:
        repository: the bare repository's folder.
        pool: threads that may wait for the disk.
        as_pack: writes one pack instead of many loose objects, without a look whether they are there; large ones
            become loose all the same.
    """

    def __init__(self, repository: Path, pool: Executor, *, as_pack: bool = False) -> None:
        self._repository = repository
        self._pool = pool
        self._as_pack = as_pack
        self._folder = repository / "objects"
        self._loose = LooseObjectDB(str(self._folder))
        self._packs = PackFiles(self._folder / "pack")
        self._by_git: _CatFile | None = None
        self._for_pack: dict[str, tuple[str, bytes]] = {}
        self._room = ROOM
        self._unfinished: dict[Path, Path] = {}
        self._folders: set[Path] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for unfinished in self._unfinished.values():
            unfinished.unlink(missing_ok=True)
        self._packs.close()
        if self._by_git is not None:
            self._by_git.close()

    def read(self, object_id: str, kind: str) -> bytes | None:
        """The content of an object of this kind (``blob``, ``tree``, ``commit``); None if it is not there.

        Raises:
            edgewright.errors.Stalled: code ``repository_damaged``.
        """
        try:
            stream = self._loose.stream(bytes.fromhex(object_id))
            found, content = stream.type.decode(), bytes(stream.read())
            # gitdb stops at the end of the deflate stream and does not look at the length that it was told.
            if len(content) != stream.size:
                raise damaged(f"object {object_id} is shorter than it says")
        except BadObject:
            return self._read_packed(object_id, kind)
        except (zlib.error, ValueError, IndexError) as error:
            raise damaged(f"object {object_id} cannot be read") from error
        return content if found == kind else None

    def write(self, kind: str, content: bytes) -> str:
        """Takes an object and returns its ID; it is there after ``flush``, and dropped without one."""
        header: bytes = loose_object_header(kind, len(content))
        object_id = hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
        if self._as_pack and len(content) <= min(LARGEST, self._room):
            self._room -= len(content)
            self._for_pack[object_id] = (kind, content)
            return object_id
        path = self._folder / object_id[:2] / object_id[2:]
        if path not in self._unfinished and not _is_stored(path, header + content):
            unfinished = path.with_name(_UNFINISHED + secrets.token_hex(8))
            self._unfinished[path] = unfinished
            _write_unfinished(unfinished, zlib.compress(header + content, zlib.Z_BEST_SPEED))
        self._folders |= {path.parent, self._folder}
        return object_id

    def flush(self) -> None:
        """Makes every object taken so far durable; call it before a ref points to one of them."""
        if self._for_pack:
            self._write_pack()
        self._each(_fsync_file, self._unfinished.values())
        for path in [*self._unfinished]:
            self._unfinished[path].rename(path)
            del self._unfinished[path]
        self._each(_fsync_folder_if_there, self._folders)
        self._folders.clear()

    def _write_pack(self) -> None:
        """The index gets its name last: without one, git does not look at a pack."""
        folder = self._folder / "pack"
        drafts = [folder / (_UNFINISHED_PACK + secrets.token_hex(8)) for _ in range(2)]
        self._unfinished |= {draft: draft for draft in drafts}
        with drafts[0].open("xb") as pack, drafts[1].open("xb") as index:
            name = write_pack(self._for_pack, pack.write, index.write)
        for draft, ending in zip(drafts, (".pack", ".idx"), strict=True):
            self._unfinished[folder / (name + ending)] = self._unfinished.pop(draft)
        self._folders.add(folder)
        self._for_pack.clear()

    def _each(self, fsync: Callable[[Path], None], paths: Collection[Path]) -> None:
        """Side by side, because a file system does many fsyncs in about the time of one."""
        for _ in self._pool.map(fsync, paths):
            pass

    def _read_packed(self, object_id: str, kind: str) -> bytes | None:
        whole = self._packs.read(object_id)
        if whole is not None:
            found, content = whole
            return content if found == kind else None
        if self._by_git is None:
            self._by_git = _CatFile(self._repository)
        return self._by_git.read(object_id, kind)


class _CatFile:
    """One ``git cat-file --batch`` process; it reads loose and packed objects alike."""

    def __init__(self, repository: Path) -> None:
        try:
            self._process = subprocess.Popen(
                ["git", f"--git-dir={repository}", "cat-file", "--batch"],
                env=git_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,  # it says little, and only before it ends
            )
        except FileNotFoundError as error:
            raise unavailable("the program git was not found on PATH") from error
        bound_memory(self._process.pid, READ_MEMORY)

    def read(self, object_id: str, kind: str) -> bytes | None:
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:  # they are pipes; this tells the type checker
            raise unavailable("git cat-file has no pipes")
        requests.write(object_id.encode() + b"\n")
        requests.flush()
        words = answers.readline().split()
        match words:
            case [_, b"missing"]:
                return None
            case [_, found, size]:
                content = answers.read(int(size) + 1)[:-1]
                if len(content) == int(size):
                    return content if found.decode() == kind else None
        if self._got_no_memory():
            raise memory_spent("git cat-file", READ_MEMORY)
        raise damaged(f"object {object_id} cannot be read")

    def close(self) -> None:
        with self._process as process:
            process.kill()

    def _got_no_memory(self) -> bool:
        self._process.kill()
        _, complaints = self._process.communicate()
        return ran_out_of_memory(complaints)


def _is_stored(path: Path, expected: bytes) -> bool:
    """Whether an intact copy is there; it is made young again, lest a concurrent prune collects it."""
    try:
        intact = zlib.decompress(path.read_bytes()) == expected
        if intact:
            os.utime(path)
    except (FileNotFoundError, zlib.error):
        return False
    return intact


def _write_unfinished(path: Path, content: bytes) -> None:
    # A repack removes folders that it has emptied; one with a file in it is safe.
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            file = path.open("xb")
            break
        path.parent.mkdir(exist_ok=True)
    else:
        file = path.open("xb")
    with file:
        file.write(content)


def _fsync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fchmod(file.fileno(), 0o444)
        os.fsync(file.fileno())


def _fsync_folder_if_there(folder: Path) -> None:
    """A folder goes away when a repack takes over all that was in it, objects that were stored before included."""
    with suppress(FileNotFoundError):
        fsync_folder(folder)


def fsync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot; they write names through.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)
