"""`edgewright webhook`: where notifications go."""

from typing import Annotated

import typer

from edgewright.cli.client import connect
from edgewright.cli.commands.options import AsJson, example
from edgewright.cli.commands.screen import clean, moment, result, say, show_json

app = typer.Typer(no_args_is_help=True)


@app.command("set", epilog=example("webhook set https://alerts.example.com/edgewright"))
def set_webhook(
    url: Annotated[str, typer.Argument(help="An https URL, or plain http on loopback.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Set the webhook, or replace it, and print its signing secret this once: stdout has the secret alone."""
    with connect() as gateway:
        document = gateway.post("/v1/webhook", {"url": url})
    if as_json:
        show_json(document)
    else:
        result(document["secret"])
    say("This is the secret that signatures are verified with; it is stored nowhere and shown only now.")


@app.command("show", epilog=example("webhook show"))
def show(as_json: AsJson = False) -> None:
    """Show where notifications go, the newest delivery, and what waits."""
    with connect() as gateway:
        document = gateway.get("/v1/webhook")
    if as_json:
        show_json(document)
        return
    result(f"Notifications go to {clean(document['url'])} since {moment(document['created_at'])}.")
    if document["stopped_at"]:
        result(f"The receiver wants no more since {moment(document['stopped_at'])}: set the webhook again to go on.")
    last, waiting = document["last_delivery"], document["waiting"]
    result(f"{moment(last['at'])}: {clean(last['message'])}" if last else "Nothing was delivered yet.")
    if waiting:
        result(f"{clean(waiting['message'])} The oldest waits since {moment(waiting['since'])}.")


@app.command("remove", epilog=example("webhook remove"))
def remove() -> None:
    """Remove the webhook: nothing is sent any more, and what waits is dropped."""
    with connect() as gateway:
        gateway.delete("/v1/webhook")
    result("The webhook is removed.")
