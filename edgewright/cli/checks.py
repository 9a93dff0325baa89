"""What `doctor` looks at on this machine: programs, the home, ports and settings."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from edgewright.cli.client_settings import ClientSettings
from edgewright.cli.failures import CliError
from edgewright.cli.invocation import typed
from edgewright.cli.ledger import ProcessLedger
from edgewright.cli.local import OLDEST_GIT, git_version, port_wishes, temporal_binary
from edgewright.cli.ports import PortWish, listener_pid, resolve_ports
from edgewright.settings import Settings

_OLDEST_PYTHON = (3, 11)
_LITTLE_SPACE = 2 * 1024**3
_NO_SPACE = 200 * 1024**2
_CLOCK_SLACK_SECONDS = 60.0


class CheckVerdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True)
class Check:
    """One finding.

    Args:
        name: what was looked at.
        sentence: what was found.
        fix: what to do about it; empty if nothing.
    """

    name: str
    verdict: CheckVerdict
    sentence: str
    fix: str = ""


def machine_checks(settings: Settings) -> Iterator[Check]:
    """Everything that can be seen without asking a service."""
    yield _python()
    yield _git()
    yield _temporal_program(settings)
    yield _home(settings.home)
    yield _disk(settings.home)
    yield _clock(settings.home)
    yield from _ports(settings)
    yield _variables()
    yield _external_url(settings)
    yield from _tls(settings)


def _python() -> Check:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < _OLDEST_PYTHON:
        return Check("Python", CheckVerdict.WRONG, f"Python {version} is too old.", "Install Python 3.11 or newer.")
    return Check("Python", CheckVerdict.OK, f"Python {version}.")


def _git() -> Check:
    version = git_version()
    needed = ".".join(str(part) for part in OLDEST_GIT)
    fix = f"Install git {needed} or newer, on Debian and Ubuntu: apt install git."
    if version is None:
        return Check("git", CheckVerdict.WRONG, "git is not on PATH.", fix)
    found = ".".join(str(part) for part in version)
    if version < OLDEST_GIT:
        return Check("git", CheckVerdict.WRONG, f"git {found} is too old.", fix)
    return Check("git", CheckVerdict.OK, f"git {found}.")


def _temporal_program(settings: Settings) -> Check:
    name = "Temporal program"
    if settings.temporal_address:
        return Check(name, CheckVerdict.OK, f"Not needed: using the server at {settings.temporal_address}.")
    try:
        path = temporal_binary(settings)
    except CliError as error:
        return Check(name, CheckVerdict.WRONG, error.sentence, error.hint or "")
    if not os.access(path, os.X_OK):
        return Check(name, CheckVerdict.WRONG, f"{path} is not executable.", f"chmod +x {path}")
    return Check(name, CheckVerdict.OK, f"{path}.")


def _home(home: Path) -> Check:
    own = "Correct its owner and mode, or set EDGEWRIGHT_HOME to a folder of your own."
    if not home.exists():
        parent = _nearest(home)
        if not os.access(parent, os.W_OK | os.X_OK):
            return Check("home", CheckVerdict.WRONG, f"{home} does not exist, and {parent} is not writable.", own)
        return Check("home", CheckVerdict.OK, f"{home} does not exist yet; `{typed('up')}` creates it.")
    if not home.is_dir():
        return Check("home", CheckVerdict.WRONG, f"{home} is not a folder.", "Set EDGEWRIGHT_HOME to a folder.")
    if not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return Check("home", CheckVerdict.WRONG, f"This user cannot write to {home}.", own)
    mode = home.stat().st_mode & 0o777
    if mode & 0o077:
        return Check(
            "home", CheckVerdict.WRONG, f"Other users can read {home} (mode {mode:04o}).", f"chmod 700 {home}"
        )
    return Check("home", CheckVerdict.OK, f"{home}, mode {mode:04o}.")


def _disk(home: Path) -> Check:
    free = shutil.disk_usage(_nearest(home)).free
    sentence = f"{free / 1024**3:.1f} GiB free in the home's file system."
    if free < _NO_SPACE:
        return Check(
            "disk", CheckVerdict.WRONG, sentence, "Free some space; without it, databases and repositories fail."
        )
    if free < _LITTLE_SPACE:
        return Check("disk", CheckVerdict.WARNING, sentence, "Free some space before the disk is full.")
    return Check("disk", CheckVerdict.OK, sentence)


def _clock(home: Path) -> Check:
    """A clock that is behind what it has written itself was set back, or lost its battery."""
    now = time.time()
    written = [path.stat().st_mtime for path in home.glob("*") if path.is_file()] if home.is_dir() else []
    ahead = max(written, default=now) - now
    if ahead > _CLOCK_SLACK_SECONDS:
        return Check(
            "clock",
            CheckVerdict.WRONG,
            f"The clock is {ahead:.0f} s behind files in the home, so tokens and leases expire at the wrong time.",
            "Set the clock and keep it synchronized with NTP.",
        )
    return Check("clock", CheckVerdict.OK, time.strftime("%Y-%m-%d %H:%M:%S UTC.", time.gmtime(now)))


def _ports(settings: Settings) -> Iterator[Check]:
    ours = frozenset(ProcessLedger(settings.home).living().values())
    for wish in port_wishes(settings):
        yield _port(wish, ours)


def _port(wish: PortWish, ours: frozenset[int]) -> Check:
    name = f"port of {wish.part}"
    if wish.port == 0:
        return Check(name, CheckVerdict.OK, "Any free port.")
    try:
        resolve_ports([wish])
    except CliError as error:
        if listener_pid(wish.port) in ours:
            return Check(name, CheckVerdict.OK, f"{wish.port}, used by {wish.part}.")
        return Check(name, CheckVerdict.WRONG, error.sentence, error.hint or "")
    return Check(name, CheckVerdict.OK, f"{wish.port} is free.")


def _variables() -> Check:
    """A misspelt variable would change nothing, silently."""
    fields = [*Settings.model_fields, *ClientSettings.model_fields]
    known = {f"EDGEWRIGHT_{name.upper()}" for name in fields}
    unknown = sorted(name for name in os.environ if name.startswith("EDGEWRIGHT_") and name not in known)
    if not unknown:
        return Check("variables", CheckVerdict.OK, "All EDGEWRIGHT_… variables are known.")
    sentence = f"Unknown: {', '.join(unknown)}."
    return Check("variables", CheckVerdict.WARNING, sentence, "Correct the spelling, or unset it.")


def _external_url(settings: Settings) -> Check:
    url = settings.effective_external_url
    if settings.external_url_is_loopback:
        return Check(
            "external URL",
            CheckVerdict.WARNING,
            f"{url} is only reachable from this machine, so edges elsewhere cannot attach.",
            f"Run `{typed('up --share')}`, or set EDGEWRIGHT_EXTERNAL_URL to the https URL of a proxy.",
        )
    return Check("external URL", CheckVerdict.OK, f"{url}.")


def _tls(settings: Settings) -> Iterator[Check]:
    for variable, path in (
        ("EDGEWRIGHT_TLS_CERT", settings.tls_cert),
        ("EDGEWRIGHT_TLS_KEY", settings.tls_key),
        ("EDGEWRIGHT_CA_BUNDLE", settings.ca_bundle),
        ("EDGEWRIGHT_NEXT_CA_BUNDLE", settings.next_ca_bundle),
    ):
        if path is None:
            continue
        if os.access(path, os.R_OK):
            yield Check(variable, CheckVerdict.OK, f"{path}.")
        else:
            yield Check(
                variable, CheckVerdict.WRONG, f"{path} cannot be read.", "Correct the path, or the file's mode."
            )


def _nearest(path: Path) -> Path:
    """The nearest folder above that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
