"""`edgewright secret put`: values from a hidden prompt, stdin or files; only what is no secret from an argument."""

import sys
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
    set_values,
    tell_sealed,
    template_of,
)
from edgewright.cli.commands.secret_sources import ValueRules, read_keys, read_value
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
        typer.Argument(
            metavar="-|@FILE",
            help="Where the value comes from: stdin, or a file. A terminal asks for it; nothing is shown.",
            show_default=False,
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--from-file",
            metavar="[KEY=]PATH",
            help="A key whose value is a file; without KEY, the file's name is the key. Repeatable.",
            show_default=False,
        ),
    ] = None,
    env_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--from-env-file",
            metavar="PATH",
            help="A file with a line KEY=VALUE for each key; quotes are part of the value. Repeatable.",
            show_default=False,
        ),
    ] = None,
    literals: Annotated[
        list[str] | None,
        typer.Option(
            "--from-literal",
            metavar="KEY=VALUE",
            help="A key whose value is not secret, such as a user name: the process list and your shell's history "
            "show it. Repeatable.",
            show_default=False,
        ),
    ] = None,
    keep_newline: Annotated[
        bool | None,
        typer.Option(
            "--keep-newline/--drop-newline",
            help="Keep or remove one newline at the end of each value; without either, it is kept.",
            show_default=False,
        ),
    ] = None,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Take an empty value, too.")] = False,
    secret_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="Type of a new Secret, such as kubernetes.io/basic-auth; it never changes.",
            show_default=False,
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
    """Set one key of a Secret from a prompt, stdin or a file, or several keys in one commit."""
    several = bool(files or env_files or literals)
    _check_arguments(context.args, key, source, several=several)
    how = how_of(
        dry_run=dry_run,
        create_namespace=create_namespace,
        allow_empty=allow_empty,
        wait=wait,
        timeout=timeout,
        as_json=as_json,
    )
    place, template = place_of(secret), template_of(secret_type, labels, annotations)
    rules = ValueRules(keep_newline, allow_empty=allow_empty)
    only = None if several else check_secret_key(key or "")
    values = read_keys(files or (), env_files or (), literals or (), rules) if several else {}
    with connect() as gateway:
        meant = named(gateway, cluster)
        if only is not None:  # only now: nobody types a value for a cluster that is not there
            values = {only: read_value(source, only, rules)}
        if only is None or template:  # not as a query: a centre of an earlier version would pass over the template
            answer = set_values(gateway, meant, place, values, template=template, how=how)
        else:
            answer = put_value(gateway, key_path(meant, place, only), values[only], how)
        keys = f"{len(values)} keys" if len(values) > 1 else next(iter(values))
        tell_sealed(gateway, meant, answer, secret=secret, keys=keys, how=how)


def _check_arguments(beyond: list[str], key: str | None, source: str | None, *, several: bool) -> None:
    """Refuses a value among the arguments, and repeats nothing of it.

    Raises:
        CliError: it is there, or nothing says where the value comes from.
    """
    is_asked = key is not None and source is None and sys.stdin.isatty()
    if beyond or (source is not None and not _is_source(source)) or not (source or several or is_asked):
        raise CliError(
            "The value of a secret comes from stdin or a file; as an argument, everybody here could read it.",
            "Give - and pipe the value in, or @FILE. On a terminal, - asks for the value.",
            ExitCode.USAGE,
        )
    if several and key is not None:
        raise CliError(
            "A KEY with - or @FILE does not go together with --from-file, --from-env-file and --from-literal.",
            "Give each key as --from-file KEY=PATH.",
            ExitCode.USAGE,
        )


def _is_source(source: str) -> bool:
    return source == "-" or (source.startswith("@") and len(source) > 1)
