"""The files by which a pod's probes tell that its program turns, and that the centre has answered it."""

import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from edgewright.agent.lifetime import ReadinessFile, keep_alive


async def test_the_file_is_touched_as_long_as_the_loop_turns(tmp_path: Path) -> None:
    """Nobody asks how the centre is: whoever waits for one for weeks is alive."""
    file = tmp_path / "alive"
    telling = asyncio.create_task(keep_alive(file, 0.01))
    try:
        for _ in range(2):
            async with asyncio.timeout(5):
                while not file.exists():
                    await asyncio.sleep(0.01)
            file.unlink()
    finally:
        telling.cancel()


async def test_where_nobody_looks_nothing_is_written(tmp_path: Path) -> None:
    async with asyncio.timeout(5):
        await keep_alive(tmp_path / "no-such-folder" / "alive", 0.01)
    assert list(tmp_path.iterdir()) == []


async def test_a_file_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "alive"
    file.parent.mkdir()
    file.symlink_to(tmp_path / "nowhere" / "alive")
    telling = asyncio.create_task(keep_alive(file, 0.01))
    await asyncio.sleep(0.1)
    assert not telling.done()
    telling.cancel()


def test_a_probe_that_nobody_makes_gets_no_file(tmp_path: Path) -> None:
    ReadinessFile(tmp_path / "no-such-folder" / "answered").tell()
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_cannot_be_noted_is_noted_with_the_next_one(tmp_path: Path) -> None:
    file = tmp_path / "answered"
    readiness = ReadinessFile(file)
    file.symlink_to(tmp_path / "nowhere" / "answered")
    with capture_logs() as logged:
        for _ in range(2):
            readiness.tell()
        file.unlink()
        for _ in range(2):
            readiness.tell()
    assert file.is_file()
    assert [line["state"] for line in logged] == ["unwritable", "told"]
