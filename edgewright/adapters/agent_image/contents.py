"""What the agent's image holds: this machine's Python, the libraries it loads, the agent and what the agent imports.

Nothing is downloaded, so a centre without internet access can build the image too. It runs on nodes with the same
processor architecture and needs nothing from the node but a Linux kernel.
"""

import os
import platform
import re
import ssl
import subprocess
import sys
import sysconfig
from base64 import encodebytes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement

import edgewright
from edgewright.errors import Stalled

PYTHON = PurePosixPath("/opt/python")
LIBRARIES = PurePosixPath("/opt/lib")
PACKAGES = PurePosixPath("/opt/packages")
CERTIFICATES = PurePosixPath("/etc/ssl/certs/ca-certificates.crt")
USER = 10001
IMPORTED = ("httpx2", "lightkube", "PyYAML", "structlog")
"""Distributions that the agent imports; those that they require come with them."""
_UNUSED = frozenset(
    {"__pycache__", "curses", "dbm", "dist-packages", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data"}
    | {"site-packages", "sqlite3", "test", "tests", "tkinter", "turtledemo", "venv"}
)
"""Folders of the standard library that the agent does not need."""
_UNUSED_FILES = re.compile(
    r"(_tkinter|_test\w*|xxlimited\w*|_ctypes_test|turtle|_curses\w*|_g?dbm|_sqlite3|readline|nis|ossaudiodev|_crypt)"
    r"\b.*|.*\.(a|exe|pyc|pyi)"
)
"""Files of it, and modules whose libraries would have to come along."""
_OF_THE_INSTALLER = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"})
"""Files that say how a package came here; they differ where the package is the same."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "riscv64": "riscv64", "ppc64le": "ppc64le"}
_LIBRARY = re.compile(r"\s*(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x[0-9a-f]+\)")


@dataclass(frozen=True, slots=True, order=True)
class FileInImage:
    """A file of the image.

    Args:
        path: absolute, in the image.
        source: on this machine, or the bytes themselves; for a symbolic link, its target.
    """

    path: PurePosixPath
    source: Path | bytes | PurePosixPath
    executable: bool = False


@dataclass(frozen=True)
class Contents:
    """The files of the image, in two layers.

    Args:
        base: Python, libraries and packages: the same from one version of Edgewright to the next.
        agent: Edgewright's own.
    """

    architecture: str
    base: tuple[FileInImage, ...]
    agent: tuple[FileInImage, ...]


def contents_of_this_machine() -> Contents:
    """All that goes into an image for machines like this one.

    Raises:
        Stalled: code ``image_unbuildable``: this machine does not run Linux, or something that the image needs is not
            installed; the sentence says what.
    """
    if sys.platform != "linux":
        raise Stalled(
            "The agent's image can only be built on Linux, because it is made of what is installed here.",
            code="image_unbuildable",
            hint="Run `edgewright agent-image build --output FILE` on Linux, then `agent-image add FILE` here.",
        )
    machine = platform.machine()
    python, packages = [*_interpreter()], [*_packages()]
    objects = [one.source for one in (*python, *packages) if _is_shared_object(one)]
    libraries = _libraries([Path(sys.executable).resolve(), *(path for path in objects if isinstance(path, Path))])
    return Contents(
        architecture=_ARCHITECTURES.get(machine, machine),
        base=tuple(sorted([*python, *packages, *libraries, *_system()], key=lambda one: one.path)),
        agent=tuple(sorted(_agent(), key=lambda one: one.path)),
    )


def _interpreter() -> Iterator[FileInImage]:
    """The interpreter and its standard library."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    yield FileInImage(PYTHON / "bin" / name, Path(sys.executable).resolve(), executable=True)
    for link in ("python", "python3"):
        yield FileInImage(PYTHON / "bin" / link, PurePosixPath(name))
    library = Path(sysconfig.get_path("stdlib"))
    yield from _tree(library, PYTHON / "lib" / name)
    native = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"  # elsewhere than the rest on some distributions
    if native.parent.resolve() != library.resolve():
        yield from _tree(native, PYTHON / sys.platlibdir / name / "lib-dynload")


def _packages() -> Iterator[FileInImage]:
    """What the agent imports, and what that requires, extras included."""
    seen: set[tuple[str, str]] = set()
    wanted = [Requirement(name) for name in IMPORTED]
    while wanted:
        requirement = wanted.pop()
        found = _distribution(requirement.name)
        for extra in ("", *sorted(requirement.extras)):
            if (this := (_normalised(requirement.name), extra)) not in seen:
                seen.add(this)
                further = map(Requirement, found.requires or ())
                wanted += [one for one in further if _applies(one, extra)]
                yield from _files(found) if not extra else ()


def _applies(requirement: Requirement, extra: str) -> bool:
    """Whether a distribution requires this here: by itself, or for an extra."""
    if requirement.marker is None:
        return not extra
    return requirement.marker.evaluate({"extra": extra})


def _files(distribution: Distribution) -> Iterator[FileInImage]:
    for file in distribution.files or ():
        inside, source = PurePosixPath(*file.parts), Path(str(distribution.locate_file(file)))
        if inside.parent.suffix == ".dist-info" and inside.name in _OF_THE_INSTALLER:
            continue
        if ".." not in inside.parts and source.is_file() and inside.suffix != ".pyc":
            yield FileInImage(PACKAGES / inside, source)


def _distribution(name: str) -> Distribution:
    try:
        return Distribution.from_name(name)
    except PackageNotFoundError:
        raise Stalled(
            f"The package {name}, which the agent imports, is not installed here.",
            code="image_unbuildable",
            hint="Install Edgewright with all that it requires: `make install` in a checkout.",
        ) from None


def _agent() -> Iterator[FileInImage]:
    """The agent, and the modules at the top of the package, of which it imports some."""
    package = Path(edgewright.__file__).parent
    inside = PACKAGES / "edgewright"
    for file in sorted(package.glob("*.py")):
        yield FileInImage(inside / file.name, file)
    yield from _tree(package / "agent", inside / "agent")


def _system() -> Iterator[FileInImage]:
    """What a program looks for in ``/etc``: users, names of hosts, the authorities that this machine trusts."""
    yield FileInImage(PurePosixPath("/etc/passwd"), f"edgewright:x:{USER}:{USER}::/:/sbin/nologin\n".encode())
    yield FileInImage(PurePosixPath("/etc/group"), f"edgewright:x:{USER}:\n".encode())
    yield FileInImage(PurePosixPath("/etc/nsswitch.conf"), b"hosts: files dns\n")
    authorities = sorted(ssl.create_default_context().get_ca_certs(binary_form=True))
    pem = (b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n" % encodebytes(one) for one in authorities)
    yield FileInImage(CERTIFICATES, b"".join(pem))


def _libraries(objects: Iterable[Path]) -> list[FileInImage]:
    """Every library that these programs and modules load, and the loader itself where programs look for it."""
    found: dict[PurePosixPath, Path] = {}
    # One call for all: the loader's own listing, which knows its search path.
    listing = subprocess.run(["ldd", *map(str, objects)], capture_output=True, text=True, check=False, timeout=60)
    if missing := sorted(set(re.findall(r"(\S+) => not found", listing.stdout))):
        raise Stalled(f"Libraries are missing on this machine: {', '.join(missing)}.", code="image_unbuildable")
    for match in filter(None, map(_LIBRARY.fullmatch, listing.stdout.splitlines())):
        path = Path(match["path"])
        # The loader stands alone on its line and is looked for under that very path.
        inside = PurePosixPath(path) if match["name"] is None or match["name"].startswith("/") else None
        found[inside or LIBRARIES / path.name] = path
    if not found:
        raise Stalled("The program ldd does not tell which libraries Python loads.", code="image_unbuildable")
    for library in [*found.values()]:
        if library.name.startswith("libc."):  # older ones load these by name, when a name of a host is looked up
            for name in ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"):
                if (beside := library.parent / name).exists():
                    found[LIBRARIES / name] = beside
    return [FileInImage(inside, path.resolve(), executable=True) for inside, path in found.items()]


def _tree(folder: Path, inside: PurePosixPath) -> Iterator[FileInImage]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _left_out(PurePosixPath(name)))
        for name in sorted(files):
            path = Path(root) / name
            if not _left_out(PurePosixPath(name)) and path.is_file():
                yield FileInImage(inside / path.relative_to(folder), path)


def _left_out(path: PurePosixPath) -> bool:
    in_library = any(part in _UNUSED or part.startswith("config-") for part in path.parts)
    return in_library or _UNUSED_FILES.fullmatch(path.name) is not None


def _is_shared_object(file: FileInImage) -> bool:
    return isinstance(file.source, Path) and ".so" in file.path.suffixes


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
