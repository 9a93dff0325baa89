"""Running ``git``: one clean environment for every process, and short commands that are waited for."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgewright.adapters.git.failures import memory_spent, unavailable
from edgewright.adapters.git.memory_limit import UPKEEP_MEMORY, ran_out_of_memory
from edgewright.errors import Waiting

# Without these a process may not find git or its parts; nothing else of ours is Git's business. All GIT_*
# variables stay behind: inside somebody's hook they would point every command at a foreign repository.
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "GIT_EXEC_PATH")

_BOUNDED = 'ulimit -d "$0"; exec "$@"'
_NOT_FOUND = 127


def git_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a git process: no user's or machine's configuration, no prompt, C locale."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return inherited | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        # Every repository that we open is one that we made, whoever owns the mounted volume.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "LC_ALL": "C",
        **(extra or {}),
    }


def run_git(
    repository: Path,
    arguments: Sequence[str],
    *,
    timeout: float,
    accept: Sequence[int] = (0,),
    memory: int = UPKEEP_MEMORY,
) -> subprocess.CompletedProcess[bytes]:
    """Runs one git command on a bare repository and waits for it.

    Args:
        timeout: seconds after which it is killed.
        accept: exit codes that are answers; any other is a failure.
        memory: bytes that it, and each process that it starts, may allocate.

    Raises:
        edgewright.errors.Waiting: code ``git_unavailable``: git is missing, too slow, or failed; code
            ``git_memory_limit``: it needs more memory than that.
    """
    # Bounded before git begins, for what git starts first may be what needs the memory.
    command = ["sh", "-c", _BOUNDED, str(memory // 1024), "git", f"--git-dir={repository}", *arguments]
    try:
        done = subprocess.run(
            command,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise _not_found() from error
    except subprocess.TimeoutExpired as error:
        raise unavailable(f"git {arguments[0]} took longer than {timeout:.0f} s") from error
    if done.returncode in accept:
        return done
    if done.returncode == _NOT_FOUND:
        raise _not_found()
    if ran_out_of_memory(done.stderr):
        raise memory_spent(f"git {arguments[0]}", memory)
    raise unavailable(f"git {arguments[0]} ended with code {done.returncode}")


def _not_found() -> Waiting:
    return unavailable("the program git was not found on PATH")
