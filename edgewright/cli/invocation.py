"""How the reader of a message would type a command of ours."""

from pathlib import Path

import edgewright


def typed(command: str) -> str:
    """A command line that works from where the reader is: through the checkout's wrapper, if there is one.

    >>> typed("cluster list")  # doctest: +SKIP
    './bin/edgewright cluster list'
    """
    wrapper = Path(edgewright.__file__).resolve().parent.parent / "bin" / "edgewright"
    if not wrapper.is_file():
        return f"edgewright {command}"
    try:
        here = Path.cwd()
    except OSError:  # the folder was removed
        return f"{wrapper} {command}"
    program = f"./{wrapper.relative_to(here)}" if wrapper.is_relative_to(here) else str(wrapper)
    return f"{program} {command}"


def starter() -> str:
    """How the reader starts a local Edgewright."""
    command = typed("up")
    return "make up" if command.startswith("./bin/") else command
