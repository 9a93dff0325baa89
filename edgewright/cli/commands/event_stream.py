"""The audit log as the gateway streams it: resumed where a connection broke, nothing lost and nothing told twice."""

import json
import time
from collections.abc import Iterator

import httpx

from edgewright.cli.client import GatewayClient, Params
from edgewright.cli.commands.screen import Document, say
from edgewright.cli.failures import CliError, ExitCode

RECONNECT_SECONDS = 1.0
SILENCE_SECONDS = 60.0
"""A gateway says something every 15 seconds; after this long the connection is dead, whatever the network says."""
_POSITION = "position"


def stream_events(
    gateway: GatewayClient, filters: Params, *, after: int | None = None, follow: bool = True
) -> Iterator[Document]:
    """Events that pass the filters of ``GET /v1/events``, in order of position.

    Args:
        after: position to begin behind; None: where the gateway begins for these filters.
        follow: go on with what happens from now on; False: end after what has happened so far.

    Raises:
        CliError: the first connection fails, or the gateway refuses.
    """
    position = after
    connected = told = False
    while True:
        known = {} if position is None else {"after": position}
        wish = {**filters, **known, **({} if follow else {"follow": "false"})}
        try:
            with gateway.stream("/v1/events", wish, silence=SILENCE_SECONDS) as answer:
                connected, told = True, False
                for name, document in _messages(answer):
                    if name == _POSITION:
                        position = document["position"]
                        if not follow:
                            return
                    elif position is None or document["position"] > position:
                        position = document["position"]
                        yield document
        except CliError as error:
            if not connected or error.exit_code is not ExitCode.UNAVAILABLE:
                raise
            if not told:
                say(f"{error.sentence} Trying again.")
            told = True
        time.sleep(RECONNECT_SECONDS)


def _messages(answer: httpx.Response) -> Iterator[tuple[str, Document]]:
    """Name and document of each message that is complete; one that is cut off comes again on the next connection."""
    name, parts = "", []
    for line in _lines(answer):
        field, _, value = line.partition(":")
        if field == "event":
            name = value.removeprefix(" ")
        elif field == "data":
            parts.append(value.removeprefix(" "))
        elif not line:
            if parts:
                yield name, json.loads("\n".join(parts))
            name, parts = "", []


def _lines(answer: httpx.Response) -> Iterator[str]:
    """Whole lines. Unlike httpx, only a line feed ends one: a text in JSON may hold U+2028 and the like."""
    held = b""
    for chunk in answer.iter_bytes():
        *whole, held = (held + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
