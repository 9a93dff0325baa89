"""`edgewright repository`: Git repositories that you push to and every edge reads."""

from typing import Annotated
from urllib.parse import quote

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands import completion
from edgewright.cli.commands.asking import require_yes
from edgewright.cli.commands.durations import ago
from edgewright.cli.commands.listing import Listing, form_of, show_listing
from edgewright.cli.commands.options import AsJson, Form, Output, Yes, example
from edgewright.cli.commands.screen import Column, Document, clean, moment, result, say, show_json
from edgewright.cli.commands.sending import send_once
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.names import check_repository_name

app = typer.Typer(no_args_is_help=True)

_NAME = Column("name", lambda each: str(each["name"]), long=True)
_BY = Column("pushed by", lambda each: "you" if each["own"] else "the centre")
_REPOSITORIES = Listing(
    columns=(
        _NAME,
        _BY,
        Column("commit", lambda each: str(each["commit"] or "none yet")[:12]),
        Column("made", lambda each: ago(each["made_at"])),
    ),
    wide=(
        _NAME,
        _BY,
        Column("commit", lambda each: str(each["commit"] or "none yet")),
        Column("made", lambda each: moment(each["made_at"])),
        Column("url", lambda each: str(each["url"])),
        Column("uuid", lambda each: str(each["uuid"])),
    ),
    name=lambda each: str(each["name"]),
)

_HELP = "Name of the repository, without shared/."
NewRepository = Annotated[str, typer.Argument(metavar="NAME", help=_HELP, show_default=False)]
RepositoryName = Annotated[
    str,
    typer.Argument(metavar="NAME", help=_HELP, show_default=False, autocompletion=completion.repositories),
]


@app.command("create", epilog=example("repository create press-line"))
def create(name: NewRepository, as_json: AsJson = False) -> None:
    """Create an empty repository that you push to and every edge reads."""
    check_repository_name(name)
    with connect() as gateway:
        answer = send_once(gateway, "PUT", _path(name))
    made: Document = answer.json()
    if as_json:
        show_json(made)
    elif answer.status_code == 201:
        result(f"Created the repository shared/{made['name']}.")
    else:
        result(f"The repository shared/{made['name']} is there already.")
    if made["commit"] is None:
        say(f"Push to it: git push {clean(made['url'])} HEAD:main")


@app.command("list", epilog=example("repository list"))
def list_repositories(output: Output = Form.TABLE, as_json: AsJson = False) -> None:
    """List the repositories that every edge reads."""
    form = form_of(output, as_json=as_json)
    with connect() as gateway:
        document = gateway.get("/v1/repository")
    show_listing(_REPOSITORIES, document, document["items"], form)


@app.command("remove", epilog=example("repository remove press-line"))
def remove(
    name: RepositoryName,
    ignore_by_hand: Annotated[
        bool, typer.Option("--ignore-by-hand", help="Remove it even if files in by-hand/ of a cluster name it.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Remove a repository that nothing uses; edges keep what they have of it."""
    with connect() as gateway:
        found: list[Document] = gateway.get("/v1/repository")["items"]
        if name not in {each["name"] for each in found}:
            raise CliError(
                f"There is no repository called shared/{clean(name)}.",
                f"`{typed('repository list')}` shows all.",
                ExitCode.NOT_FOUND,
                code="repository_unknown",
            )
        require_yes(f"Remove the repository shared/{clean(name)}? Edges can no longer fetch it.", yes=yes)
        send_once(gateway, "DELETE", _path(name), params={"ignore_by_hand": True} if ignore_by_hand else None)
    result(f"Removed the repository shared/{clean(name)}; it is kept in the centre's archive.")


def _path(name: str) -> str:
    return f"/v1/repository/{quote(name, safe='')}"
