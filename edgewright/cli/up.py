"""`edgewright up`: everything on this machine, until it is stopped."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from edgewright import __version__
from edgewright.cli.clusters_page import clusters_link
from edgewright.cli.demo import DEMO_NAME, commission_demo, demo_is_due
from edgewright.cli.endpoints import Endpoints, remove_endpoints, write_endpoints
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import exclusive_home, prepare_home, refuse_half_restored
from edgewright.cli.invocation import typed
from edgewright.cli.ledger import ProcessLedger
from edgewright.cli.local import gateway_url, local_settings, require_git, with_ports
from edgewright.cli.parts import gateway_part, temporal_parts, worker_part
from edgewright.cli.supervisor import StopRequested, StopSignals, Supervisor, in_background
from edgewright.settings import Settings

_READY_SECONDS = 120.0
_SETUP_SECONDS = 180.0
_REBUILD_SECONDS = 3600.0
"""Ten thousand workflows are started in a minute or so, on a slow disk in many."""

T = TypeVar("T")


def up() -> None:
    """Start everything on this machine, and stop it again on Ctrl-C.

    On a fresh home it also makes the admin token and commissions the cluster `demo`.
    """
    settings = local_settings()
    require_git()
    os.umask(0o077)  # whatever a child makes is this user's alone
    stop_signals = StopSignals()
    stop_signals.listen()
    prepare_home(settings.home)
    with exclusive_home(settings.home):
        refuse_half_restored(settings.home)
        Embedded(settings, stop_signals, Console(highlight=False, soft_wrap=True)).run()


class Embedded:
    """One run of `edgewright up`. The caller holds the home."""

    def __init__(self, settings: Settings, stop_signals: StopSignals, screen: Console) -> None:
        self._given = settings
        self._signals = stop_signals
        self._screen = screen
        self._ledger = ProcessLedger(settings.home)
        self._supervisor = Supervisor(self._ledger, stop_signals, self._say)
        self._began = time.monotonic()

    def run(self) -> None:
        """Starts, watches, and stops in the end.

        Raises:
            CliError: something could not be started, or keeps dying; nothing is left running.
        """
        home = self._given.home
        remove_endpoints(home)
        self._say(f"Edgewright {__version__}, home {home}")
        for part in self._ledger.end_survivors():
            self._line(part, "was left over from a run that was killed; ended it")
        settings = with_ports(self._given)
        try:
            self._start(settings)
            self._supervisor.watch()
        except StopRequested:
            self._say("Stopping (Ctrl-C again kills).")
        finally:
            remove_endpoints(home)
            self._supervisor.stop()
        if self._signals.count > 1:
            raise CliError(
                "Killed what had not stopped yet.", "Nothing is lost: the next start goes on.", ExitCode.INTERRUPTED
            )
        self._say("Stopped.")

    def _start(self, settings: Settings) -> None:
        # Slow to import, so what can begin before begins before.
        embedded = self._given.temporal_address is None
        if embedded:
            for part in temporal_parts(settings):
                self._supervisor.start(part)
        from edgewright.cli import initialise  # noqa: PLC0415 - the server starts during this slow import

        storage = self._beside(lambda: asyncio.run(initialise.initialise_storage(settings, demo=settings.demo)))
        self._line("storage", "database, repositories and charts are up to date")
        if embedded:
            self._start_ours(settings)  # they wait for the server by themselves, and take a second to be loaded
            self._supervisor.wait_ready("temporal", seconds=_READY_SECONDS)
            self._supervisor.wait_ready("web-ui", seconds=_READY_SECONDS)
        self._beside(lambda: asyncio.run(initialise.initialise_temporal(settings)))
        self._line("temporal", f"{settings.temporal_address}{'' if embedded else ' (not ours)'}")
        rebuilt = self._beside(lambda: asyncio.run(initialise.rebuild_workflows(settings)), seconds=_REBUILD_SECONDS)
        if rebuilt:
            self._line("workflows", f"{rebuilt} rebuilt from the database")
        if not embedded:
            self._start_ours(settings)  # not before the namespace is there
        self._supervisor.wait_ready("worker", seconds=_READY_SECONDS)
        self._line("worker", "polls")
        self._supervisor.wait_ready("gateway", seconds=_READY_SECONDS)
        self._line("gateway", gateway_url(settings))
        self._publish(settings)
        if demo_is_due(settings.home):
            self._demo(settings)
        self._farewell(settings, token_file=str(storage.token_file), new_token=storage.token_written)

    def _start_ours(self, settings: Settings) -> None:
        for part in (worker_part(settings), gateway_part(settings)):
            self._supervisor.start(part)

    def _publish(self, settings: Settings) -> None:
        endpoints = Endpoints(
            gateway=gateway_url(settings),
            temporal=str(settings.temporal_address),
            temporal_ui=settings.temporal_ui_url or "",
            pid=os.getpid(),
            worker_metrics=f"http://{settings.worker_metrics_address}/metrics",
        )
        write_endpoints(settings.home, endpoints)

    def _demo(self, settings: Settings) -> None:
        try:
            seconds = self._beside(lambda: commission_demo(settings))
        except CliError as error:
            # Everything runs; the example alone is missing, and the next start tries again.
            self._line(DEMO_NAME, f"could not be commissioned: {error.sentence} {error.hint or ''}".rstrip())
        else:
            self._line(DEMO_NAME, f"commissioned in {seconds:.2f} s")

    def _beside(self, work: Callable[[], T], *, seconds: float = _SETUP_SECONDS) -> T:
        """The result of work that runs while the children are watched."""
        outcome = in_background(work)
        if not self._supervisor.wait_for(outcome.done, seconds=seconds):
            raise CliError(
                f"Setting up did not end within {seconds:.0f} seconds.",
                f"Look at the logs in {self._given.home / 'logs'}.",
                ExitCode.UNAVAILABLE,
            )
        return outcome.result()

    def _farewell(self, settings: Settings, *, token_file: str, new_token: bool) -> None:
        self._say(f"Everything runs, after {time.monotonic() - self._began:.1f} s.\n")
        if settings.temporal_ui_url:
            embedded = self._given.temporal_address is None
            link = clusters_link(settings.temporal_ui_url, settings.temporal_namespace, guarded=embedded)
            self._line("Web UI", link)
        self._line("API", f"{gateway_url(settings)}/docs")
        self._line("admin token", f"{token_file}{' (new)' if new_token else ''}")
        if settings.external_url_is_loopback:
            self._line(
                "note", "other machines cannot reach this URL; set EDGEWRIGHT_EXTERNAL_URL to one that they can"
            )
        self._say("\nTry next, in another terminal:")
        for command in ("cluster list", "cluster create press-shop --wait", "cluster bootstrap press-shop"):
            self._say(f"  {typed(command)}")
        self._say("\nCtrl-C stops everything.")

    def _line(self, part: str, text: str) -> None:
        self._show(Text.assemble("  ", (f"{part:<12}", "bold"), f" {text}"))

    def _say(self, text: str) -> None:
        self._show(Text(text))

    def _show(self, text: Text) -> None:
        # Whoever read this (a pipe, a terminal that was closed) may have gone; the parts stay for all that.
        with suppress(OSError, SystemExit):
            self._screen.print(text)
