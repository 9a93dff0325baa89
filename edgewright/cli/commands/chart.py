"""`edgewright chart`: the charts that edges can get, the centre's and your own."""

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.asking import require_yes
from edgewright.cli.commands.options import AsJson, Yes, example
from edgewright.cli.commands.screen import Document, clean, result, say, show_json, show_table
from edgewright.cli.commands.sending import send_once
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed

app = typer.Typer(no_args_is_help=True)

LARGEST_BYTES = 8 * 1024 * 1024
"""Limit for all files together; the gateway refuses more."""
_LEFT_OUT = frozenset({".git", ".DS_Store"})

ChartName = Annotated[str, typer.Argument(metavar="CHART", help="Name of the chart.", show_default=False)]


@app.command("list", epilog=example("chart list"))
def list_charts(as_json: AsJson = False) -> None:
    """List the charts that edges can get."""
    with connect() as gateway:
        document = gateway.get("/v1/chart")
    if as_json:
        show_json(document)
        return
    rows = [
        (
            each["name"],
            each["version"] or "",
            "you" if each["own"] else "the centre",
            str(each["clusters"]),
            ", ".join(each["templates"]),
        )
        for each in document["items"]
    ]
    show_table(("chart", "version", "from", "clusters", "templates"), rows, long=("chart",))


@app.command("push", epilog=example("chart push charts/press"))
def push(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER|FILE.tgz",
            help="The chart: its folder, or what `helm package` made of it.",
            show_default=False,
        ),
    ],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Push a chart of yours; clusters whose Helm chart template uses it get it."""
    from edgewright.adapters.charts.own_charts import packed_chart  # noqa: PLC0415 - slow, and only this reads charts

    archive = _packed(source) if source.is_dir() else _read(source)
    name = packed_chart(archive).facts.name
    with connect() as gateway:
        present = _own_chart(gateway, name)
        if present is not None and present["clusters"]:
            require_yes(
                f"Clusters that have {name} {clean(present['version'])}: {present['clusters']}. Replace it on all?",
                yes=yes,
            )
        held = {"If-Match": f'"{present["version"]}"'} if present is not None else {"If-None-Match": "*"}
        octets = {"Content-Type": "application/gzip", **held}
        answer = send_once(gateway, "PUT", _path(name), content=archive, headers=octets)
    _tell(answer.json(), as_json=as_json, is_used=bool(present and present["templates"]))


@app.command("remove", epilog=example("chart remove press"))
def remove(chart: ChartName, yes: Yes = False) -> None:
    """Remove a chart of yours that no Helm chart template uses."""
    with connect() as gateway:
        present = _own_chart(gateway, chart)
        if present is None:
            raise CliError(
                f"Nobody has pushed a chart called {clean(chart)}.",
                f"`{typed('chart list')}` shows all.",
                ExitCode.NOT_FOUND,
                code="chart_unknown",
            )
        require_yes(f"Remove the chart {chart} {clean(present['version'])}?", yes=yes)
        send_once(gateway, "DELETE", _path(chart), headers={"If-Match": f'"{present["version"]}"'})
    result(f"Removed the chart {chart} {clean(present['version'])}.")


def _own_chart(gateway: GatewayClient, name: str) -> Document | None:
    charts: list[Document] = gateway.get("/v1/chart")["items"]
    return next((each for each in charts if each["own"] and each["name"] == name), None)


def _path(name: str) -> str:
    return f"/v1/chart/{quote(name, safe='')}"


def _tell(pushed: Document, *, as_json: bool, is_used: bool) -> None:
    chart = f"{pushed['name']} {pushed['version']}"
    for warning in pushed["warnings"]:
        say(f"Warning: {clean(warning)}")
    if pushed["unchecked_clusters"]:
        say(f"Warning: The values of {pushed['unchecked_clusters']} clusters were not checked; doctor checks them.")
    if as_json:
        show_json(pushed)
    elif pushed["replaced"] == pushed["version"]:
        result(f"{chart} was pushed before, with the same files.")
    else:
        instead = f" in the place of {pushed['replaced']}" if pushed["replaced"] else ""
        result(f"Pushed {chart}{instead}, commit {pushed['commit']}.")
    if pushed["clusters"]:
        say(f"Clusters that get it: {pushed['clusters']}.")
    elif not is_used:
        command = typed(f"template put {pushed['name']} --chart {pushed['name']}")
        say(f"No Helm chart template uses it yet: {command}")


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CliError(
            f"The file {file} cannot be read ({error.strerror}).",
            "Name the folder of a chart, or the .tgz that `helm package` made of it.",
            ExitCode.USAGE,
        ) from error


def _packed(folder: Path) -> bytes:
    """The folder as `helm package` would pack it; the same bytes for the same files.

    Raises:
        CliError: there is no chart in it, or it holds what cannot be packed.
    """
    if not (folder / "Chart.yaml").is_file():
        raise CliError(
            f"The folder {folder} holds no chart: there is no Chart.yaml in it.",
            "`helm create NAME` makes a chart to begin with.",
            ExitCode.USAGE,
        )
    content, size = io.BytesIO(), 0
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in _files(folder):
            body = _read(file)
            size += len(body)
            if size > LARGEST_BYTES:
                raise CliError(
                    f"The files in {folder} have more than {LARGEST_BYTES} bytes together.",
                    "A chart is text; keep anything else out of its folder.",
                    ExitCode.USAGE,
                )
            member = tarfile.TarInfo(f"chart/{file.relative_to(folder).as_posix()}")
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return gzip.compress(content.getvalue(), mtime=0)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _LEFT_OUT or path.name.endswith("~"):
            continue
        if path.is_symlink():
            raise CliError(
                f"{path} is a symbolic link, which edges do not follow.",
                "Put a copy of the file in its place.",
                ExitCode.USAGE,
            )
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path
