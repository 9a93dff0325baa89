"""How the edge of a cluster gets in: the bootstrap line, and the answer to who has registered."""

from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.asking import require_yes
from edgewright.cli.commands.durations import seconds_of, until
from edgewright.cli.commands.naming import named
from edgewright.cli.commands.options import AsJson, ClusterName, Yes
from edgewright.cli.commands.screen import clean, moment, result, say, show_json

_SHORTEST_TOKEN, _LONGEST_TOKEN = 60, 7 * 86400


def bootstrap(
    cluster: ClusterName,
    expires_in: Annotated[
        str, typer.Option("--expires-in", metavar="DURATION", help="How long the line works, 7d at most.")
    ] = "1h",
    as_json: AsJson = False,
) -> None:
    """Print the line that attaches a Kubernetes cluster; earlier lines that were not used die."""
    seconds = seconds_of(expires_in, "--expires-in", shortest=_SHORTEST_TOKEN, longest=_LONGEST_TOKEN)
    with connect() as gateway:
        line = gateway.post(f"{named(gateway, cluster).path}/registration-token", {"expires_in": seconds})
    say(
        f"Run this where kubectl reaches the cluster, before {moment(line['expires_at'])}"
        f" (in {until(line['expires_at'])}). Treat it like a password."
    )
    if line.get("warning"):
        say(f"Warning: {clean(line['warning'])}")
    if as_json:
        show_json(line)
    else:
        result(line["command"])


def accept(cluster: ClusterName, yes: Yes = False, as_json: AsJson = False) -> None:
    """Accept a cluster that has registered, after comparing its short code."""
    with connect() as gateway:
        meant = named(gateway, cluster)
        document = gateway.get(meant.path)
        if document["acceptance"] == "pending":
            say(f"A cluster has registered as {document['name']} with the code {clean(document['short_code'])}.")
            require_yes("Does the bootstrap script show the same code?", yes=yes)
        # Whoever is not pending gets the gateway's own sentence.
        document = gateway.post(f"{meant.path}/accept")
    if as_json:
        show_json(document)
    else:
        result(f"{document['name']} is {document['acceptance']}.")


def reject(cluster: ClusterName, as_json: AsJson = False) -> None:
    """Reject a cluster that has registered: its credentials die, its token is free again."""
    with connect() as gateway:
        document = gateway.post(f"{named(gateway, cluster).path}/reject")
    if as_json:
        show_json(document)
    else:
        result(f"{document['name']} is {document['acceptance']}.")
