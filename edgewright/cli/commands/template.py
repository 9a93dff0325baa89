"""`edgewright template`: Helm chart templates, which say what chart and values a cluster gets."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.asking import require_yes
from edgewright.cli.commands.durations import ago
from edgewright.cli.commands.options import AsJson, Values, Yes, example, values_of
from edgewright.cli.commands.screen import Document, clean, moment, result, say, show_facts, show_json, show_table
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed

app = typer.Typer(no_args_is_help=True)

TemplateName = Annotated[
    str, typer.Argument(metavar="TEMPLATE", help="Name or UUID of the Helm chart template.", show_default=False)
]


@app.command("list", epilog=example("template list"))
def list_templates(as_json: AsJson = False) -> None:
    """List the Helm chart templates that a cluster can have."""
    with connect() as gateway:
        document = gateway.get("/v1/template")
    if as_json:
        show_json(document)
        return
    rows = [
        (each["name"] or each["uuid"], each["chart"], str(each["clusters"]), ago(each["modified_at"]))
        for each in document["items"]
    ]
    show_table(("template", "chart", "clusters", "changed"), rows, long=("template", "chart"))


@app.command("show", epilog=example("template show edge-cluster"))
def show(template: TemplateName, as_json: AsJson = False) -> None:
    """Show a Helm chart template with its values."""
    with connect() as gateway:
        document = gateway.get(_path(template))
    if as_json:
        show_json(document)
        return
    _show(document)
    _show_values(document["values"])


@app.command("put", epilog=example("template put press --chart press --values press.yaml"))
def put(
    *,
    template: TemplateName,
    chart: Annotated[
        str | None,
        typer.Option(
            "--chart",
            metavar="NAME|PATH",
            help="A chart that you pushed, or the path of a chart in its source.",
            show_default=False,
        ),
    ] = None,
    values: Values = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help="GitRepository on the edge that holds the chart, if it is not helm-charts.",
            show_default=False,
        ),
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Make a Helm chart template, or change one; what you leave out stays as it is."""
    given = values_of(values) if values is not None else None
    with connect() as gateway:
        answer = gateway.request("GET", _path(template), accept=frozenset({404}))
        present: Document | None = answer.json() if answer.is_success else None
        if present is None and chart is None:
            raise CliError(
                f"There is no Helm chart template called {clean(template)}; a new one needs a chart.",
                f"Add --chart NAME; `{typed('chart list')}` shows all.",
                ExitCode.USAGE,
            )
        body = _wish(present, chart, source, given)
        if present is not None and present["clusters"]:
            require_yes(f"Clusters that have this template: {present['clusters']}. Change all of them?", yes=yes)
        held = {"If-Match": answer.headers["ETag"]} if present is not None else {"If-None-Match": "*"}
        written = gateway.request("PUT", _path(template), body=body, headers=held).json()
    if as_json:
        show_json(written)
        return
    result(f"{'Made' if present is None else 'Changed'} the Helm chart template {clean(_called(written))}.")
    if present is None:
        say(f"Give it to a cluster: {typed(f'cluster create NAME --chart {_called(written)}')}.")


@app.command("remove", epilog=example("template remove press"))
def remove(template: TemplateName, yes: Yes = False) -> None:
    """Remove a Helm chart template that no cluster has."""
    with connect() as gateway:
        answer = gateway.request("GET", _path(template))
        require_yes(f"Remove the Helm chart template {clean(_called(answer.json()))}?", yes=yes)
        gateway.delete(_path(template), headers={"If-Match": answer.headers["ETag"]})
    result(f"Removed the Helm chart template {clean(_called(answer.json()))}.")


def _path(template: str) -> str:
    return f"/v1/template/{quote(template, safe='')}"


def _called(document: Document) -> str:
    return str(document["name"] or document["uuid"])


def _wish(
    present: Document | None, chart: str | None, source: str | None, values: dict[str, Any] | None
) -> dict[str, Any]:
    """The whole template that is wanted; a prefix follows from a new chart by itself."""
    if present is None:
        return {"chart": chart, **({"source": source} if source else {}), "values": values or {}}
    body: dict[str, Any] = {
        "chart": chart or present["chart"],
        "source": source or present["source"],
        "values": present["values"] if values is None else values,
    }
    if chart is None and present["prefix"]:
        body["prefix"] = present["prefix"]
    return body


def _show(document: Document) -> None:
    show_facts(
        [
            ("template", _called(document)),
            ("uuid", document["uuid"]),
            ("chart", document["chart"]),
            ("source", document["source"]),
            ("prefix", document["prefix"] or ""),
            ("clusters", str(document["clusters"])),
            ("changed", moment(document["modified_at"])),
        ]
    )


def _show_values(values: object) -> None:
    import yaml  # noqa: PLC0415 - slow, and few commands show values

    say("")
    for line in yaml.safe_dump({"values": values}, sort_keys=False, allow_unicode=False).splitlines():
        result(line)
