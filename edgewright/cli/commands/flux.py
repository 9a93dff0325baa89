"""`edgewright flux`: the Flux that edges get."""

import re
from pathlib import Path
from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.durations import ago
from edgewright.cli.commands.listing import Listing, form_of, show_document, show_listing
from edgewright.cli.commands.options import AsJson, Form, Output, example
from edgewright.cli.commands.screen import Column, Document, moment, say, show_facts
from edgewright.cli.commands.upgrade import upgrade_flux
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.flux_releases import LARGEST_BYTES, RELEASES, fetch_release, version_of

app = typer.Typer(no_args_is_help=True)

_SECONDS = 120.0
"""The gateway reads every manifest before it answers."""
_VERSION = Column("version", lambda release: release["version"] or "not labelled", long=True)
_OFFERED = Column("new edges get it", lambda release: "yes" if release["offered"] else "")
_RELEASES = Listing(
    columns=(
        _VERSION,
        Column("imported", lambda release: ago(release["imported_at"])),
        _OFFERED,
        Column("sha256", lambda release: str(release["sha256"])[:12]),
    ),
    wide=(
        _VERSION,
        Column("imported", lambda release: moment(release["imported_at"])),
        _OFFERED,
        Column("sha256", lambda release: str(release["sha256"])),
    ),
    name=lambda release: str(release["version"] or release["sha256"]),
)


@app.command("import", epilog=example("flux import v2.7.3"))
def import_flux(
    release: Annotated[
        str,
        typer.Argument(
            metavar="VERSION|FILE", help="A Flux release, or its install.yaml with --sha256.", show_default=False
        ),
    ],
    sha256: Annotated[
        str | None,
        typer.Option(
            "--sha256", metavar="HEX", help="SHA-256 of the file, as the release states it.", show_default=False
        ),
    ] = None,
    releases: Annotated[
        str, typer.Option("--releases", metavar="URL", help="Where releases are: GitHub's API, or a mirror of it.")
    ] = RELEASES,
    even_if_older: Annotated[
        bool, typer.Option("--even-if-older", help="Import it even if edges get a newer one now.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Import the Flux that edges without one get; releases imported before are kept."""
    version = version_of(release)
    if version is None:
        content, digest = _from_file(Path(release), sha256)
    elif sha256 is not None:
        raise CliError("--sha256 belongs to a file; a release states its own.", "Leave --sha256 out.", ExitCode.USAGE)
    else:
        fetched = fetch_release(version, releases)
        content, digest = fetched.content, fetched.sha256
    with connect() as gateway:
        wish = {"sha256": digest, **({"even_if_older": "true"} if even_if_older else {})}
        answer = gateway.request("PUT", "/v1/flux", params=wish, content=content, timeout=_SECONDS)
    _show(answer.json(), form_of(Form.TABLE, as_json=as_json))
    say("Edges that are attached from now on get this Flux, unless they have one. Others keep what they have.")


def _from_file(file: Path, sha256: str | None) -> tuple[bytes, str]:
    """The bytes of a release's file and the checksum that somebody has read where the release is published."""
    if sha256 is None or re.fullmatch("[0-9A-Fa-f]{64}", sha256) is None:
        raise CliError(
            "A file needs --sha256 and the 64 hexadecimal digits that its release states.",
            "GitHub shows them beside the file. Where GitHub can be reached, give a version instead: v2.7.3.",
            ExitCode.USAGE,
        )
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise CliError(
            f"The file {file} cannot be read ({error.strerror}).",
            "Name the install.yaml of a release of Flux, or its version, such as v2.7.3.",
            ExitCode.USAGE,
        ) from error
    if len(content) > LARGEST_BYTES:
        raise CliError(f"{file} has more than {LARGEST_BYTES} bytes; Flux's own has less than one million.")
    return content, sha256


@app.command("list", epilog=example("flux list"))
def list_releases(output: Output = Form.TABLE, as_json: AsJson = False) -> None:
    """List the releases of Flux that were imported, the last one first."""
    form = form_of(output, as_json=as_json)
    with connect() as gateway:
        document = gateway.get("/v1/flux")
    show_listing(_RELEASES, document["releases"], document["releases"], form)


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


app.command("upgrade", epilog=example("flux upgrade --all --version v2.7.3"))(upgrade_flux)
