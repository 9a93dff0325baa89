"""A person's terminal: a line is pasted into a shell there, and a question is answered."""

import os
import subprocess
import termios
from collections.abc import Mapping
from fcntl import ioctl
from pathlib import Path

from left_behind import marked


def paste(line: str, *, answer: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Returns the exit code of a line, and all that the terminal showed, with what was typed.

    Args:
        answer: typed with Enter, before it is asked for: a terminal keeps it.
        folder: where the shell is.
    """
    ours, theirs = os.openpty()
    with subprocess.Popen(
        ["sh", "-c", line],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**marked(), **environment},
        start_new_session=True,
        preexec_fn=lambda: ioctl(theirs, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one system call, no locks
    ) as running:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        shown = b"".join(iter(lambda: _read(ours), b""))
        code = running.wait()
    os.close(ours)
    return code, shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    """What it shows next; nothing once the last one has left it."""
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says EIO then
        return b""
