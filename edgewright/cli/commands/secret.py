"""`edgewright secret`: values that are sealed at the centre and opened by one cluster only.

A value comes from a prompt, stdin or a file. On the command line it would stand in the shell's history and the
process list.
"""

from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands import secret_labels, secret_put, secret_types
from edgewright.cli.commands.durations import ago
from edgewright.cli.commands.listing import Listing, form_of, show_listing
from edgewright.cli.commands.naming import named
from edgewright.cli.commands.options import AsJson, ClusterName, Form, Output, example
from edgewright.cli.commands.screen import Column, Document, clean, moment, result, say, show_json
from edgewright.cli.commands.secret_sending import (
    COMMIT_HEADER,
    SecretName,
    delete_keys,
    key_path,
    place_of,
    show_commit,
)
from edgewright.cli.commands.sending import send_once
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.kubernetes_names import SecretReference, check_secret_key

app = typer.Typer(no_args_is_help=True)


def _place(item: Document) -> str:
    return f"{item['namespace']}/{item['name']}"


def _state(item: Document) -> str:
    """A centre of an older version does not say whether it opens."""
    return "no key opens it" if item.get("opens") is False else str(item["state"])


_SECRET = Column("secret", _place, long=True)
_KEY = Column("key", lambda item: str(item["key"]), long=True)
_STATE = Column("state", _state)
_EDGE = Column("edge", lambda item: str(item.get("edge_state", "")))
_TYPE = Column("type", lambda item: str(item["type"]))
_SECRETS = Listing(
    columns=(_SECRET, _KEY, _STATE, _EDGE, Column("sealed", lambda item: ago(item["sealed_at"])), _TYPE),
    wide=(
        _SECRET,
        _KEY,
        _STATE,
        _EDGE,
        Column("sealed", lambda item: moment(item["sealed_at"])),
        Column("certificate", lambda item: str(item["fingerprint"] or "")),
        _TYPE,
    ),
    name=_place,
)

app.command(
    "put",
    epilog=example("secret put press-shop default/db password @password.txt"),
    # What looks like an option may be a value that was put in the wrong place: it must not be repeated on the screen.
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "help_option_names": ["--help"],  # -h is in many a value
    },
)(secret_put.put)
app.command("tls", epilog=example("secret tls press-shop default/web --cert web.pem --key web.key"))(secret_types.tls)
app.command(
    "registry",
    epilog=example("secret registry press-shop default/pull --server registry.example.com --username edge"),
)(secret_types.registry)


app.command("label", epilog=example("secret label press-shop default/db app=press old-"))(secret_labels.label)
app.command("annotate", epilog=example('secret annotate press-shop default/db example.com/owner="Line 3"'))(
    secret_labels.annotate
)


@app.command("delete", epilog=example("secret delete press-shop default/db password"))
def delete(
    cluster: ClusterName,
    secret: SecretName,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY]...", help="Keys to delete.", show_default=False)
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="Delete the whole Secret.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete keys of a Secret in one commit; deleting the last key deletes the Secret."""
    place = place_of(secret)
    wanted = [check_secret_key(key) for key in keys or ()]
    if whole == bool(wanted):
        raise CliError(
            "Give either the keys to delete or --all.",
            f"`{typed('secret list CLUSTER')}` shows the keys.",
            ExitCode.USAGE,
        )
    with connect() as gateway:
        meant = named(gateway, cluster)
        if whole:
            wanted = _keys_of(gateway.get(f"{meant.path}/secret"), place)
        if not wanted:
            raise CliError(
                f"{meant.text} has no Secret {secret}.",
                f"`{typed(f'secret list {meant.text}')}` shows all.",
                ExitCode.NOT_FOUND,
            )
        if len(wanted) == 1:
            commit = send_once(gateway, "DELETE", key_path(meant, place, wanted[0])).headers.get(COMMIT_HEADER)
        else:
            commit = delete_keys(gateway, meant, place, wanted)
    what = f"{secret} {', '.join(wanted)} of {meant.text}"
    show_commit(commit, what, "is deleted", secret=secret, as_json=as_json)


@app.command("list", epilog=example("secret list press-shop"))
def list_secrets(cluster: ClusterName, output: Output = Form.TABLE, as_json: AsJson = False) -> None:
    """List the keys of a cluster's Secrets and how far each has come; values are never shown."""
    form = form_of(output, as_json=as_json)
    with connect() as gateway:
        document = gateway.get(f"{named(gateway, cluster).path}/secret")
    types = {(each["namespace"], each["name"]): each["type"] for each in document.get("secrets", ())}
    items = [{**each, "type": types.get((each["namespace"], each["name"]), "")} for each in document["items"]]
    if show_listing(_SECRETS, document, items, form):
        return
    if not items:
        say("No secrets.")
    refused = [each for each in document["items"] if each.get("refusal")]
    for place, refusal in sorted(
        {(str(SecretReference(each["namespace"], each["name"])), each["refusal"]) for each in refused}
    ):
        say(f"Refused on the edge: {clean(place)}: {clean(refusal)}")
    for path in document["unreadable"]:
        say(f"Not a SealedSecret: {clean(path)}")
    for name in document["must_reenter"]:
        say(f"Enter again: {clean(name)}")
    if more := document.get("more_unopened"):
        say(f"Enter again: {more} more that the edge has not named.")


@app.command("reseal", epilog=example('secret reseal press-shop --reason "stolen disk"'))
def reseal(
    cluster: ClusterName,
    reason: Annotated[str, typer.Option("--reason", help="Why; the timeline shows it.", show_default=False)] = "",
    as_json: AsJson = False,
) -> None:
    """Ask the edge to seal older values again, with its newest key; no plaintext leaves it."""
    with connect() as gateway:
        meant = named(gateway, cluster)
        document = gateway.post(f"{meant.path}/reseal", {"reason": reason})
    if as_json:
        show_json(document, names=[meant.text])
        return
    result(
        f"{meant.text} is to re-seal {document['left']} of {document['secrets']} Secrets with its next heartbeats."
    )
    say(f"How far it is: edgewright cluster show {meant.text}.")


def _keys_of(listed: Document, place: SecretReference) -> list[str]:
    return [each["key"] for each in listed["items"] if SecretReference(each["namespace"], each["name"]) == place]
