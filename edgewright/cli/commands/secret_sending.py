"""What the commands that change Secrets share: their arguments, and one request for all that belongs together."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import typer

from edgewright.cli.client import Gateway, connect
from edgewright.cli.commands.naming import Named, named
from edgewright.cli.commands.screen import result, show_json
from edgewright.cli.commands.sending import send_once
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.kubernetes_names import check_namespace, check_secret_name
from edgewright.domain.secret_template import TemplateChange, check_template_change

COMMIT_HEADER = "Edgewright-Commit"

SecretName = Annotated[
    str, typer.Argument(metavar="NAMESPACE/NAME", help="The Kubernetes Secret.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check and seal, store nothing.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="A label of the whole Secret, in clear; NAME- removes one.",
        show_default=False,
    ),
]
Annotations = Annotated[
    list[str] | None,
    typer.Option(
        "--annotation", metavar="NAME=VALUE", help="An annotation of it; NAME- removes one.", show_default=False
    ),
]


def place_of(secret: str) -> tuple[str, str]:
    """Namespace and name, each one that Kubernetes would take: only then may they become a path.

    Raises:
        CliError: there is no ``/`` in between.
        Invalid: see ``edgewright.domain.kubernetes_names``.
    """
    namespace, slash, name = secret.partition("/")
    if not slash:
        raise CliError("A Secret is given as NAMESPACE/NAME.", "For example default/db.", ExitCode.USAGE)
    return check_namespace(namespace), check_secret_name(name)


def template_of(
    secret_type: str | None, labels: Sequence[str] | None, annotations: Sequence[str] | None
) -> TemplateChange:
    """What options want to change of a Secret.

    Raises:
        CliError: a label or annotation is not ``NAME=VALUE`` or ``NAME-``, or is there twice.
        Invalid: Kubernetes or the centre would refuse it.
    """
    return check_template_change(
        TemplateChange(secret_type, _pairs(labels or (), "--label"), _pairs(annotations or (), "--annotation"))
    )


def key_path(cluster: Named, place: tuple[str, str], key: str) -> str:
    """Of one key, at the gateway."""
    return "/".join([cluster.path, "secret", *(quote(part, safe="") for part in (*place, key))])


def set_values(
    gateway: Gateway,
    meant: Named,
    place: tuple[str, str],
    values: Mapping[str, bytes],
    template: TemplateChange,
    *,
    dry_run: bool = False,
) -> str | None:
    """Sets keys of one Secret in one request; returns the commit, None after a dry run."""
    secret = {"namespace": place[0], "name": place[1]}
    more = {"type": template.type, "labels": dict(template.labels), "annotations": dict(template.annotations)}
    body: dict[str, Any] = {
        "changes": [
            {**secret, "key": key, "value_base64": b64encode(value).decode()} for key, value in values.items()
        ],
        # A centre of an earlier version does not know the word, and can do what does not need it.
        **({"secrets": [{**secret, **more}]} if template else {}),
    }
    return _change(gateway, meant, body, dry_run=dry_run)


def delete_keys(gateway: Gateway, meant: Named, place: tuple[str, str], keys: Sequence[str]) -> str | None:
    """Deletes keys of one Secret in one request; returns the commit."""
    secret = {"namespace": place[0], "name": place[1]}
    return _change(gateway, meant, {"changes": [{**secret, "key": key, "delete": True} for key in keys]})


def seal_secret(
    cluster: str, secret: str, values: Mapping[str, bytes], template: TemplateChange, *, dry_run: bool, as_json: bool
) -> None:
    """Sets keys of one Secret, and says so."""
    place = place_of(secret)
    with connect() as gateway:
        meant = named(gateway, cluster)
        commit = set_values(gateway, meant, place, values, template, dry_run=dry_run)
    keys = f"{len(values)} keys" if len(values) > 1 else next(iter(values))
    show_commit(commit, f"{secret} {keys} of {meant.text}", "is sealed", as_json=as_json)


def show_commit(commit: str | None, what: str, done: str, *, as_json: bool) -> None:
    """Says what was done, and in which commit."""
    if as_json:
        show_json({"commit": commit})
    elif commit is None:
        result(f"{what} could be sealed; nothing was stored.")
    else:
        result(f"{what} {done}, commit {commit}.")


def _change(gateway: Gateway, meant: Named, body: Mapping[str, Any], *, dry_run: bool = False) -> str | None:
    params = {"dryrun": "true"} if dry_run else None
    answer = send_once(gateway, "POST", f"{meant.path}/secret", params=params, body=body)
    commit: str | None = answer.headers.get(COMMIT_HEADER)
    return commit


def _pairs(texts: Sequence[str], option: str) -> dict[str, str | None]:
    pairs: dict[str, str | None] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals and not name.endswith("-"):
            raise CliError(f"{option} takes NAME=VALUE, or NAME- to remove one.", exit_code=ExitCode.USAGE)
        name = name if equals else name.removesuffix("-")
        if name in pairs:
            raise CliError(f"{option} is there twice for one name.", exit_code=ExitCode.USAGE)
        pairs[name] = value if equals else None
    return pairs
