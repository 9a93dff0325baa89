"""Shell completion: the script for a shell, and the names that only a gateway knows.

A name that is not there within a second is not worth waiting for, and whatever goes wrong is silent: the reader is in
the middle of a line.
"""

import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import copy_context
from enum import StrEnum
from typing import Annotated, Any

import typer

from edgewright.cli.client import Params, connected
from edgewright.cli.client_settings import client_settings, find_destination
from edgewright.cli.commands.screen import result
from edgewright.cli.contexts import LOCAL, ContextsFile
from edgewright.cli.failures import CliError
from edgewright.domain.cluster import StepName

EXAMPLE = "Example: source <(edgewright completion bash)"
PATIENCE_SECONDS = 1.0
_MOST = 200
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*", re.ASCII)
"""What a shell takes as one plain word; its completion scripts evaluate what they are offered."""

Offer = tuple[str, str]
"""A word, and what a shell that can shows beside it."""


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[
        Shell, typer.Argument(metavar="bash|zsh|fish", help="Which shell.", show_choices=False, show_default=False)
    ],
) -> None:
    """Print the completion script of a shell; `--install-completion` sets it up for you."""
    from typer._completion_shared import get_completion_script  # noqa: PLC0415 - for this command alone

    result(get_completion_script(prog_name="edgewright", complete_var="_EDGEWRIGHT_COMPLETE", shell=shell.value))


def clusters(incomplete: str) -> list[Offer]:
    """Names of clusters that begin so, with their phases."""

    def ask() -> Iterable[Offer]:
        with connected(find_destination()) as gateway:
            part = [incomplete] if incomplete else []
            filters: Params = {"name": part, "sort": "name", "limit": _MOST}
            page = gateway.get("/v1/cluster", filters, timeout=PATIENCE_SECONDS)
        return [(item["name"], item["phase"]) for item in page["items"]]

    return _soon(ask, incomplete)


def charts(incomplete: str) -> list[Offer]:
    """Names of Helm chart templates that begin so."""

    def ask() -> Iterable[Offer]:
        from edgewright.domain.wellknown import APP_OBJECT_INFO, CLASS_HELM_CHART  # noqa: PLC0415 - here alone

        with connected(find_destination()) as gateway:
            path = f"/v1/app/{APP_OBJECT_INFO}/class/{CLASS_HELM_CHART}/search"
            found = gateway.get(path, {"@name": "name"}, timeout=PATIENCE_SECONDS)
        return [(item["name"], "") for item in found if isinstance(item["name"], str)]

    return _soon(ask, incomplete)


def repositories(incomplete: str) -> list[Offer]:
    """Names of repositories of your own that begin so, and which of them are empty."""

    def ask() -> Iterable[Offer]:
        with connected(find_destination()) as gateway:
            found = gateway.get("/v1/repository", timeout=PATIENCE_SECONDS)["items"]
        return [(item["name"], "" if item["commit"] else "nothing pushed yet") for item in found if item["own"]]

    return _soon(ask, incomplete)


def steps(incomplete: str) -> list[Offer]:
    """Names of steps that begin so; no gateway is asked."""
    return [(step.value, "") for step in StepName if step.value.startswith(incomplete)]


def contexts(incomplete: str) -> list[Offer]:
    """Names of contexts that begin so, with their URLs."""

    def read() -> Iterable[Offer]:
        kept = ContextsFile(client_settings().config).read()
        return [(name, context.url) for name, context in kept.contexts.items()] + [(LOCAL, "this machine")]

    return _soon(read, incomplete)


def _soon(ask: Callable[[], Iterable[Offer]], incomplete: str) -> list[Offer]:
    """What is known after a second, sorted; nothing if it is not known by then, or cannot be."""
    found: list[Offer] = []

    def run() -> None:
        # A name to resolve or a slow answer can take longer than any timeout of a request.
        with suppress(CliError, OSError, ValueError, KeyError, TypeError):
            found.extend(ask())

    context = copy_context()
    thread = threading.Thread(target=lambda: context.run(run), daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    return sorted(
        (word, _plain(beside))
        for word, beside in list(found)
        if word.startswith(incomplete) and _SAFE.fullmatch(word)
    )


def _plain(text: Any) -> str:
    return re.sub(r"[^A-Za-z0-9 ./_-]", "", str(text), flags=re.ASCII)
