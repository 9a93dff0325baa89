"""Waiting for clusters: one, several by name, or all that labels select."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.durations import seconds_of, spoken
from edgewright.cli.commands.naming import NamedCluster, clusters_called, clusters_labelled, named
from edgewright.cli.commands.options import DEFAULT_TIMEOUT, AsJson, Command, Panel, Timeout, labels_of
from edgewright.cli.commands.screen import clean, result, say, show_json
from edgewright.cli.commands.waiting import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Goal,
    LiveLine,
    Look,
    look_for,
    wait_for,
)
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed

_MOST_NAMED_AGAIN = 8


def wait(
    *,
    clusters: Annotated[
        list[str] | None, typer.Argument(metavar="[CLUSTER]...", help="Names or UUIDs.", show_default=False)
    ] = None,
    goal: Annotated[
        Goal,
        typer.Option(
            "--for",
            help="ready: commissioned; joined: it has reported; synced: it runs the newest; healthy: nothing fails.",
        ),
    ] = Goal.READY,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="KEY=VALUE", help="All clusters with this label; may be given several times."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All clusters that there are now.")] = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Wait until clusters are ready, joined, available, synced or healthy."""
    seconds = seconds_of(timeout, "--timeout")
    labels = [f"{key}={value}" for key, value in labels_of(label or []).items()]
    if sum(map(bool, (clusters, labels, every))) != 1:
        raise CliError(
            "Name the clusters to wait for, or give --label, or --all.",
            f"For example `{typed('cluster wait press-shop line-4')}`.",
            ExitCode.USAGE,
        )
    began = time.monotonic()
    with connect() as gateway:
        one = clusters is not None and len(clusters) == 1
        if clusters and one:
            document = gateway.get(named(gateway, clusters[0]).path)
            wanted = [NamedCluster(document["uuid"], document["name"])]
            wait_for(gateway, wanted[0], goal, known=document, seconds=seconds)
        else:
            wanted = clusters_called(gateway, clusters) if clusters else clusters_labelled(gateway, labels)

        def tell(cluster: NamedCluster) -> None:
            if as_json:
                show_json(gateway.get(cluster.path), indent=2 if one else None)
            else:
                result(f"{cluster.text} is {goal}; waited {spoken(time.monotonic() - began)}.")

        if one:
            tell(wanted[0])
        else:
            wait_for_all(gateway, wanted, goal, seconds=seconds, arrived=tell)


@dataclass
class _Waiting:
    """How far several clusters are. ``lost``: those that cannot get there, with what that counts as."""

    looks: dict[NamedCluster, Look]
    states: dict[NamedCluster, str] = field(default_factory=dict)
    lost: dict[NamedCluster, ExitCode] = field(default_factory=dict)


def wait_for_all(
    gateway: GatewayClient,
    clusters: Sequence[NamedCluster],
    goal: Goal,
    *,
    seconds: float,
    arrived: Callable[[NamedCluster], None],
) -> None:
    """Returns once every cluster has reached the goal.

    Args:
        arrived: called with each cluster as it gets there.

    Raises:
        CliError: some did not in time, exit code ``UNAVAILABLE``; or some cannot any more, which is said as soon as
            it is found, and ends nothing for the others.
    """
    ends = time.monotonic() + seconds
    waiting = _Waiting({each: look_for(gateway, each, goal, hold=False) for each in clusters})
    pause = FIRST_PAUSE_SECONDS
    try:
        with LiveLine(f"{len(clusters)} clusters") as line:
            while waiting.looks:
                away = _look_round(waiting, line, arrived, ends)
                if not waiting.looks:
                    break
                line.show(away or f"{len(clusters) - len(waiting.looks) - len(waiting.lost)} are {goal}")
                if time.monotonic() >= ends:
                    raise _not_in_time(waiting, goal, len(clusters), seconds)
                pause = LONGEST_PAUSE_SECONDS if away else pause
                time.sleep(max(0.0, min(pause, ends - time.monotonic())))
                pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
    except KeyboardInterrupt:
        raise CliError(
            f"No longer waiting for {_listed(waiting.looks)}; the work goes on at the centre.",
            exit_code=ExitCode.INTERRUPTED,
        ) from None
    if waiting.lost:
        raise CliError(
            f"{len(waiting.lost)} of {len(clusters)} clusters did not become {goal}: {_listed(waiting.lost)}.",
            f"`{typed('cluster show NAME')}` shows what a cluster waits for.",
            max(waiting.lost.values(), key=lambda code: code is ExitCode.REFUSED),
        )


def _look_round(
    waiting: _Waiting, line: LiveLine, arrived: Callable[[NamedCluster], None], ends: float
) -> str | None:
    """One look at each cluster that is still waited for; when the time is over, only at those not looked at yet.

    Returns:
        None, or that the gateway is away.
    """
    for cluster, look in list(waiting.looks.items()):
        if cluster in waiting.states and time.monotonic() >= ends:
            continue
        try:
            state = look(0.0)
            if state is None:
                with line.aside():
                    arrived(cluster)
                del waiting.looks[cluster]
            else:
                waiting.states[cluster] = state
        except CliError as error:
            if error.exit_code is ExitCode.UNAVAILABLE:
                return f"{clean(error.sentence)} Trying again."
            if error.exit_code is ExitCode.NOT_ALLOWED:
                raise
            waiting.lost[cluster] = error.exit_code
            del waiting.looks[cluster]
            with line.aside():
                say(clean(error.sentence))
    return None


def _not_in_time(waiting: _Waiting, goal: Goal, count: int, seconds: float) -> CliError:
    late = waiting.looks
    again = " ".join(each.text for each in late) if len(late) <= _MOST_NAMED_AGAIN else "CLUSTER..."
    states = "".join(f"{each.text}: {waiting.states.get(each, 'not asked yet')}\n" for each in late)
    verb = "is" if len(late) == 1 else "are"
    return CliError(
        f"{len(late)} of {count} clusters {verb} not {goal} after {spoken(seconds)}: {_listed(late)}.",
        f"{states}The work goes on at the centre. `{typed(f'cluster wait {again} --for {goal}')}` waits again.",
        ExitCode.UNAVAILABLE,
    )


def _listed(clusters: Iterable[NamedCluster]) -> str:
    return ", ".join(each.text for each in clusters)


COMMANDS = (Command("wait", wait, Panel.LIFE, "cluster wait press-shop line-4 --for available --timeout 10m"),)
