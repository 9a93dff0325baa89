"""What tests share with their stand-in for kubectl: its command, and the folder that holds its cluster.

The folder's files are in Python's ``marshal`` format: a module for any other takes as long to import as the stand-in
takes to start and answer, and a bootstrap script starts it some twenty times.
"""

import atexit
import marshal
import py_compile
import shutil
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

STARTER = """\
#!{python} -IS
import marshal, sys
sys.argv.insert(1, {folder!r})
with open({compiled!r}, "rb") as file:
    exec(marshal.loads(memoryview(file.read())[16:]))  # behind the header of a compiled module
"""
"""Python at once: a shell that starts it takes another tenth of each call."""
SOURCE = Path(__file__).parents[1] / "unit" / "bootstrap" / "fake_kubectl.py"


class KubectlState:
    """One Kubernetes cluster as the stand-in knows it.

    Args:
        folder: is there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def cluster(self) -> dict[str, Any]:
        """Everything on it; empty as long as nothing was put there."""
        path = self._folder / "cluster"
        held: dict[str, Any] = marshal.loads(path.read_bytes()) if path.exists() else {}
        return held

    @cluster.setter
    def cluster(self, held: dict[str, Any]) -> None:
        (self._folder / "cluster").write_bytes(marshal.dumps(held))

    @property
    def changes(self) -> list[list[str]]:
        """What was changed: [verb, Kind/namespace/name], in order."""
        return self._noted("changes")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call: args and environment."""
        return self._noted("calls")

    def install(self, kubectl: Path) -> None:
        """Makes a ``kubectl`` that works on this cluster."""
        kubectl.write_text(
            STARTER.format(python=sys.executable, compiled=_compiled(), folder=str(self._folder.absolute()))
        )
        kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)

    def _noted(self, name: str) -> list[Any]:
        path, noted = self._folder / name, list[Any]()
        if path.exists():
            with path.open("rb") as log:
                while log.peek(1):
                    noted.append(marshal.load(log))
        return noted


@cache
def _compiled() -> str:
    compiled = Path(tempfile.mkdtemp(prefix="edgewright-kubectl-")) / "fake_kubectl.pyc"
    atexit.register(shutil.rmtree, compiled.parent)
    py_compile.compile(str(SOURCE), str(compiled), doraise=True)
    return str(compiled)
