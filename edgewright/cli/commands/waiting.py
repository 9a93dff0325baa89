"""Waiting until a cluster is where it should be, with one live line that says what it waits for itself."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from edgewright.cli.client import GatewayClient
from edgewright.cli.commands.durations import spoken
from edgewright.cli.commands.naming import NamedCluster
from edgewright.cli.commands.screen import Document, clean, say
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.cluster import ConditionType, Desired, StepState

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
BLOCKED_SECONDS = 10.0
"""A cluster that is blocked for so long waits for a person; what was just mended takes a moment to show."""
_UNDER_WAY = frozenset({StepState.RUNNING, StepState.WAITING, StepState.BLOCKED})

Look = Callable[[float], str | None]
"""One look: None once it is reached, else what is going on. The argument: seconds that are left."""


class Goal(StrEnum):
    """What can be waited for."""

    READY = "ready"
    JOINED = "joined"
    AVAILABLE = "available"
    SYNCED = "synced"
    HEALTHY = "healthy"


_CONDITIONS = {
    Goal.JOINED: ConditionType.JOINED,
    Goal.AVAILABLE: ConditionType.AVAILABLE,
    Goal.SYNCED: ConditionType.SYNCED,
    Goal.HEALTHY: ConditionType.HEALTHY,
}


def wait_for(gateway: GatewayClient, cluster: NamedCluster, goal: Goal, *, known: Document, seconds: float) -> None:
    """Returns once the goal is reached.

    Args:
        known: the cluster as it was seen last; shown until the first look is back.

    Raises:
        CliError: not in time, or it cannot be reached any more: the cluster is being deleted, removed, gone or
            blocked.
    """
    hint = f"`{typed(f'cluster wait {cluster.text} --for {goal}')}` waits again."
    look = look_for(gateway, cluster, goal, hold=True)
    until(look, cluster, f"is not {goal}", known=known, seconds=seconds, hint=hint)


def look_for(gateway: GatewayClient, cluster: NamedCluster, goal: Goal, *, hold: bool) -> Look:
    """A look at whether a cluster has reached a goal; it raises once that can no longer be.

    Args:
        hold: the gateway may hold its answer for a moment, as this is the only cluster that is looked at.
    """
    blocked_since: float | None = None

    def demand_possible(document: Document) -> None:
        nonlocal blocked_since
        demand_present(cluster, document)
        obstacle = _obstacle(document, goal)
        if obstacle is None:
            blocked_since = None
            return
        blocked_since = time.monotonic() if blocked_since is None else blocked_since
        if time.monotonic() - blocked_since >= BLOCKED_SECONDS:
            raise CliError(
                f"{cluster.text} is blocked and will not become {goal} until somebody acts: {clean(obstacle)}",
                f"`{typed(f'cluster show {cluster.text}')}` shows which step is blocked, and why.",
                ExitCode.REFUSED,
            )

    def ready(left: float) -> str | None:
        wait = {"wait": round(min(LONGEST_PAUSE_SECONDS, max(left, 0.0)), 2) if hold else 0}
        answer = gateway.request("GET", f"{cluster.path}/ready", params=wait, accept=frozenset({503}))
        if answer.is_success:
            return None
        document = gateway.get(cluster.path)
        demand_possible(document)
        return state_of(document, otherwise=gateway.problem(answer).sentence)

    def condition(_left: float) -> str | None:
        document = gateway.get(cluster.path)
        demand_present(cluster, document)
        stated = _condition(document, _CONDITIONS[goal])
        if stated is not None and stated["status"] == "True":
            return None
        demand_possible(document)
        return state_of(document, otherwise=str((stated or {}).get("message") or ""))

    return ready if goal is Goal.READY else condition


def _condition(document: Document, kind: ConditionType) -> Document | None:
    return next((each for each in document.get("conditions", ()) if each["type"] == kind), None)


def _obstacle(document: Document, goal: Goal) -> str | None:
    """What a blocked cluster waits for a person with, if it cannot reach the goal before that; else None."""
    blocked = _condition(document, ConditionType.BLOCKED)
    if blocked is None or blocked["status"] != "True":
        return None
    if document["ready"] and goal in {Goal.JOINED, Goal.AVAILABLE}:
        return None  # an edge can call without the commit that is blocked
    return str(blocked.get("message") or document.get("waiting_for") or "its page says more.")


def wait_until_gone(gateway: GatewayClient, cluster: NamedCluster, *, known: Document, seconds: float | None) -> None:
    """Returns once the deletion has finished.

    Args:
        known: the cluster as it was seen last.
        seconds: None: until the deletion's own deadline has ended it.

    Raises:
        CliError: not in time, or the deletion was taken back.
    """

    def gone(_left: float) -> str | None:
        try:
            document = gateway.get(cluster.path)
        except CliError as error:
            if error.exit_code is ExitCode.NOT_FOUND:
                return None
            raise
        if document["desired"] != Desired.DELETED:
            raise CliError(f"The deletion of {cluster.text} was cancelled.", exit_code=ExitCode.REFUSED)
        return state_of(document)

    hint = f"`{typed(f'cluster timeline {cluster.text}')}` says how far it is."
    until(gone, cluster, "is not deleted", known=known, seconds=seconds, hint=hint)


def state_of(document: Document, *, otherwise: str = "") -> str:
    """What is going on with a cluster, on one line: phase, current step, what is waited for.

    Args:
        otherwise: said if the cluster itself waits for nothing.
    """
    parts = [str(document["phase"])]
    reason = str(document.get("waiting_for") or otherwise)
    step = next((step for step in document.get("steps", ()) if step["state"] in _UNDER_WAY), None)
    if step is not None and step["name"] not in reason:
        attempt = f" (attempt {step['attempts']})" if step.get("attempts", 0) > 1 else ""
        parts.append(f"{step['name']}{attempt}")
    if reason:
        parts.append(reason)
    return clean(" · ".join(parts))


def demand_present(cluster: NamedCluster, document: Document) -> None:
    """Makes sure that there is something to wait for.

    Raises:
        CliError: the cluster is being deleted, or was removed.
    """
    if document["desired"] == Desired.PRESENT:
        return
    deleting = document["desired"] == Desired.DELETED
    state, verb = ("is being deleted", "undelete") if deleting else ("was removed centrally", "recreate")
    raise CliError(
        f"{cluster.text} {state}; there is nothing to wait for.",
        f"`{typed(f'cluster {verb} {cluster.text}')}` brings it back.",
        ExitCode.REFUSED,
    )


def until(
    look: Look, cluster: NamedCluster, complaint: str, *, known: Document, seconds: float | None, hint: str
) -> None:
    """Looks again and again, and shows what is going on, until ``look`` gives None.

    Args:
        complaint: what is said of the cluster when it takes too long, such as ``is not ready``.
        known: the cluster as it was seen last.
        seconds: None: as long as it takes.
        hint: how to go on after that, or after Ctrl-C.

    Raises:
        CliError: it took too long; or whatever ``look`` raises, but for a gateway that is away.
    """
    began = time.monotonic()
    pause = FIRST_PAUSE_SECONDS
    try:
        with LiveLine(cluster.text) as line:
            line.show(state_of(known))
            while True:
                looked = time.monotonic()
                left = float("inf") if seconds is None else began + seconds - looked
                try:
                    state = look(left)
                except CliError as error:
                    # Gateways come and go; what is waited for outlives them.
                    if error.exit_code is not ExitCode.UNAVAILABLE:
                        raise
                    state, pause = f"{clean(error.sentence)} Trying again.", LONGEST_PAUSE_SECONDS
                if state is None:
                    return
                line.show(state)
                if seconds is not None and time.monotonic() >= began + seconds:
                    raise CliError(
                        f"{cluster.text} {complaint} after {spoken(seconds)}: {state}",
                        f"The work goes on at the centre. {hint}",
                        ExitCode.UNAVAILABLE,
                    )
                # A look that has waited at the gateway needs no pause on top.
                time.sleep(max(0.0, min(pause, left) - (time.monotonic() - looked)))
                pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
    except KeyboardInterrupt:
        raise CliError(
            f"No longer waiting for {cluster.text}; the work goes on at the centre.", hint, ExitCode.INTERRUPTED
        ) from None


class LiveLine(AbstractContextManager["LiveLine"]):
    """On a terminal one line that is drawn over and vanishes at the end; elsewhere a line for each change."""

    def __init__(self, name: str) -> None:
        self._name = clean(name)
        self._shown = ""
        self._plain = not sys.stderr.isatty()
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            TimeElapsedColumn(),
            console=Console(stderr=True, highlight=False),
            transient=True,
            disable=self._plain,
        )
        self._task = self._live.add_task(self._name, total=None)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Takes the line away while something else is said."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def show(self, state: str, *, only_drawn: bool = False) -> None:
        """Says what is going on. ``only_drawn``: elsewhere than on a terminal it is not worth a line."""
        if state == self._shown or (only_drawn and self._plain):
            return
        self._shown = state
        if self._plain:
            say(f"{self._name}: {state}")
        else:
            self._live.update(self._task, description=f"{self._name}  {state}")
