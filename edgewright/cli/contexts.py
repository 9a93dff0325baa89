"""Contexts: the centres that this user has logged in to, kept in the user's configuration folder."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from edgewright.adapters.file_lock import take
from edgewright.cli.endpoints import write_atomically
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed

LOCAL = "local"
"""The reserved name of the gateway that `edgewright up` runs on this machine."""
_FILE = "contexts.json"
_LOCK = "contexts.lock"
_PATIENCE_SECONDS = 10.0
_OTHERS_READ, _OTHERS_ENTER = 0o044, 0o011
"""Rights of the group and of everybody: to read a file, and to get through a folder."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


class Context(BaseModel):
    """One centre and the way in.

    Args:
        url: base URL of its gateway, no trailing slash.
        token: operator token; None after a logout.
        ca_certificates: PEM text of authorities that sign its certificate; None: the machine's alone.
        plain_http: whether the user has accepted that the token travels over plain http.
    """

    model_config = ConfigDict(frozen=True)

    url: str
    token: str | None = Field(default=None, repr=False)
    ca_certificates: str | None = None
    plain_http: bool = False


class Contexts(BaseModel):
    """All contexts. ``current``: the one that commands use unless told otherwise; None: the local gateway."""

    current: str | None = None
    contexts: dict[str, Context] = Field(default_factory=dict)

    def named(self, name: str) -> Context:
        """The context that has a name.

        Raises:
            CliError: there is none.
        """
        if name in self.contexts:
            return self.contexts[name]
        known = ", ".join([LOCAL, *sorted(self.contexts)])
        raise CliError(
            f"There is no context {name}." if _NAME.fullmatch(name) else "There is no context with that name.",
            f"You have: {known}. `{typed('login URL')}` adds one.",
            ExitCode.NOT_FOUND,
            code="context_unknown",
        )

    def with_url(self, url: str) -> str | None:
        """The name of the context that leads to a URL, the current one first; None if none does."""
        names = [name for name, context in self.contexts.items() if context.url == url]
        return self.current if self.current in names else next(iter(names), None)


class ContextsFile:
    """Where contexts are kept: one file that only its owner can read.

    Args:
        folder: made when the first context is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.expanduser().absolute()
        self.path = self._folder / _FILE

    @property
    def is_exposed(self) -> bool:
        """Whether other users of this machine may be able to read the file, and the tokens in it."""
        try:
            path = self.path.resolve()
            may_enter = path.parent.stat().st_mode & _OTHERS_ENTER
            return bool(path.stat().st_mode & _OTHERS_READ & (may_enter << 2))
        except OSError:
            return False

    def read(self) -> Contexts:
        """What is kept; nothing if there is no file.

        Raises:
            CliError: it cannot be read; the text shows nothing of what it holds.
        """
        try:
            return Contexts.model_validate_json(self.path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return Contexts()
        except OSError as error:
            raise CliError(
                f"Your contexts in {self.path} cannot be read ({error.strerror}).",
                "Correct the owner and mode of the file.",
                ExitCode.NOT_ALLOWED,
                code="contexts_unreadable",
            ) from error
        except ValidationError:
            # The cause is left out: it would quote the file, and with it the tokens.
            raise CliError(
                f"The file {self.path} is damaged.",
                f"Move it away, then log in again with `{typed('login URL')}`.",
                code="contexts_damaged",
            ) from None

    @contextmanager
    def changing(self) -> Iterator[Contexts]:
        """The contexts, to change in place; kept at the end unless an error leaves the block.

        Two processes change them one after the other, and whoever reads meanwhile sees the old or the new ones.
        """
        with self._locked():
            contexts = self.read()
            yield contexts
            with self._kept_by_system():
                # A link stays a link: some people keep their configuration in a repository.
                write_atomically(Path(os.path.realpath(self.path)), contexts.model_dump_json(indent=2) + "\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._kept_by_system():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not take(descriptor, patience=_PATIENCE_SECONDS):
                raise CliError(
                    f"Another process is changing {self.path}.", "Try again in a moment.", ExitCode.UNAVAILABLE
                )
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _kept_by_system(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CliError(
                f"Your contexts cannot be written to {self._folder} ({error.strerror}).",
                "Correct the owner and mode of the folder, or set EDGEWRIGHT_CONFIG to a folder of your own.",
            ) from error


def checked_name(name: str) -> str:
    """A name that a context may have.

    Raises:
        CliError: it may not.
    """
    if name == LOCAL:
        raise CliError(
            f"The name {LOCAL} stands for the gateway on this machine.", "Choose another name.", ExitCode.USAGE
        )
    if not _NAME.fullmatch(name):
        raise CliError(
            "That cannot be the name of a context.",
            "Use 1 to 63 letters, digits, dots, hyphens or underscores; begin and end with a letter or digit.",
            ExitCode.USAGE,
        )
    return name


def name_for(address: str) -> str:
    """A name for the context of a host, or of a host with a port.

    >>> name_for("edge.example.com:8443")
    'edge.example.com-8443'
    """
    name = _NOT_IN_NAMES.sub("-", address)[:63].strip("._-")
    return "centre" if name in {"", LOCAL} else name
