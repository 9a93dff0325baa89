"""`edgewright secret`: values that are sealed at the centre and opened by one cluster only.

A value comes from stdin or a file. On the command line it would stand in the shell's history and the process list.
"""

import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.naming import Named, named
from edgewright.cli.commands.options import AsJson, ClusterName, example
from edgewright.cli.commands.screen import clean, moment, result, say, show_json, show_table
from edgewright.cli.commands.sending import send_once
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.kubernetes_names import check_namespace, check_secret_key, check_secret_name

app = typer.Typer(no_args_is_help=True)

LARGEST_BYTES = 1024 * 1024
"""Of all keys of one Secret; the gateway refuses more."""
COMMIT_HEADER, WARNING_HEADER = "Edgewright-Commit", "Edgewright-Warning"

SecretName = Annotated[
    str, typer.Argument(metavar="NAMESPACE/NAME", help="The Kubernetes Secret.", show_default=False)
]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The key inside the Secret.", show_default=False)]


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
    key: Key,
    source: Annotated[
        str,
        typer.Argument(metavar="-|@FILE", help="Where the value is read from, byte for byte.", show_default=False),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and seal, store nothing.")] = False,
    create_namespace: Annotated[
        bool, typer.Option("--create-namespace", help="Give the edge the namespace with the same commit.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Set one key of a Secret, from stdin or a file; a newline at the end is part of the value."""
    if context.args or not (source == "-" or (source.startswith("@") and len(source) > 1)):
        raise CliError(
            "The value of a secret comes from stdin or a file; as an argument, everybody here could read it.",
            "Give - and pipe the value in, or @FILE.",
            ExitCode.USAGE,
        )
    place = _place(secret, key)
    with connect() as gateway:
        meant = named(gateway, cluster)
        value = _read(source)
        asked = {"dryrun": dry_run, "create_namespace": create_namespace}
        params = {name: "true" for name, is_on in asked.items() if is_on} or None
        octets = {"Content-Type": "application/octet-stream"}
        answer = send_once(gateway, "PUT", _path(meant, place), params=params, content=value, headers=octets)
    warning = answer.headers.get(WARNING_HEADER)
    if warning:
        say(f"Warning: {clean(warning)}")
    _show(answer.headers.get(COMMIT_HEADER), f"{secret} {key} of {meant.text}", "is sealed", as_json=as_json)


@app.command("delete", epilog=example("secret delete press-shop default/db password"))
def delete(cluster: ClusterName, secret: SecretName, key: Key, as_json: AsJson = False) -> None:
    """Delete one key of a Secret; the Secret goes with its last key."""
    place = _place(secret, key)
    with connect() as gateway:
        meant = named(gateway, cluster)
        answer = send_once(gateway, "DELETE", _path(meant, place))
    _show(answer.headers.get(COMMIT_HEADER), f"{secret} {key} of {meant.text}", "is deleted", as_json=as_json)


@app.command("list", epilog=example("secret list press-shop"))
def list_secrets(cluster: ClusterName, as_json: AsJson = False) -> None:
    """List the keys of a cluster's Secrets, and which were sealed with an old certificate; never a value."""
    with connect() as gateway:
        document = gateway.get(f"{named(gateway, cluster).path}/secret")
    if as_json:
        show_json(document)
        return
    rows = [
        (f"{each['namespace']}/{each['name']}", each["key"], each["state"], moment(each["sealed_at"]))
        for each in document["items"]
    ]
    if rows:
        show_table(("secret", "key", "state", "sealed"), rows)
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


def _place(secret: str, key: str) -> tuple[str, str, str]:
    """Namespace, name and key, each one that Kubernetes would take: only then may they become a path.

    Raises:
        CliError: there is no ``/`` in between.
        Invalid: see ``edgewright.domain.kubernetes_names``.
    """
    namespace, slash, name = secret.partition("/")
    if not slash:
        raise CliError("A Secret is given as NAMESPACE/NAME.", "For example default/db.", ExitCode.USAGE)
    return check_namespace(namespace), check_secret_name(name), check_secret_key(key)


def _path(cluster: Named, place: tuple[str, str, str]) -> str:
    return "/".join([cluster.path, "secret", *(quote(part, safe="") for part in place)])


def _read(source: str) -> bytes:
    """The bytes of a value; one more than is allowed at most.

    Raises:
        CliError: the file cannot be read, or the value is too large.
    """
    if source == "-":
        if sys.stdin.isatty():
            say("Type the value and end it with Ctrl-D.")
        value = sys.stdin.buffer.read(LARGEST_BYTES + 1)
    else:
        file = Path(source.removeprefix("@"))
        try:
            with file.open("rb") as stream:
                value = stream.read(LARGEST_BYTES + 1)
        except OSError as error:
            raise CliError(f"The file {file} cannot be read ({error.strerror}).", exit_code=ExitCode.USAGE) from error
    if len(value) > LARGEST_BYTES:
        raise CliError(
            f"All keys of one Secret together may have {LARGEST_BYTES} bytes; this value has more.",
            exit_code=ExitCode.REFUSED,
            code="secret_too_large",
        )
    return value


def _show(commit: str | None, what: str, done: str, *, as_json: bool) -> None:
    if as_json:
        show_json({"commit": commit})
    elif commit is None:
        result(f"{what} could be sealed; nothing was stored.")
    else:
        result(f"{what} {done}, commit {commit}.")
