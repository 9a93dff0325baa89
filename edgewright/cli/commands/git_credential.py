"""`edgewright git-credential`: lets git reach the gateway with the token of the command line.

Protocol: https://git-scm.com/docs/git-credential#IOFMT.
"""

import sys
from typing import Annotated
from urllib.parse import urlsplit

import typer

from edgewright.cli.client_settings import find_destination
from edgewright.cli.commands.options import example
from edgewright.cli.commands.screen import result

LONGEST_BYTES = 65_536
EXAMPLE = example("git-credential get")


def git_credential(
    operation: Annotated[str, typer.Argument(metavar="get|store|erase", help="What git asks for.")],
) -> None:
    """Answer git's question for a password of the gateway: set it as git's credential.helper."""
    asked = dict(line.partition("=")[::2] for line in sys.stdin.read(LONGEST_BYTES).splitlines())
    if operation != "get":
        return  # there is nothing to keep or to forget: the token is the command line's
    destination = find_destination()
    url = urlsplit(destination.url)
    if (asked.get("protocol"), asked.get("host")) == (url.scheme, url.netloc) and destination.token:
        result("username=edgewright")
        result(f"password={destination.token}")
