"""A cluster's end, and how it is taken back."""

import time
from typing import Annotated

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.asking import require_name
from edgewright.cli.commands.cluster_views import whole_timeline
from edgewright.cli.commands.durations import seconds_of, spoken
from edgewright.cli.commands.naming import NamedCluster, named
from edgewright.cli.commands.options import AsJson, ClusterName, Command, Panel, Wait, Yes
from edgewright.cli.commands.screen import Document, clean, result, say, show_json
from edgewright.cli.commands.sending import send_once
from edgewright.cli.commands.waiting import wait_until_gone
from edgewright.cli.invocation import typed
from edgewright.domain.events import EventKind

_MOST_NAMES = 8


def delete(
    *,
    cluster: ClusterName,
    force: Annotated[bool, typer.Option("--force", help="Do not wait for the edge to clean up.")] = False,
    deadline: Annotated[
        str | None,
        typer.Option(
            "--deadline", metavar="DURATION", help="How long to wait for the edge to clean up.", show_default="24h"
        ),
    ] = None,
    keep_workloads: Annotated[
        bool, typer.Option("--keep-workloads", help="Leave the workloads on the edge running.")
    ] = False,
    purge: Annotated[
        bool,
        typer.Option("--purge", help="Also remove the kind SealedSecret and the sealing keys from the edge."),
    ] = False,
    yes: Yes = False,
    wait: Wait = False,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="How long to wait.", show_default="to the end"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Delete a cluster, after showing what goes with it and asking you to type its name."""
    params: dict[str, str | bool] = {
        "force": force,
        "workloads": "keep" if keep_workloads else "remove",
    }
    if purge:  # a centre of an earlier version does not know it
        params["purge"] = True
    if deadline is not None:  # asked for again without one, a deletion keeps the one that it has
        params["deadline"] = str(seconds_of(deadline, "--deadline", longest=30 * 86400))
    seconds = None if timeout is None else seconds_of(timeout, "--timeout")
    with connect() as gateway:
        document = gateway.get(named(gateway, cluster).path)
        meant = NamedCluster(document["uuid"], document["name"])
        for line in _pruned(gateway, document, keep_workloads=keep_workloads, force=force, purge=purge):
            say(line)
        require_name(meant.text, yes=yes)
        began = time.monotonic()
        answer = send_once(gateway, "DELETE", meant.path, params=params).json()
        (say if as_json else result)(
            f"The deletion of {meant.text} has begun; {clean(answer['deletion']['message'])}."
        )
        if wait:
            wait_until_gone(gateway, meant, known=answer, seconds=seconds)
            (say if as_json else result)(f"{meant.text} is deleted after {spoken(time.monotonic() - began)}.")
            _say_residue(gateway, meant)
            if purge:
                _say_purge(gateway, meant)
        if as_json:
            show_json(answer)


def undelete(cluster: ClusterName, as_json: AsJson = False) -> None:
    """Cancel a deletion, as long as nothing has been removed."""
    with connect() as gateway:
        document = gateway.post(f"{named(gateway, cluster).path}/undelete")
    if as_json:
        show_json(document)
    else:
        result(f"The deletion of {document['name']} was cancelled.")


def _pruned(
    gateway: GatewayClient, document: Document, *, keep_workloads: bool, force: bool, purge: bool
) -> list[str]:
    """What the deletion of a cluster ends, line by line."""
    hosts = [str(host.get("hostname", "?")) for host in document["hosts"]]
    secrets = gateway.get(f"/v1/cluster/{document['uuid']}/secret")["items"]
    names = sorted({f"{item['namespace']}/{item['name']}" for item in secrets})
    facts = {
        "phase": document["phase"],
        "hosts": _counted(hosts),
        "secrets": _counted(names),
        "workloads": "stay on the edge" if keep_workloads else "are removed from the edge",
        "repository": f"{document['links']['repository']}, is archived",
    }
    lines = [f"This deletes the cluster {document['name']}, {document['uuid']}:"]
    lines += [f"  {fact:<10}  {clean(value)}" for fact, value in facts.items()]
    lines += _purged() if purge or (document["deletion"] or {}).get("purge") else _unpurged()
    if force:
        lines.append("  The edge is not waited for: what it has not cleaned up by itself stays there.")
    if document["deletion"]:
        lines.append("  Its deletion was asked for before; this can only hasten it.")
    return lines


def _purged() -> list[str]:
    return [
        "  On the edge, the kind SealedSecret and the sealing keys go, unless somebody else uses them. Whatever is",
        "  sealed for this edge, in Git, in its archive or in a backup, can then be opened by nobody ever again.",
    ]


def _unpurged() -> list[str]:
    return [
        "  On the edge, the kind SealedSecret and the sealing keys stay; --purge takes them, and so does the script",
        f"  that `{typed('cluster uninstall-script')}` prints, with --purge.",
    ]


def _counted(names: list[str]) -> str:
    if not names:
        return "none"
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{len(names)} ({', '.join(names[:_MOST_NAMES])}{more})"


def _say_residue(gateway: GatewayClient, cluster: NamedCluster) -> None:
    for item in gateway.get("/v1/residue")["items"]:
        if item["cluster"] == cluster.uuid:
            for left in item["residue"]:
                say(f"Left behind at {left['step']}: {clean(left['reason'])}")


def _say_purge(gateway: GatewayClient, cluster: NamedCluster) -> None:
    for event in whole_timeline(gateway, cluster)["items"]:
        if event["kind"] in {EventKind.EDGE_PURGED, EventKind.EDGE_NOT_PURGED}:
            say(clean(event["message"]))


COMMANDS = (
    Command("delete", delete, Panel.LIFE, "cluster delete press-shop --deadline 12h"),
    Command("undelete", undelete, Panel.LIFE, "cluster undelete press-shop"),
)
