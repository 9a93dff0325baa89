"""Labels and annotations of a Secret that is there; its values stay, sealed as they are."""

from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.naming import named
from edgewright.cli.commands.options import DEFAULT_TIMEOUT, AsJson, ClusterName, Timeout
from edgewright.cli.commands.secret_sending import (
    DryRun,
    How,
    SecretName,
    how_of,
    pairs_of,
    place_of,
    secret_url,
    tell_changed,
)
from edgewright.cli.commands.sending import send_once
from edgewright.domain.secret_template import TemplateChange, check_template_change

Changes = Annotated[
    list[str],
    typer.Argument(metavar="NAME=VALUE|NAME-...", help="NAME=VALUE sets one; NAME- removes it.", show_default=False),
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait until the Secret on the edge has changed, and show progress.")
]


def label(
    *,
    cluster: ClusterName,
    secret: SecretName,
    labels: Changes,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Change the labels of a Secret; its values stay as they are."""
    how = how_of(dry_run=dry_run, wait=wait, timeout=timeout, as_json=as_json)
    _change(cluster, secret, TemplateChange(labels=pairs_of(labels, "secret label")), how)


def annotate(
    *,
    cluster: ClusterName,
    secret: SecretName,
    annotations: Changes,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Change the annotations of a Secret; its values stay as they are."""
    how = how_of(dry_run=dry_run, wait=wait, timeout=timeout, as_json=as_json)
    _change(cluster, secret, TemplateChange(annotations=pairs_of(annotations, "secret annotate")), how)


def _change(cluster: str, secret: str, change: TemplateChange, how: How) -> None:
    place = place_of(secret)
    check_template_change(change)
    changed = {"labels": dict(change.labels), "annotations": dict(change.annotations)}
    body = {texts: of_them for texts, of_them in changed.items() if of_them}
    with connect() as gateway:
        meant = named(gateway, cluster)
        answer = send_once(gateway, "PATCH", secret_url(meant, place), params=how.params, body=body)
        names = ", ".join([*change.labels, *change.annotations])
        tell_changed(gateway, meant, answer, secret=secret, names=names, how=how)
