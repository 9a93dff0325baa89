"""Builds the real components that tests drive, once, and keeps their binaries outside the checkout.

As a script, ``python tests/real/components.py kubeseal`` builds or reuses and prints where the binary is; without a
name it does so for every component, and fetches what else the tests against real components take from outside. As a
module, ``component("kubeseal")`` returns its path. ``EDGEWRIGHT_COMPONENTS_DIR`` overrides the cache folder.
Only binaries are kept: see ``workshop``.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from debian import PACKAGES, debian_program, debian_tree
from go_programs import PROGRAMS, RECIPES, GoProgram
from module_files import FOLDERS, helm_definitions, module_folder
from workshop import ComponentMissing, Workshop, components_dir, workshop

_works: set[tuple[Path, int, int]] = set()
"""Binaries that this process has seen to work: path, size, and when they were written."""


def component(name: str, *, say: Callable[[str], None] = print) -> Path:
    """The path of a working binary, built if it is not there or does not run.

    Raises:
        ComponentMissing: it cannot be built here.
    """
    if _missing([name]):
        with workshop(say) as shop:
            build([name], shop)
    return _kept(PROGRAMS[name])


def build(names: Sequence[str], shop: Workshop) -> None:
    """Builds those that are not there or do not run; programs of one module graph all at once.

    Raises:
        ComponentMissing: one cannot be built here.
    """
    missing = _missing(names)
    for program in missing:
        shop.say(f"{program.name} {program.version} is not in {components_dir()}: to be built ({program.cost}).")
    graphs: dict[str, list[GoProgram]] = {}
    for program in missing:
        graphs.setdefault(program.graph, []).append(program)
    for programs in graphs.values():
        _build(programs, shop)


def works(program: GoProgram, binary: Path) -> bool:
    """Whether the binary runs and says that it is the wanted version."""
    if not binary.is_file():
        return False
    written = binary.stat()
    seen = (binary, written.st_size, written.st_mtime_ns)
    if seen in _works:
        return True
    try:
        shown = subprocess.run(
            [binary, *program.version_arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if shown.returncode != 0 or program.printed not in shown.stdout + shown.stderr:
        return False
    _works.add(seen)
    return True


def _missing(names: Sequence[str]) -> list[GoProgram]:
    """What has to be built so that these are there, in order: whoever is built with one of them is built, too."""
    broken = {PROGRAMS[name].family for name in names if not works(PROGRAMS[name], _kept(PROGRAMS[name]))}
    return [program for program in PROGRAMS.values() if program.family in broken]


def _kept(program: GoProgram) -> Path:
    return components_dir() / program.file_name


def _build(programs: Sequence[GoProgram], shop: Workshop) -> None:
    """Builds programs of one module graph into the cache."""
    names = ", ".join(program.name for program in programs)
    started = time.monotonic()
    recipe = programs[0].recipe
    shop.go(
        ["install", *_wanted(programs)],
        f"build {names}",
        recipe=None if recipe is None else RECIPES / recipe,
        minimum=max(program.go for program in programs),
    )
    for program in programs:
        built = shop.binaries / program.go_name
        if not works(program, built):
            raise ComponentMissing(f"{program.name} was built but does not say that it is {program.version}")
        built.replace(_kept(program))
    size = sum(_kept(program).stat().st_size for program in programs) / 1e6
    shop.say(f"{names} built in {time.monotonic() - started:.0f} s, {size:.0f} MB.")


def _wanted(programs: Sequence[GoProgram]) -> list[str]:
    """Arguments of ``go install``: each at its version, or as the recipe says that all share."""
    if programs[0].recipe is None:
        return [f"{program.module}@{program.version}" for program in programs]
    stamps = sorted({f"-X {stamp}" for program in programs for stamp in program.stamps})
    stamped = [f"-ldflags=-s {' '.join(stamps)}"] if stamps else []
    return ["-mod=mod", *stamped, *(program.module for program in programs)]


def everything(shop: Workshop) -> None:
    """Has all that the tests against real components take from outside.

    Raises:
        ComponentMissing: something of it cannot be had here.
    """
    build(list(PROGRAMS), shop)
    for name in FOLDERS:
        module_folder(name, say=shop.say, shop=shop)
    helm_definitions(say=shop.say, shop=shop)
    for name in PACKAGES:
        debian_program(name, say=shop.say)
    debian_tree("nginx", say=shop.say)


def main() -> int:
    """Builds or reuses the components that are named, or has everything, and says where the binaries are."""
    parser = argparse.ArgumentParser(description="Builds or reuses the real components that tests drive.")
    parser.add_argument("component", nargs="*", help=f"one of {', '.join(sorted(PROGRAMS))}; default: everything")
    names = parser.parse_args().component
    if unknown := sorted(set(names) - set(PROGRAMS)):
        parser.error(f"no such component: {', '.join(unknown)}")
    try:
        with workshop(_say) as shop:
            build(names, shop) if names else everything(shop)
    except ComponentMissing as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for name in names or PROGRAMS:
        _say(f"{name}: {_kept(PROGRAMS[name])}")
    return 0


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
