"""Layers are the same to the byte for the same files, and hold what a container needs."""

import marshal
import os
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from edgewright.adapters.agent_image.contents import FileInImage
from edgewright.adapters.agent_image.layers import Layer, write_layer
from edgewright.errors import Stalled

SOURCE = 'NAMES = {"one", "two", "three", "four", "five", "six"}\n\ndef told(): return frozenset({"a", "b", "c"})\n'


def layer_of(folder: Path, *, at: float = 0.0) -> tuple[Layer, Path]:
    """A layer of a module, a program and a link, all made at some time in a folder of their own."""
    folder.mkdir()
    module, program = folder / "module.py", folder / "program"
    module.write_text(SOURCE)
    program.write_bytes(b"\x7fELF")
    for file in (module, program):
        os.utime(file, (at, at))
    files = [
        FileInImage(PurePosixPath("/opt/bin/program"), program, executable=True),
        FileInImage(PurePosixPath("/opt/bin/link"), PurePosixPath("program")),
        FileInImage(PurePosixPath("/opt/lib/module.py"), module),
        FileInImage(PurePosixPath("/etc/passwd"), b"edgewright:x:10001:10001::/:/sbin/nologin\n"),
    ]
    (work := folder / "work").mkdir()
    return write_layer(files, folder / "layer", work=work), folder / "layer"


def test_the_same_files_make_the_same_layer_wherever_and_whenever(tmp_path: Path) -> None:
    first, one = layer_of(tmp_path / "one", at=1_000_000)
    second, other = layer_of(tmp_path / "other", at=2_000_000)
    assert first == second
    assert one.read_bytes() == other.read_bytes()
    assert first.size == one.stat().st_size


def test_a_layer_has_folders_links_modes_and_nobodys_name(tmp_path: Path) -> None:
    _, path = layer_of(tmp_path / "one")
    with tarfile.open(path) as archive:
        members = {member.name: member for member in archive.getmembers()}
    assert [*members] == sorted(members, key=lambda name: PurePosixPath(name).parts)
    assert members["opt"].isdir() and members["opt/lib/__pycache__"].isdir()
    assert (members["opt/bin/program"].mode, members["opt/lib/module.py"].mode) == (0o755, 0o644)
    assert members["opt/bin/link"].linkname == "program"
    assert {(member.uid, member.gid, member.uname, member.mtime) for member in members.values()} == {(0, 0, "", 0)}


def test_a_module_comes_compiled_and_is_never_compiled_again(tmp_path: Path) -> None:
    _, path = layer_of(tmp_path / "one")
    with tarfile.open(path) as archive:
        [name] = [name for name in archive.getnames() if name.endswith(".pyc")]
        extracted = archive.extractfile(name)
        assert extracted is not None
        compiled = extracted.read()
    assert int.from_bytes(compiled[4:8], "little") == 0b01  # by hash, unchecked: PEP 552
    assert marshal.loads(compiled[16:]).co_filename == "/opt/lib/module.py"


def test_a_module_that_cannot_be_compiled_is_named(tmp_path: Path) -> None:
    broken, work = tmp_path / "broken.py", tmp_path / "work"
    broken.write_text("def (:\n")
    work.mkdir()
    with pytest.raises(Stalled, match="cannot be compiled") as raised:
        write_layer([FileInImage(PurePosixPath("/opt/broken.py"), broken)], tmp_path / "layer", work=work)
    assert raised.value.code == "image_unbuildable"
