"""`edgewright token`: tokens of people and scripts."""

from typing import Annotated

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.durations import ago, ahead, seconds_of, until
from edgewright.cli.commands.listing import Listing, form_of, show_listing
from edgewright.cli.commands.options import AsJson, Form, Output, example
from edgewright.cli.commands.screen import Column, Document, demand_more_than_a_name, moment, result, say, show_json
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.ports.operators import Permission

app = typer.Typer(no_args_is_help=True)

_NAME = Column("name", lambda token: str(token["name"]), long=True)
_PERMISSIONS = Column("permissions", lambda token: ",".join(token["permissions"]), long=True)
_TOKENS = Listing(
    columns=(
        _NAME,
        _PERMISSIONS,
        Column("created", lambda token: ago(token["created_at"])),
        Column("expires", lambda token: ahead(token["expires_at"]) or "never"),
    ),
    wide=(
        _NAME,
        _PERMISSIONS,
        Column("created", lambda token: moment(token["created_at"])),
        Column("expires", lambda token: moment(token["expires_at"]) or "never"),
        Column("id", lambda token: str(token["id"])),
    ),
    name=lambda token: str(token["name"]),
)

_SHORTEST, _LONGEST = 60, 10 * 366 * 86400


@app.command("create", epilog=example("token create ci --permission read --permission secrets --expires-in 30d"))
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Who or what uses it; timelines show this name.", show_default=False)
    ],
    permission: Annotated[
        list[Permission],
        typer.Option(
            "--permission", "-p", help="Permission to grant; repeat the option for several.", show_default=False
        ),
    ],
    expires_in: Annotated[
        str | None,
        typer.Option(
            "--expires-in",
            metavar="DURATION",
            help="How long the token is valid.",
            show_default="until it is revoked",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it, this once, alone on stdout."""
    demand_more_than_a_name("the token")
    seconds = (
        None if expires_in is None else seconds_of(expires_in, "--expires-in", shortest=_SHORTEST, longest=_LONGEST)
    )
    with connect() as gateway:
        wish = {"name": name, "permissions": list(dict.fromkeys(permission)), "expires_in": seconds}
        document = gateway.post("/v1/token", wish)
    if as_json:
        show_json(document)
    else:
        result(document["token"])
    life = f"It expires in {until(document['expires_at'])}." if document["expires_at"] else "It never expires."
    say(f"This is the token {document['name']}; it is kept nowhere and shown only now. {life}")
    say("Write it to a file that only you can read, and name that file in EDGEWRIGHT_TOKEN_FILE.")


@app.command("list", epilog=example("token list"))
def list_tokens(output: Output = Form.TABLE, as_json: AsJson = False) -> None:
    """List the valid tokens, without their secrets."""
    form = form_of(output, as_json=as_json)
    with connect() as gateway:
        document = gateway.get("/v1/token")
    show_listing(_TOKENS, document, document["items"], form)


@app.command("revoke", epilog=example("token revoke ci"))
def revoke(
    token: Annotated[str, typer.Argument(metavar="NAME|ID", help="Name or ID of the token.", show_default=False)],
) -> None:
    """Revoke a token, by its name or ID, at once."""
    with connect() as gateway:
        meant = _meant(gateway, token)
        gateway.delete(f"/v1/token/{meant['id']}")
    result(f"The token {meant['name']} is revoked.")


def _meant(gateway: GatewayClient, text: str) -> Document:
    tokens = gateway.get("/v1/token")["items"]
    for field in ("id", "name"):
        for token in tokens:
            if token[field] == text:
                found: Document = token
                return found
    # The text is not repeated: it may be a token, given where its name belongs.
    raise CliError(
        "There is no token with that name or ID.", f"`{typed('token list')}` shows all.", ExitCode.NOT_FOUND
    )
