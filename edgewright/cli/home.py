"""The folder in which `edgewright up` keeps everything, and the lock that gives it to one process at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgewright.adapters.file_lock import take
from edgewright.cli.failures import CliError, ExitCode

_LOCK = "lock"
_SETUP_LOCK = "setup.lock"
_HALF_RESTORED = "restore-unfinished"
_HANDOVER_SECONDS = 0.5


def authority_file(home: Path) -> Path:
    """PEM of the home's own certificate authority; there once the centre was shared."""
    return home / "authority.pem"


def authority_key_file(home: Path) -> Path:
    """PEM of the same authority and of its key."""
    return home / "authority.key"


def server_file(home: Path) -> Path:
    """PEM of the certificate that the authority has given to the gateway, and of its key; likewise."""
    return home / "server.pem"


def prepare_home(home: Path) -> None:
    """Makes the folder, for its owner only.

    Raises:
        CliError: it is not a folder, or cannot be made or written.
    """
    if "?" in str(home):
        raise CliError(
            f"The home {home} has a question mark in its path, which the URL of the database cannot hold.",
            "Set EDGEWRIGHT_HOME to another folder.",
            ExitCode.USAGE,
        )
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_mode & 0o077:
            home.chmod(0o700)
        (home / "logs").mkdir(mode=0o700, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise CliError(
            f"The home {home} is a file, not a folder.", "Set EDGEWRIGHT_HOME to a folder.", ExitCode.USAGE
        ) from error
    except OSError as error:
        raise CliError(
            f"The home {home} cannot be made or written ({error.strerror}).",
            "Correct owner and mode of the folder, or set EDGEWRIGHT_HOME to a folder of your own.",
        ) from error
    if not os.access(home, os.W_OK | os.X_OK):
        raise CliError(
            f"The home {home} cannot be written by this user.",
            "Correct owner and mode of the folder, or set EDGEWRIGHT_HOME to a folder of your own.",
        )


@contextmanager
def exclusive_home(home: Path) -> Iterator[None]:
    """Holds the home; the lock dies with the process, however that dies.

    Raises:
        CliError: another process holds it; the sentence names its pid.
    """
    descriptor = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(descriptor, home)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


@contextmanager
def one_setup_at_a_time(home: Path) -> Iterator[None]:
    """Waits for whoever sets the same home up just now: two at once would each make an admin token."""
    descriptor = os.open(home / _SETUP_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def owner_only() -> Iterator[None]:
    """Whatever is made meanwhile, by this process or a child, is this user's alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def being_restored(home: Path) -> Iterator[None]:
    """Marks the home while its parts change places; one whose restore was interrupted keeps the mark."""
    mark = home / _HALF_RESTORED
    mark.touch(mode=0o600)
    yield
    mark.unlink()


def refuse_half_restored(home: Path) -> None:
    """Raises ``CliError`` for a home in which a restore was interrupted: parts of it may be missing."""
    if (home / _HALF_RESTORED).exists():
        raise CliError(
            f"A restore of {home} was interrupted; parts of it may be missing.",
            "Restore again: edgewright admin restore FOLDER.",
            ExitCode.REFUSED,
        )


def holder(home: Path) -> int | None:
    """The pid that holds the home; None if nobody does. 0 if somebody does who has not said its pid yet."""
    try:
        descriptor = os.open(home / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _said_pid(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _take(descriptor: int, home: Path) -> None:
    if take(descriptor, patience=_HANDOVER_SECONDS):
        return
    pid = _said_pid(descriptor)
    who = f"process {pid}" if pid else "another process"
    raise CliError(
        f"Edgewright already runs on {home}: {who} has it.",
        "Use that one, stop it with `edgewright down`, or set EDGEWRIGHT_HOME to another folder.",
        ExitCode.REFUSED,
    )


def _said_pid(descriptor: int) -> int:
    text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    return int(text) if text.isdecimal() else 0
