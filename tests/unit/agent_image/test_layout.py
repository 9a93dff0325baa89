"""An image layout is replaced whole, keeps other platforms of its version, and refuses what is damaged."""

import errno
import io
import json
import os
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from small_images import publish_small

from edgewright.adapters.agent_image.layout import MOST_IMAGES, ImageLayout, Platform
from edgewright.errors import Invalid, NotFound


@pytest.fixture
def layout(tmp_path: Path) -> ImageLayout:
    return ImageLayout(tmp_path / "layout")


def blobs(layout: ImageLayout) -> set[str]:
    return {path.name for path in (layout.folder / "blobs" / "sha256").iterdir()}


def test_a_folder_that_is_not_there_has_no_image(layout: ImageLayout) -> None:
    assert layout.published() is None
    assert layout.manifest("1.0.0") is None
    assert layout.blob(f"sha256:{'0' * 64}") is None
    assert not layout.has("1.0.0", Platform(architecture="amd64"), "")


def test_tag_and_digests_lead_to_every_part(layout: ImageLayout) -> None:
    image = publish_small(layout)
    index = layout.manifest(image.tag)
    assert index is not None and index.digest == image.digest
    assert index == layout.manifest(image.digest)
    [described] = json.loads(index.content)["manifests"]
    assert described["platform"] == {"architecture": "amd64", "os": "linux"}
    manifest = layout.manifest(described["digest"])
    assert manifest is not None
    parts = json.loads(manifest.content)
    for part in (parts["config"], *parts["layers"]):
        path = layout.blob(part["digest"])
        assert path is not None and path.stat().st_size == part["size"]
        assert layout.manifest(part["digest"]) is None  # a blob is no manifest


@pytest.mark.parametrize(
    "digest", ["", "sha256:", "sha256:../../index.json", f"sha256:{'A' * 64}", "md5:00", "index.json"]
)
def test_what_is_no_digest_leads_nowhere(layout: ImageLayout, digest: str) -> None:
    publish_small(layout)
    assert layout.blob(digest) is None
    assert layout.manifest(digest) is None


def test_another_platform_joins_and_the_same_one_is_replaced(layout: ImageLayout) -> None:
    publish_small(layout)
    both = publish_small(layout, architecture="arm64", content=b"of the other\n")
    assert both.platforms == ("linux/amd64", "linux/arm64")
    again = publish_small(layout, content=b"another\n")
    assert again.platforms == both.platforms
    assert again.tag != both.tag
    assert layout.published() == again


def test_a_pod_that_moves_pulls_the_image_that_it_was_installed_with(layout: ImageLayout) -> None:
    images = [publish_small(layout, version=f"1.{number}.0", content=f"{number}\n".encode()) for number in range(12)]
    kept = images[-MOST_IMAGES:]
    assert layout.tags() == [image.tag for image in reversed(kept)]
    for image in kept:
        index = layout.manifest(image.tag)
        assert index is not None and index.digest == image.digest
        [platform] = json.loads(index.content)["manifests"]
        manifest = layout.manifest(platform["digest"])
        assert manifest is not None
        [layer] = json.loads(manifest.content)["layers"]
        assert layout.blob(layer["digest"]) is not None
    for image in images[:-MOST_IMAGES]:
        assert layout.manifest(image.tag) is None
        assert layout.blob(image.digest) is None  # nothing of it is left
    assert len(blobs(layout)) == 3 * MOST_IMAGES + 1  # the configuration is the same in all


def test_the_same_image_published_again_is_there_once(layout: ImageLayout) -> None:
    first = publish_small(layout)
    publish_small(layout, content=b"another\n")
    assert publish_small(layout) == first
    assert len(layout.tags()) == 2


def test_a_damaged_image_before_hinders_nothing(layout: ImageLayout) -> None:
    first = publish_small(layout)
    newer = publish_small(layout, version="1.1.0", content=b"newer\n")
    (layout.folder / "blobs" / "sha256" / first.digest.removeprefix("sha256:")).write_bytes(b"{")
    assert ImageLayout(layout.folder).tags() == [newer.tag]
    newest = publish_small(layout, version="1.2.0", content=b"newest\n")
    assert newest.tag in layout.tags()


