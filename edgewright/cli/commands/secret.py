"""`edgewright secret`: values that are sealed at the centre and opened by one cluster only.

A value comes from stdin or a file. On the command line it would stand in the shell's history and the process list.
"""

from pathlib import Path
from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands import secret_types
from edgewright.cli.commands.naming import named
from edgewright.cli.commands.options import AsJson, ClusterName, example
from edgewright.cli.commands.screen import Document, clean, moment, result, say, show_json, show_table
from edgewright.cli.commands.secret_sending import (
    COMMIT_HEADER,
    Annotations,
    DryRun,
    Labels,
    SecretName,
    delete_keys,
    key_path,
    place_of,
    seal_secret,
    show_commit,
    template_of,
)
from edgewright.cli.commands.secret_sources import read_files, read_value
from edgewright.cli.commands.sending import send_once
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.kubernetes_names import check_secret_key

app = typer.Typer(no_args_is_help=True)


@app.command(
    "put",
    epilog=example("secret put press-shop default/db password @password.txt"),
    # What looks like an option may be a value that was put in the wrong place: it must not be repeated on the screen.
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "help_option_names": ["--help"],  # -h is in many a value
    },
)
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
    dry_run: DryRun = False,
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
    place, template = place_of(secret), template_of(secret_type, labels, annotations)
    if several:
        values = read_files(files or (), env_files or ())
        if not values:
            raise CliError("There is no key in these files.", exit_code=ExitCode.USAGE)
        seal_secret(cluster, secret, values, template, dry_run=dry_run, as_json=as_json)
        return
    only = check_secret_key(key or "")
    if template:  # not as a query: a centre of an earlier version would pass over it
        seal_secret(cluster, secret, {only: read_value(source or "")}, template, dry_run=dry_run, as_json=as_json)
        return
    with connect() as gateway:
        meant = named(gateway, cluster)
        value = read_value(source or "")
        params = {"dryrun": "true"} if dry_run else None
        octets = {"Content-Type": "application/octet-stream"}
        path = key_path(meant, place, only)
        answer = send_once(gateway, "PUT", path, params=params, content=value, headers=octets)
    show_commit(answer.headers.get(COMMIT_HEADER), f"{secret} {key} of {meant.text}", "is sealed", as_json=as_json)


app.command("tls", epilog=example("secret tls press-shop default/web --cert web.pem --key web.key"))(secret_types.tls)
app.command(
    "registry",
    epilog=example("secret registry press-shop default/pull --server registry.example.com --username edge"),
)(secret_types.registry)


@app.command("delete", epilog=example("secret delete press-shop default/db password"))
def delete(
    cluster: ClusterName,
    secret: SecretName,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY]...", help="Keys inside the Secret.", show_default=False)
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="Delete all keys, and so the Secret.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete keys of a Secret in one commit; the Secret goes with its last key."""
    place = place_of(secret)
    wanted = [check_secret_key(key) for key in keys or ()]
    if whole == bool(wanted):
        raise CliError("Give the keys to delete, or --all.", exit_code=ExitCode.USAGE)
    with connect() as gateway:
        meant = named(gateway, cluster)
        if whole:
            wanted = _keys_of(gateway.get(f"{meant.path}/secret"), place)
        if not wanted:
            raise CliError(f"{meant.text} has no Secret {secret}.", exit_code=ExitCode.NOT_FOUND)
        if len(wanted) == 1:
            commit = send_once(gateway, "DELETE", key_path(meant, place, wanted[0])).headers.get(COMMIT_HEADER)
        else:
            commit = delete_keys(gateway, meant, place, wanted)
    show_commit(commit, f"{secret} {', '.join(wanted)} of {meant.text}", "is deleted", as_json=as_json)


@app.command("list", epilog=example("secret list press-shop"))
def list_secrets(cluster: ClusterName, as_json: AsJson = False) -> None:
    """List the keys of a cluster's Secrets, and which were sealed with an old certificate; never a value."""
    with connect() as gateway:
        document = gateway.get(f"{named(gateway, cluster).path}/secret")
    if as_json:
        show_json(document)
        return
    types = {(each["namespace"], each["name"]): each["type"] for each in document.get("secrets", ())}
    rows = [
        (
            f"{each['namespace']}/{each['name']}",
            each["key"],
            each["state"],
            moment(each["sealed_at"]),
            types.get((each["namespace"], each["name"]), ""),
        )
        for each in document["items"]
    ]
    if rows:
        show_table(("secret", "key", "state", "sealed", "type"), rows)
    else:
        say("No secrets.")
    for path in document["unreadable"]:
        say(f"Not a SealedSecret: {clean(path)}")
    for name in document["must_reenter"]:
        say(f"Enter again: {clean(name)}")


@app.command("reseal", epilog=example('secret reseal press-shop --reason "stolen disk"'))
def reseal(
    cluster: ClusterName,
    reason: Annotated[str, typer.Option("--reason", help="Why; shown in the timeline.", show_default=False)] = "",
    as_json: AsJson = False,
) -> None:
    """Have the edge seal what an old key sealed anew, for its newest key; no plaintext leaves it."""
    with connect() as gateway:
        meant = named(gateway, cluster)
        document = gateway.post(f"{meant.path}/reseal", {"reason": reason})
    if as_json:
        show_json(document)
        return
    result(
        f"{meant.text} is to re-seal {document['left']} of {document['secrets']} Secrets with its next heartbeats."
    )
    say(f"How far it is: edgewright cluster show {meant.text}.")


def _is_source(source: str) -> bool:
    return source == "-" or (source.startswith("@") and len(source) > 1)


def _keys_of(listed: Document, place: tuple[str, str]) -> list[str]:
    return [each["key"] for each in listed["items"] if (each["namespace"], each["name"]) == place]
