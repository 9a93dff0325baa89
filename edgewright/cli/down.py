"""`edgewright down`: stops the `edgewright up` of this home, wherever it was started."""

import time
from pathlib import Path
from typing import Annotated

import psutil
import typer

from edgewright.cli.endpoints import remove_endpoints
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import exclusive_home, holder
from edgewright.cli.ledger import ProcessLedger
from edgewright.cli.local import local_settings


def down(
    timeout: Annotated[float, typer.Option(help="Seconds to wait until everything has stopped.", min=0)] = 60.0,
) -> None:
    """Stop what `edgewright up` started, from another terminal."""
    home = local_settings().home
    until = time.monotonic() + timeout
    pid = holder(home)
    while pid == 0 and time.monotonic() < until:  # somebody is just about to say its pid, or asks as we do
        time.sleep(0.05)
        pid = holder(home)
    if not pid:
        _clear_up(home)
        return
    try:
        process = psutil.Process(pid)
        process.terminate()
    except psutil.NoSuchProcess:
        return  # it ended by itself at this moment
    except psutil.AccessDenied as error:
        raise CliError(f"Process {pid} belongs to another user.", "Stop it as that user.") from error
    while _lives(process):
        if time.monotonic() > until:
            raise CliError(
                f"Process {pid} has not stopped within {timeout:g} seconds.",
                f"Wait longer with --timeout, or kill it: kill -9 {pid}. The next `up` cleans up.",
                ExitCode.UNAVAILABLE,
            )
        time.sleep(0.05)
    typer.echo("Stopped.")


def _lives(process: psutil.Process) -> bool:
    """Whether it runs; one whose exit code its parent has not taken yet does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _clear_up(home: Path) -> None:
    """No `up` runs here. Stops what a killed one has left behind."""
    if not home.is_dir():
        typer.echo(f"Not running: there is no home {home}.")
        return
    with exclusive_home(home):
        survivors = ProcessLedger(home).end_survivors()
        remove_endpoints(home)
    if survivors:
        typer.echo(f"Stopped what a killed run had left behind: {', '.join(survivors)}.")
    else:
        typer.echo(f"Not running in {home}.")