def test_an_archive_of_another_version_is_refused(layout: ImageLayout, tmp_path: Path) -> None:
    source = ImageLayout(tmp_path / "source")
    publish_small(source, version="0.9.0", architecture="arm64")
    source.save(tmp_path / "archive", "centre/edgewright/agent:1")
    before = publish_small(layout)
    with pytest.raises(Invalid) as raised:
        layout.load(tmp_path / "archive", version="1.0.0")
    assert raised.value.code == "image_of_other_version"
    assert layout.published() == before


def test_a_new_version_leaves_no_platform_of_the_old_one(layout: ImageLayout) -> None:
    publish_small(layout, architecture="arm64")
    newer = publish_small(layout, version="1.1.0")
    assert (newer.version, newer.platforms) == ("1.1.0", ("linux/amd64",))


def test_what_it_was_built_from_is_remembered_and_is_no_part_of_its_name(layout: ImageLayout, tmp_path: Path) -> None:
    image = publish_small(layout)
    here = Platform(architecture="amd64")
    assert layout.has("1.0.0", here, b"small\n".hex())
    assert not layout.has("1.0.0", here, "else")
    assert not layout.has("1.0.1", here, b"small\n".hex())
    elsewhere = ImageLayout(tmp_path / "elsewhere")
    layout.save(tmp_path / "archive", "centre/edgewright/agent:1")
    assert elsewhere.load(tmp_path / "archive", version="1.0.0") == image
    assert not elsewhere.has("1.0.0", here, b"small\n".hex())


