"""The page at the gateway's address: what Edgewright is, with links. Needs no credentials."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request
from pydantic import ConfigDict, Field
from starlette.responses import HTMLResponse, JSONResponse, Response

from api.schemas.base import Answer
from edgewright.domain.hosts import is_loopback

HTML = "text/html"
JSON = "application/json"
DESCRIPTION = (
    "Edgewright commissions edge Kubernetes clusters and keeps them for life. People, scripts and edges reach it "
    "through this gateway, over HTTP."
)
TEMPORAL_UI = "temporal_ui"
PATHS = {"documentation": "docs", "openapi": "openapi.json", "ping": "ping", "readiness": "readyz"}
TEXTS = {
    "documentation": ("API documentation", "Every request with its answers. Try them with a token."),
    "openapi": ("OpenAPI document", "The same for programs: generate a client from it."),
    "ping": ("Ping", "Which service this is, and its version."),
    "readiness": ("Readiness", "Whether the gateway can work, and which part is out of reach."),
    TEMPORAL_UI: ("Temporal's Web UI", "The workflow of each cluster, step by step."),
}
COMMANDS = {
    "edgewright cluster list": "Lists the clusters and what each one waits for.",
    "edgewright cluster create NAME --wait": "Commissions a cluster.",
    "edgewright cluster bootstrap NAME": "Prints the line that attaches a Kubernetes cluster.",
    "edgewright doctor": "Checks this installation, on the machine that it runs on.",
}
DOCUMENTS = {
    "README.md": "Start here: a tour of five minutes.",
    "docs/install.md": "Install Edgewright on a machine or in containers.",
    "docs/edge.md": "Attach an edge.",
    "docs/glossary.md": "Look up a word.",
    "docs/troubleshooting.md": "Find out what is wrong.",
}
HEADERS = {"Cache-Control": "no-store", "Vary": "Accept"}
_QUALITY = re.compile(r"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)
_STYLE = re.compile(r"<style>(.*)</style>", re.DOTALL)

router = APIRouter(tags=["health"])


class FrontPage(Answer):
    """What Edgewright is, with links by name, commands and documents."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "Edgewright",
                    "description": DESCRIPTION,
                    "links": {name: f"https://edge.example.com/{path}" for name, path in PATHS.items()},
                    "commands": {**COMMANDS},
                    "documents": {**DOCUMENTS},
                }
            ]
        },
    )

    name: str = "Edgewright"
    description: str = DESCRIPTION
    links: dict[str, str] = Field(
        description="`documentation`, `openapi`, `ping`, `readiness`; `temporal_ui` for a caller on the same machine."
    )
    commands: dict[str, str] = Field(default=COMMANDS, description="What to type in a terminal, and what it does.")
    documents: dict[str, str] = Field(
        default=DOCUMENTS, description="What to read in the folder of the source code, and what for."
    )


@dataclass(frozen=True)
class FrontRoom:
    """What the front page links to.

    Args:
        external_url: of the gateways; no trailing slash.
        temporal_ui_url: of Temporal's Web UI; None: it is not known.
    """

    external_url: str
    temporal_ui_url: str | None

    def reachable_ui(self, client: str) -> str | None:
        """Temporal's Web UI where a caller certainly reaches it: both, and the gateway, on one machine.

        Anybody may read the front page, so the address of another machine is not on it.
        """
        addresses = (self.external_url, self.temporal_ui_url or "")
        local = is_loopback(client) and all(is_loopback(urlsplit(each).hostname or "") for each in addresses)
        return self.temporal_ui_url if local else None


async def front_room_of(request: Request) -> FrontRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: FrontRoom = request.app.state.front_room
    return room


@router.get(
    "/",
    summary="Front page",
    response_model=FrontPage,
    responses={
        200: {"description": "The page, or the same as JSON.", "content": {HTML: {"schema": {"type": "string"}}}}
    },
)
async def front_page(request: Request, room: Annotated[FrontRoom, Depends(front_room_of)]) -> Response:
    """Needs no credentials. Browsers get a page; a client that does not ask for HTML gets the same links as JSON."""
    ui = room.reachable_ui(request.client.host if request.client else "")
    elsewhere = {TEMPORAL_UI: ui} if ui else {}
    if prefers_html(",".join(request.headers.getlist("accept"))):
        # Relative, so that the links work under whatever name the browser has found the gateway.
        return HTMLResponse(_page({**PATHS, **elsewhere}), headers={**HEADERS, "Content-Security-Policy": _policy()})
    links = {name: f"{room.external_url}/{path}" for name, path in PATHS.items()}
    return JSONResponse(FrontPage(links={**links, **elsewhere}).model_dump(mode="json"), headers=HEADERS)


def prefers_html(accept: str) -> bool:
    """Whether an ``Accept`` header names HTML, and does not prefer JSON. ``curl`` names neither."""
    qualities: dict[str, float] = {}
    for each in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in each.split(";"))
        found = next((match for part in parameters if (match := _QUALITY.fullmatch(part))), None)
        qualities[kind] = float(found[1]) if found else 1.0
    json = next((qualities[kind] for kind in (JSON, "application/*", "*/*") if kind in qualities), 0.0)
    return qualities.get(HTML, 0.0) > 0 and qualities[HTML] >= json


@cache
def _template() -> str:
    return (files("api.routes") / "front_page.html").read_text("utf-8")


@cache
def _policy() -> str:
    """Returns a policy that allows no resources but the page's own styles."""
    style = _STYLE.search(_template())
    digest = b64encode(hashlib.sha256(style[1].encode() if style else b"").digest()).decode()
    closed = ("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'")
    return "; ".join(("default-src 'none'", f"style-src 'sha256-{digest}'", *closed))


def _page(links: Mapping[str, str]) -> str:
    linked = ((f'<a href="{escape(links[name])}">{escape(TEXTS[name][0])}</a>', TEXTS[name][1]) for name in links)
    return Template(_template()).substitute(
        description=escape(DESCRIPTION),
        links=_described(linked),
        commands=_described(_typed(COMMANDS)),
        documents=_described(_typed(DOCUMENTS)),
    )


def _typed(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from ((f"<code>{escape(name)}</code>", text) for name, text in texts.items())


def _described(terms: Iterable[tuple[str, str]]) -> str:
    """Returns a description list. The terms are HTML; the texts are escaped here."""
    return "\n".join(f"<dt>{term}</dt><dd>{escape(text)}</dd>" for term, text in terms)
