"""`edgewright webhook`: where notifications go."""

from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.listing import form_of, show_document
from edgewright.cli.commands.options import AsJson, Form, Output, example
from edgewright.cli.commands.screen import demand_more_than_a_name, moment, result, say, show_facts, show_json

app = typer.Typer(no_args_is_help=True)


@app.command("set", epilog=example("webhook set https://alerts.example.com/edgewright"))
def set_webhook(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="https URL, or an http URL on this machine.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Set or replace the webhook, and print its signing secret, this once, alone on stdout."""
    demand_more_than_a_name("the signing secret")
    with connect() as gateway:
        document = gateway.post("/v1/webhook", {"url": url})
    if as_json:
        show_json(document)
    else:
        result(document["secret"])
    say("This is the secret that signatures are verified with; it is stored nowhere and shown only now.")


@app.command("show", epilog=example("webhook show"))
def show(output: Output = Form.TABLE, as_json: AsJson = False) -> None:
    """Show where notifications go, the last delivery, and what waits to be delivered."""
    form = form_of(output, as_json=as_json)
    with connect() as gateway:
        document = gateway.get("/v1/webhook")
    if show_document(document, [document["url"]], form):
        return
    stopped, last, waiting = document["stopped_at"], document["last_delivery"], document["waiting"]
    facts = (
        ("url", document["url"]),
        ("set", moment(document["created_at"])),
        ("stopped", f"{moment(stopped)}. The receiver wants no more; set the webhook again." if stopped else ""),
        ("last delivery", f"{moment(last['at'])}. {last['message']}" if last else "Nothing was delivered yet."),
        (
            "waiting",
            f"{waiting['message']} The oldest has waited since {moment(waiting['since'])}." if waiting else "",
        ),
    )
    show_facts(facts, fold=form is not Form.WIDE)


@app.command("remove", epilog=example("webhook remove"))
def remove() -> None:
    """Remove the webhook: stop sending, and drop what waits to be delivered."""
    with connect() as gateway:
        gateway.delete("/v1/webhook")
    result("The webhook is removed.")