def test_an_image_that_lost_a_blob_is_built_again(layout: ImageLayout) -> None:
    publish_small(layout)
    largest = max((layout.folder / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size)
    largest.unlink()
    assert not layout.has("1.0.0", Platform(architecture="amd64"), b"small\n".hex())


def test_a_reader_sees_the_new_image_without_being_told(layout: ImageLayout) -> None:
    first, reader = publish_small(layout), ImageLayout(layout.folder)
    assert reader.published() == first
    second = publish_small(layout, content=b"another\n")
    assert reader.published() == second


def test_what_a_killed_build_left_is_taken_away_by_the_next(layout: ImageLayout) -> None:
    left = layout.folder / ".making-left"
    left.mkdir(parents=True)
    (left / "layer").write_bytes(b"half")
    publish_small(layout)
    assert not left.exists()


def test_an_archive_names_the_image_as_runtimes_look_for_it(layout: ImageLayout, tmp_path: Path) -> None:
    image = publish_small(layout)
    layout.save(tmp_path / "one", image.reference("centre.example.com:8484"))
    layout.save(tmp_path / "other", image.reference("centre.example.com:8484"))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    with tarfile.open(tmp_path / "one") as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        [outer] = json.load(index)["manifests"]
    assert outer["annotations"]["io.containerd.image.name"] == f"centre.example.com:8484/edgewright/agent:{image.tag}"
    assert outer["digest"] == image.digest


def test_nothing_is_saved_where_nothing_was_built(layout: ImageLayout, tmp_path: Path) -> None:
    with pytest.raises(NotFound) as raised:
        layout.save(tmp_path / "archive", "centre/edgewright/agent:1")
    assert raised.value.code == "agent_image_unset"
    assert not (tmp_path / "archive").exists()


def test_an_archive_is_written_once_and_takes_no_room_in_the_home(
    layout: ImageLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_small(layout)

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(layout, "work", full)  # a full disk needs a file system of its own, and rights to mount it
    (tmp_path / "there").write_bytes(b"older")
    (tmp_path / "link").symlink_to("there")
    layout.save(tmp_path / "link", "centre/edgewright/agent:1")
    assert (tmp_path / "link").is_symlink()
    assert "oci-layout" in members_of(tmp_path / "there")
    assert list(tmp_path.glob(".making-*")) == []


def test_a_damaged_image_leaves_the_archive_that_is_there(layout: ImageLayout, tmp_path: Path) -> None:
    publish_small(layout)
    largest = max((layout.folder / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size)
    largest.write_bytes(b"damaged")
    (tmp_path / "archive").write_bytes(b"older")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(Invalid) as raised:
        layout.save(tmp_path / "archive", "centre/edgewright/agent:1")
    assert raised.value.code == "image_invalid"
    assert (tmp_path / "archive").read_bytes() == b"older"
    assert sorted(tmp_path.iterdir()) == before


def test_a_pipe_gets_the_archive_and_stays_a_pipe(layout: ImageLayout, tmp_path: Path) -> None:
    publish_small(layout)
    layout.save(tmp_path / "archive", "centre/edgewright/agent:1")
    os.mkfifo(pipe := tmp_path / "pipe")
    with ThreadPoolExecutor() as reader:
        read = reader.submit(pipe.read_bytes)
        layout.save(pipe, "centre/edgewright/agent:1")
        assert read.result(30) == (tmp_path / "archive").read_bytes()
    assert pipe.is_fifo()


def archive_of(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def members_of(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        found = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: content.read() for name, content in found.items() if content is not None}


def _other_bytes(members: dict[str, bytes]) -> dict[str, bytes]:
    largest = max(members, key=lambda name: len(members[name]) if name.startswith("blobs/") else 0)
    return members | {largest: members[largest][:-1] + b"!"}


def _one_is_missing(members: dict[str, bytes]) -> dict[str, bytes]:
    largest = max(members, key=lambda name: len(members[name]) if name.startswith("blobs/") else 0)
    return {name: content for name, content in members.items() if name != largest}


def _of_nobody(members: dict[str, bytes]) -> dict[str, bytes]:
    return members | {"index.json": b'{"schemaVersion":2,"manifests":[]}'}


def _many(members: dict[str, bytes]) -> dict[str, bytes]:
    return members | {f"blobs/sha256/{number:064x}": b"" for number in range(65)}


@pytest.mark.parametrize("damaged", [_other_bytes, _one_is_missing, _of_nobody, _many])
def test_an_archive_that_is_not_what_it_says_changes_nothing(
    layout: ImageLayout, tmp_path: Path, damaged: Callable[[dict[str, bytes]], dict[str, bytes]]
) -> None:
    source = ImageLayout(tmp_path / "source")
    publish_small(source, architecture="arm64")
    source.save(tmp_path / "archive", "centre/edgewright/agent:1")
    before = publish_small(layout)
    path = archive_of(tmp_path / "damaged", damaged(members_of(tmp_path / "archive")))
    with pytest.raises(Invalid) as raised:
        layout.load(path, version="1.0.0")
    assert raised.value.code == "image_invalid"
    assert layout.published() == before


def test_names_that_lead_out_of_an_archive_are_not_followed(layout: ImageLayout, tmp_path: Path) -> None:
    source = ImageLayout(tmp_path / "source")
    image = publish_small(source)
    source.save(tmp_path / "archive", "centre/edgewright/agent:1")
    hostile = {"../outside": b"x", "/tmp/outside": b"x", "blobs/sha256/../../../outside": b"x", "other": b"x"}
    assert (
        layout.load(archive_of(tmp_path / "hostile", members_of(tmp_path / "archive") | hostile), version="1.0.0")
        == image
    )
    assert not list(tmp_path.rglob("outside"))
    assert not (layout.folder / "other").exists()


def test_what_is_no_archive_is_named(layout: ImageLayout, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(Invalid) as raised:
        layout.load(tmp_path / "text", version="1.0.0")
    assert raised.value.code == "image_invalid"


def test_a_build_killed_before_its_index_leaves_the_image_before_in_service(layout: ImageLayout) -> None:
    before = publish_small(layout)
    orphan = layout.add_document(Platform(architecture="killed"), "application/octet-stream")
    assert layout.published() == before
    publish_small(layout, content=b"the next\n")
    assert layout.blob(orphan.digest) is None
    assert before.tag in layout.tags()
