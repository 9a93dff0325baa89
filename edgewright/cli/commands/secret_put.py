"""`edgewright secret put`: values from stdin and files, never from the command line."""

from pathlib import Path
from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.naming import named
from edgewright.cli.commands.options import DEFAULT_TIMEOUT, AsJson, ClusterName, Timeout
from edgewright.cli.commands.secret_sending import (
    Annotations,
    CreateNamespace,
    DryRun,
    Labels,
    SecretName,
    Wait,
    how_of,
    key_path,
    place_of,
    put_value,
    seal_secret,
    tell_sealed,
    template_of,
)
from edgewright.cli.commands.secret_sources import read_files, read_value
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.kubernetes_names import check_secret_key


def put(
    *,
    context: typer.Context,
    cluster: ClusterName,
    secret: SecretName,
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="The key inside the Secret.", show_default=False)
    ] = None,
    source: Annotated[
        str | None,
        typer.Argument(metavar="-|@FILE", help="Where the value is read from, byte for byte.", show_default=False),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--from-file",
            metavar="[KEY=]PATH",
            help="A key whose value is a file; without KEY, the file's name is the key. As often as you like.",
            show_default=False,
        ),
    ] = None,
    env_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--from-env-file",
            metavar="PATH",
            help="A file with a line KEY=VALUE for each key; quotes are part of the value.",
            show_default=False,
        ),
    ] = None,
    secret_type: Annotated[
        str | None,
        typer.Option(
            "--type", help="Of a new Secret, such as kubernetes.io/basic-auth; it never changes.", show_default=False
        ),
    ] = None,
    labels: Labels = None,
    annotations: Annotations = None,
    create_namespace: CreateNamespace = False,
    dry_run: DryRun = False,
    wait: Wait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Set one key of a Secret from stdin or a file, or several from files; a newline at the end is part of it."""
    several = bool(files or env_files)
    if context.args or (source is not None and not _is_source(source)) or (source is None and not several):
        raise CliError(
            "The value of a secret comes from stdin or a file; as an argument, everybody here could read it.",
            "Give - and pipe the value in, or @FILE.",
            ExitCode.USAGE,
        )
    if several and key is not None:
        raise CliError(
            "A KEY with - or @FILE, and --from-file, exclude each other.",
            "Give each key as --from-file KEY=PATH.",
            ExitCode.USAGE,
        )
    how = how_of(dry_run=dry_run, create_namespace=create_namespace, wait=wait, timeout=timeout, as_json=as_json)
    place, template = place_of(secret), template_of(secret_type, labels, annotations)
    if several:
        values = read_files(files or (), env_files or ())
        if not values:
            raise CliError("There is no key in these files.", exit_code=ExitCode.USAGE)
        seal_secret(cluster, secret, values, template, how)
        return
    only = check_secret_key(key or "")
    if template:  # not as a query: a centre of an earlier version would pass over it
        seal_secret(cluster, secret, {only: read_value(source or "")}, template, how)
        return
    with connect() as gateway:
        meant = named(gateway, cluster)
        value = read_value(source or "")
        answer = put_value(gateway, key_path(meant, place, only), value, how)
        tell_sealed(gateway, meant, answer, secret=secret, keys=only, how=how)


def _is_source(source: str) -> bool:
    return source == "-" or (source.startswith("@") and len(source) > 1)
