"""Labels and annotations of a Secret that is there; its values stay, sealed as they are."""

from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.naming import named
from edgewright.cli.commands.options import AsJson, ClusterName
from edgewright.cli.commands.secret_sending import (
    COMMIT_HEADER,
    DryRun,
    SecretName,
    pairs_of,
    place_of,
    secret_url,
    show_commit,
)
from edgewright.cli.commands.sending import send_once
from edgewright.domain.secret_template import TemplateChange, check_template_change

Changes = Annotated[
    list[str], typer.Argument(metavar="NAME=VALUE|NAME-...", help="NAME- removes one.", show_default=False)
]


def label(
    cluster: ClusterName, secret: SecretName, labels: Changes, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Change labels of a Secret; no value has to be given again."""
    _change(
        cluster, secret, TemplateChange(labels=pairs_of(labels, "secret label")), dry_run=dry_run, as_json=as_json
    )


def annotate(
    cluster: ClusterName, secret: SecretName, annotations: Changes, dry_run: DryRun = False, as_json: AsJson = False
) -> None:
    """Change annotations of a Secret; no value has to be given again."""
    _change(
        cluster,
        secret,
        TemplateChange(annotations=pairs_of(annotations, "secret annotate")),
        dry_run=dry_run,
        as_json=as_json,
    )


def _change(cluster: str, secret: str, change: TemplateChange, *, dry_run: bool, as_json: bool) -> None:
    place = place_of(secret)
    check_template_change(change)
    changed = {"labels": dict(change.labels), "annotations": dict(change.annotations)}
    body = {texts: of_them for texts, of_them in changed.items() if of_them}
    with connect() as gateway:
        meant = named(gateway, cluster)
        params = {"dryrun": "true"} if dry_run else None
        answer = send_once(gateway, "PATCH", secret_url(meant, place), params=params, body=body)
        commit = answer.headers.get(COMMIT_HEADER)
    names = ", ".join([*change.labels, *change.annotations])
    show_commit(commit, f"{secret} {names} of {meant.text}", "is changed", as_json=as_json, could="changed")
