"""`edgewright flux`: the Flux that edges get."""

import re
from pathlib import Path
from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.listing import form_of, show_document
from edgewright.cli.commands.options import AsJson, Form, Output, example
from edgewright.cli.commands.screen import Document, moment, say, show_facts
from edgewright.cli.failures import CliError, ExitCode

app = typer.Typer(no_args_is_help=True)

LARGEST_BYTES = 4 * 1024 * 1024
"""The gateway refuses more."""
_SECONDS = 120.0
"""The gateway reads every manifest before it answers."""


@app.command("import", epilog=example("flux import install.yaml --sha256 HEX"))
def import_flux(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="install.yaml of a Flux release.", dir_okay=False, show_default=False),
    ],
    sha256: Annotated[
        str,
        typer.Option(
            "--sha256", metavar="HEX", help="SHA-256 of the file, as the release states it.", show_default=False
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Import the Flux that edges without one get; it replaces the one imported before."""
    if re.fullmatch("[0-9A-Fa-f]{64}", sha256) is None:
        raise CliError(
            "A SHA-256 is 64 hexadecimal digits.", "GitHub shows it beside the file of the release.", ExitCode.USAGE
        )
    if file.stat().st_size > LARGEST_BYTES:
        raise CliError(f"{file} has more than {LARGEST_BYTES} bytes; Flux's own has less than one million.")
    with connect() as gateway:
        answer = gateway.request(
            "PUT", "/v1/flux", params={"sha256": sha256}, content=file.read_bytes(), timeout=_SECONDS
        )
    _show(answer.json(), form_of(Form.TABLE, as_json=as_json))
    say("Edges that are attached from now on get this Flux, unless they have one. Others keep what they have.")


@app.command("show", epilog=example("flux show"))
def show(output: Output = Form.TABLE, as_json: AsJson = False) -> None:
    """Show the Flux that edges get; --output name prints its images."""
    form = form_of(output, as_json=as_json)
    with connect() as gateway:
        document = gateway.get("/v1/flux")
    _show(document, form)


def _show(document: Document, form: Form) -> None:
    if show_document(document, document["images"], form):
        return
    facts = [
        ("version", document.get("version") or "not labelled"),
        ("sha256", document["sha256"]),
        ("imported", moment(document["imported_at"])),
        ("mirror", document.get("mirror") or "none"),
        *(("image", image) for image in document["images"]),
    ]
    show_facts(facts, fold=form is not Form.WIDE)
