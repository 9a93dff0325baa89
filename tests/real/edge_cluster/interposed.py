"""A curl that holds one call of a line until something has happened to the centre."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

from edge_cluster.patience import eventually

CURL = """\
#!/bin/sh
# curl, which waits for a sign before the call number {at}, and throws the answer away if it is wanted so
number=$(($(cat "{folder}/calls" 2>/dev/null || echo 0) + 1))
echo "$number" >"{folder}/calls"
hold() {{
  : >"{folder}/held"
  while [ ! -e "{folder}/go" ]; do sleep 0.05; done
}}
[ "$number" = {at} ] || exec {curl} "$@"
if [ -n "{loses}" ]; then
  {curl} "$@" >/dev/null
  hold
  exit 52 # as curl does where no answer came
fi
hold
exec {curl} "$@"
"""


@contextmanager
def holding(folder: Path, *, at: int, loses_answer: bool = False) -> Iterator[Path]:
    """Makes ``folder/bin/curl``; yields the folder of its signs.

    Args:
        at: which call, from 1.
        loses_answer: it is the answer that is held, and then lost.
    """
    curl, signs = folder / "bin" / "curl", folder / "signs"
    shutil.rmtree(signs, ignore_errors=True)
    signs.mkdir()
    real = shutil.which("curl")
    assert real, "this needs curl"
    curl.write_text(CURL.format(at=at, folder=signs, curl=real, loses="yes" if loses_answer else ""))
    curl.chmod(0o755)
    try:
        yield signs
    finally:
        curl.unlink()


def run_while(
    run: Callable[[], "CompletedProcess[str]"], signs: Path, happens: Callable[[], None]
) -> "CompletedProcess[str]":
    """Runs a line; what happens does so while its call is held."""
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(run)
        eventually(lambda: (signs / "held").exists() or running.done())
        assert not running.done(), running.result().stderr
        happens()
        (signs / "go").touch()
        return running.result()
