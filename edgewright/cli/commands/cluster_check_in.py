"""When the edge of a cluster calls."""

import re
from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.naming import named
from edgewright.cli.commands.options import AsJson, ClusterName, Command, Panel
from edgewright.cli.commands.screen import Document, clean, moment, result, show_json
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.check_in import WINDOW

Windows = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[WINDOW]...", help="Such as '22:00-06:00' or 'Mon-Fri,Sun 22:00-06:00'.", show_default=False
    ),
]


def check_in(
    cluster: ClusterName,
    windows: Windows = None,
    time_zone: Annotated[
        str, typer.Option("--time-zone", help="Time zone of the windows, as the IANA database names it.")
    ] = "UTC",
    any_time: Annotated[bool, typer.Option("--any-time", help="Let the edge call at any time again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set when the edge calls; outside these windows, silence does not count as an outage."""
    if bool(windows) == any_time:
        raise CliError(
            "Give either windows or --any-time.", "For example 'Mon-Fri 22:00-06:00', in quotes.", ExitCode.USAGE
        )
    for window in windows or ():
        if re.fullmatch(WINDOW, window) is None:
            raise CliError(
                f"{clean(window)} is not a check-in window.",
                "It looks like 22:00-06:00 or, in quotes, 'Mon-Fri,Sun 22:00-06:00'.",
                ExitCode.USAGE,
            )
    wanted = None if any_time else {"windows": windows, "time_zone": time_zone}
    with connect() as gateway:
        document = gateway.patch(named(gateway, cluster).path, {"check_in": wanted})
    if as_json:
        show_json(document)
    else:
        result(f"{document['name']} calls {spoken_check_in(document)}.")


def spoken_check_in(document: Document) -> str:
    """When a cluster calls, in words."""
    said = document.get("check_in")
    if not said:
        return "at any time"
    opens = said["next_opening"]
    ahead = f"; the next window opens {moment(opens)}" if opens else "; a window is open now"
    return f"{', '.join(said['windows'])} ({said['time_zone']}){ahead}"


COMMANDS = (
    Command(
        "check-in",
        check_in,
        Panel.EDGE,
        "cluster check-in press-shop 'Mon-Fri 22:00-06:00' --time-zone Europe/London",
    ),
)
