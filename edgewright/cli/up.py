"""`edgewright up`: everything on this machine, until it is stopped."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Annotated, TypeVar, cast

import typer
from rich.console import Console
from rich.text import Text

from edgewright import __version__
from edgewright.cli.agent_image import BackgroundBuild
from edgewright.cli.clusters_page import clusters_link
from edgewright.cli.commands.asking import require_yes
from edgewright.cli.demo import DEMO_NAME, commission_demo, demo_is_due
from edgewright.cli.endpoints import Endpoints, remove_endpoints, write_endpoints
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import exclusive_home, prepare_home, refuse_half_restored, server_file
from edgewright.cli.invocation import typed
from edgewright.cli.ledger import ProcessLedger
from edgewright.cli.local import gateway_url, local_settings, require_git, with_ports
from edgewright.cli.parts import gateway_part, temporal_parts, worker_part
from edgewright.cli.share.choice import Sharing, read_sharing, write_sharing
from edgewright.cli.share.served import chosen_sharing, renewed, with_shared_bind, with_shared_door
from edgewright.cli.supervisor import StopRequested, StopSignals, Supervisor, in_background
from edgewright.settings import Settings

_READY_SECONDS = 120.0
_SETUP_SECONDS = 180.0
_REBUILD_SECONDS = 3600.0
"""Ten thousand workflows are started in a minute or so, on a slow disk in many."""

T = TypeVar("T")


def up(
    address: Annotated[
        str | None,
        typer.Argument(help="With --share: the IP address or host name under which other machines reach this one."),
    ] = None,
    share: Annotated[
        bool | None,
        typer.Option(
            "--share/--no-share",
            help="Let other machines reach the gateway, over https; or this machine only. Remembered.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Change the address even if that cuts off edges.")] = False,
) -> None:
    """Start everything on this machine; Ctrl-C stops it.

    A fresh home also gets an admin token and the cluster `demo`.

    Example: edgewright up --share 10.0.0.5
    """
    settings = local_settings()
    require_git()
    os.umask(0o077)  # whatever a child makes is this user's alone
    prepare_home(settings.home)
    with exclusive_home(settings.home):
        refuse_half_restored(settings.home)
        sharing = chosen_sharing(settings, share=share, address=address)
        if sharing.address != read_sharing(settings.home).address:
            _warn_edges(settings, sharing, yes=yes)
        stop_signals = StopSignals()
        stop_signals.listen()
        embedded = Embedded(settings, sharing, stop_signals, Console(highlight=False, soft_wrap=True))
        embedded.run()
        if embedded.is_setting_up:
            # A thread is inside a library still, and Python's own end would take the ground from under it: a crash.
            sys.stdout.flush()
            os._exit(ExitCode.OK)


def _warn_edges(settings: Settings, sharing: Sharing, *, yes: bool) -> None:
    """Before another address is in force: whom it concerns, and a question if edges would be cut off."""
    if settings.external_url:
        return  # edges use that one, whatever is shared
    from edgewright.cli.share import attached  # noqa: PLC0415 - slow, and seldom wanted

    affected = attached.affected_edges(settings, sharing)
    attached.warn_of_affected(
        affected,
        say=lambda text: typer.echo(text, err=True),
        require=lambda question: require_yes(question, yes=yes),
    )


class Embedded:
    """One run of `edgewright up`. The caller holds the home."""

    def __init__(self, settings: Settings, sharing: Sharing, stop_signals: StopSignals, screen: Console) -> None:
        self._given = settings
        self._sharing = sharing
        self._signals = stop_signals
        self._screen = screen
        self._ledger = ProcessLedger(settings.home)
        self._supervisor = Supervisor(self._ledger, stop_signals, self._say)
        self._began = time.monotonic()
        self._setup: Future[object] | None = None
        self._image: BackgroundBuild | None = None

    @property
    def is_setting_up(self) -> bool:
        """Whether work that was begun has not ended, as after a stop during the start."""
        return self._setup is not None and not self._setup.done()

    def run(self) -> None:
        """Starts, watches, and stops in the end.

        Raises:
            CliError: something could not be started, or keeps dying; nothing is left running.
        """
        home = self._given.home
        remove_endpoints(home)
        self._say(f"Edgewright {__version__} in {home}")
        for part in self._ledger.end_survivors():
            self._line(part, "stopped a process that a killed run had left behind")
        settings = with_shared_door(with_ports(with_shared_bind(self._given, self._sharing)), self._sharing)
        if self._sharing != read_sharing(home):
            write_sharing(home, self._sharing)
        try:
            self._start(settings)
            self._supervisor.watch(hourly=lambda: self._renew(settings))
        except StopRequested:
            self._say("Stopping. Press Ctrl-C again to stop at once.")
        finally:
            remove_endpoints(home)
            if self._image is not None:
                self._image.stop()
            self._supervisor.stop()
        if self._signals.count > 1:
            raise CliError(
                "Stopped at once.", "Nothing is lost: the next start continues from here.", ExitCode.INTERRUPTED
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
        self._line("storage", "up to date")
        if embedded:
            self._start_ours(settings)  # they wait for the server by themselves, and take a second to be loaded
            self._supervisor.wait_ready("temporal", seconds=_READY_SECONDS)
            self._supervisor.wait_ready("web-ui", seconds=_READY_SECONDS)
        self._beside(lambda: asyncio.run(initialise.initialise_temporal(settings)))
        self._line("temporal", f"{'running' if embedded else 'using the server'} at {settings.temporal_address}")
        rebuilt = self._beside(lambda: asyncio.run(initialise.rebuild_workflows(settings)), seconds=_REBUILD_SECONDS)
        if rebuilt:
            self._line("workflows", f"rebuilt {rebuilt} from the database")
        if not embedded:
            self._start_ours(settings)  # not before the namespace is there
        self._supervisor.wait_ready("worker", seconds=_READY_SECONDS)
        self._line("worker", "running")
        self._supervisor.wait_ready("gateway", seconds=_READY_SECONDS)
        self._line("gateway", f"running at {gateway_url(settings)}")
        self._publish(settings)
        if demo_is_due(settings.home):
            self._demo(settings)
        self._farewell(settings, token_file=str(storage.token_file), new_token=storage.token_written)
        if settings.agent_image is None and not settings.external_url_is_loopback:  # else no edge could pull it
            self._image = BackgroundBuild(settings, lambda told: self._line("agent image", told))
            self._image.start()

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
            external_url=settings.external_url or "",
            bind=settings.bind,
            ca_bundle=str(settings.ca_bundle.absolute()) if settings.ca_bundle else "",
        )
        write_endpoints(settings.home, endpoints)

    def _demo(self, settings: Settings) -> None:
        try:
            seconds = self._beside(lambda: commission_demo(settings))
        except CliError as error:
            # Only the example is missing, and the next start tries again.
            self._line(DEMO_NAME, f"not commissioned: {error.sentence} {error.hint or ''}".rstrip())
        else:
            self._line(DEMO_NAME, f"commissioned in {seconds:.2f} s")

    def _beside(self, work: Callable[[], T], *, seconds: float = _SETUP_SECONDS) -> T:
        """The result of work that runs while the children are watched."""
        outcome = in_background(work)
        self._setup = cast("Future[object]", outcome)
        if not self._supervisor.wait_for(outcome.done, seconds=seconds):
            raise CliError(
                f"Setup did not finish within {seconds:.0f} seconds.",
                f"Read the logs in {self._given.home / 'logs'}.",
                ExitCode.UNAVAILABLE,
            )
        return outcome.result()

    def _renew(self, settings: Settings) -> None:
        """Makes the gateway's certificate anew when that is due; the gateway takes it without a restart."""
        if settings.tls_cert != server_file(settings.home):
            return
        try:
            renewed(settings, self._sharing)
        except (OSError, CliError) as error:
            told = error.sentence if isinstance(error, CliError) else error.strerror
            self._say(f"The gateway's certificate could not be renewed: {told} Trying again in an hour.")

    def _farewell(self, settings: Settings, *, token_file: str, new_token: bool) -> None:
        self._say(f"Ready in {time.monotonic() - self._began:.1f} s.\n")
        if settings.temporal_ui_url:
            embedded = self._given.temporal_address is None
            link = clusters_link(settings.temporal_ui_url, settings.temporal_namespace, guarded=embedded)
            self._line("Web UI", link)
        self._line("API", f"{gateway_url(settings)}/docs")
        self._line("admin token", f"{token_file}{' (new)' if new_token else ''}")
        if settings.external_url_is_loopback:
            self._line("reachable", f"only from this machine. To let edges in: {typed('up --share')}")
        else:
            self._line("edges use", settings.effective_external_url)
        self._say("\nTry next, in another terminal:")
        for command in self._next_commands():
            self._say(f"  {typed(command)}")
        self._say("\nPress Ctrl-C to stop.")

    def _next_commands(self) -> tuple[str, ...]:
        first = ("doctor",) if self._sharing.address else ()
        return (*first, "cluster list", "cluster create press-shop --wait", "cluster bootstrap press-shop")

    def _line(self, part: str, text: str) -> None:
        self._show(Text.assemble("  ", (f"{part:<12}", "bold"), f" {text}"))

    def _say(self, text: str) -> None:
        self._show(Text(text))

    def _show(self, text: Text) -> None:
        # Whoever read this (a pipe, a terminal that was closed) may have gone; the parts stay for all that.
        with suppress(OSError, SystemExit):
            self._screen.print(text)
