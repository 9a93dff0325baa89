"""A cluster's beginning, and its beginning again."""

import time
from typing import Annotated, Any

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.asking import require_yes
from edgewright.cli.commands.durations import seconds_of, spoken
from edgewright.cli.commands.naming import NamedCluster, named
from edgewright.cli.commands.options import (
    DEFAULT_TIMEOUT,
    AsJson,
    Chart,
    ClusterName,
    Command,
    Panel,
    Timeout,
    Values,
    Wait,
    Yes,
    labels_of,
    values_of,
)
from edgewright.cli.commands.screen import Document, clean, result, say, show_json
from edgewright.cli.commands.sending import send_once
from edgewright.cli.commands.waiting import Goal, wait_for
from edgewright.cli.invocation import typed
from edgewright.domain.cluster import AcceptancePolicy

_NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", help="Namespace on the edge cluster.", show_default="edgewright")
]


def create(
    *,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="1 to 63 letters, digits, '-' or '_'.", show_default=False)
    ],
    namespace: _NamespaceOption = None,
    chart: Chart = None,
    bare: Annotated[bool, typer.Option("--bare", help="The edge has its own Flux: deliver all but Flux.")] = False,
    values: Values = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY=VALUE", help="Label of the cluster; repeat the option for several."),
    ] = None,
    accept: Annotated[
        AcceptancePolicy | None,
        typer.Option("--accept", help="Who accepts the cluster when it registers.", show_default="auto"),
    ] = None,
    wait: Wait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Create a cluster and commission it."""
    seconds = seconds_of(timeout, "--timeout")
    wish: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "chart": chart,
        "bare": bare or None,
        "values": values_of(values) if values else None,
        "labels": labels_of(label or []) or None,
        "accept": accept,
    }
    with connect() as gateway:
        began = time.monotonic()
        given = {field: value for field, value in wish.items() if value is not None}
        document = send_once(gateway, "POST", "/v1/cluster", body=given).json()
        cluster = NamedCluster(document["uuid"], document["name"])
        (say if as_json else result)(f"Created {cluster.text}, {cluster.uuid}.")
        _end(gateway, cluster, document, wait=wait, seconds=seconds, began=began, as_json=as_json)
        if wait and not as_json:
            say(f"Attach it with the line that `{typed(f'cluster bootstrap {cluster.text}')}` prints.")


def recreate(
    *,
    cluster: ClusterName,
    new_hardware: Annotated[
        bool,
        typer.Option("--new-hardware", help="The hardware is new: stop trusting the old edge and its credentials."),
    ] = False,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", help="Move to this namespace on the edge cluster.", show_default=False),
    ] = None,
    chart: Chart = None,
    bare: Annotated[
        bool | None, typer.Option("--bare/--no-bare", help="The edge has its own Flux, or gets ours.")
    ] = None,
    values: Values = None,
    yes: Yes = False,
    wait: Wait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Commission a cluster again, even one that was removed centrally."""
    seconds = seconds_of(timeout, "--timeout")
    wish: dict[str, Any] = {
        "new_hardware": new_hardware,
        "namespace": namespace,
        "chart": chart,
        "bare": bare,
        "values": values_of(values) if values else None,
    }
    with connect() as gateway:
        document = gateway.get(named(gateway, cluster).path)
        meant = NamedCluster(document["uuid"], document["name"])
        if not yes:
            say(f"{meant.text} ({document['phase']}) will be commissioned again on the same repository.")
        if new_hardware and not yes:
            say("Credentials and certificate of the old edge die; its secrets must be entered again.")
        require_yes("Recreate it?", yes=yes)
        began = time.monotonic()
        given = {field: value for field, value in wish.items() if value is not None}
        document = send_once(gateway, "POST", f"{meant.path}/recreate", body=given).json()
        (say if as_json else result)(f"{meant.text} is being commissioned again.")
        shown = _end(gateway, meant, document, wait=wait, seconds=seconds, began=began, as_json=as_json)
        for secret in shown["must_reenter"]:
            say(f"Enter again: the secret {clean(secret)}.")


def _end(
    gateway: GatewayClient,
    cluster: NamedCluster,
    document: Document,
    *,
    wait: bool,
    seconds: int,
    began: float,
    as_json: bool,
) -> Document:
    """Waits if that is wanted, and shows the outcome; returns the cluster as it was seen last."""
    shown = document
    if wait:
        wait_for(gateway, cluster, Goal.READY, known=document, seconds=seconds)
        took = spoken(time.monotonic() - began)
        (say if as_json else result)(f"{cluster.text} is ready after {took}.")
        shown = gateway.get(cluster.path)
    if as_json:
        show_json(shown)
    elif not wait:
        say(f"`{typed(f'cluster wait {cluster.text}')}` waits until it is ready.")
    return shown


COMMANDS = (
    Command("create", create, Panel.LIFE, "cluster create press-shop --label site=sheffield --wait"),
    Command("recreate", recreate, Panel.LIFE, "cluster recreate press-shop --new-hardware --wait"),
)
