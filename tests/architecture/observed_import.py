"""Imports the modules that are named as arguments, and prints what the module bodies did to the world, as JSON.

Run as a script, so that the observed interpreter has imported nothing of ours before. What a library does while
*it* is imported is not ours: an event belongs to the module whose body is executing when it happens.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pydantic

WATCHED = (
    "open",
    "os.exec",
    "os.fork",
    "os.listdir",
    "os.mkdir",
    "os.posix_spawn",
    "os.putenv",
    "os.remove",
    "os.rename",
    "os.scandir",
    "os.system",
    "_thread.start_new_thread",
    "shutil.",
    "socket.",
    "sqlite3.connect",
    "subprocess.Popen",
    "tempfile.",
    "urllib.Request",
)

OF_LIBRARIES = {"PYDANTIC_DISABLE_PLUGINS"}
"""Variables that a library reads whenever one of its classes is declared."""


class Observer:
    """Remembers watched events that happen while a module of one checkout is being executed.

    Args:
        root: the checkout.
    """

    def __init__(self, root: Path) -> None:
        self.seen: list[str] = []
        self._root = f"{root}{os.sep}"
        self._read_variable = os._Environ.__getitem__

    def start(self) -> None:
        """Observes from now on; an audit hook cannot be taken back, which is why this is a process of its own."""
        observer = self

        def read_variable(environ: Any, name: Any) -> Any:
            if name not in OF_LIBRARIES:
                observer.note("environment", name)
            return observer._read_variable(environ, name)

        # Reading a variable leaves no audit event.
        setattr(os._Environ, "__getitem__", read_variable)  # noqa: B010 - mypy refuses to assign to a method
        sys.addaudithook(lambda event, arguments: self.note(event, arguments[0] if arguments else ""))

    def note(self, event: str, subject: object) -> None:
        if event != "environment" and not event.startswith(WATCHED):
            return
        body = _executing_module(sys._getframe(1))
        if body is not None and self._is_ours(body.f_code.co_filename):
            self.seen.append(f"{body.f_code.co_filename}:{body.f_lineno}: {event} {subject!r:.120}")

    def _is_ours(self, file: str) -> bool:
        """The environment of a checkout lies in the checkout, and is not ours."""
        return file.startswith(self._root) and "site-packages" not in file


def _executing_module(frame: FrameType | None) -> FrameType | None:
    """The innermost module body on the stack; None when the import system itself is at work."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name == "<module>":
            return frame
        frame = frame.f_back
    return None


def _declare_a_model() -> None:
    """Pydantic looks for plugins once, when the first model of a process is declared: that is not ours either."""
    pydantic.create_model("First")


def main() -> None:
    root, *modules = sys.argv[1:]
    _declare_a_model()
    sys.path.insert(0, root)
    observer = Observer(Path(root))
    observer.start()
    for module in modules:
        importlib.import_module(module)
    sys.stdout.write(json.dumps(observer.seen))


if __name__ == "__main__":
    main()
