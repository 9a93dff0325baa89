"""The page at ``/docs``: complete without internet access, and closed to scripts from elsewhere."""

import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

import api

FOLDER = Path(api.__file__).parent / "swagger_ui"
VENDORED = {
    "swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
    "swagger-ui.css": "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
}
"""SHA-256 of what npm's swagger-ui-dist 5.35.0 has."""


class Loaded(HTMLParser):
    """The addresses that a page loads, and the scripts that it holds."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in {"src", "href"} and value]


async def test_docs_load_nothing_but_what_the_gateway_serves(anybody: httpx.AsyncClient) -> None:
    page = await anybody.get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    addresses = Loaded(page.text).addresses
    assert len(addresses) == 4
    for address in addresses:
        assert ":" not in address
        answer = await anybody.get(f"/{address}")
        assert answer.status_code == 200, address
    start = (await anybody.get("/docs/start.js")).text
    assert re.findall(r"url: \"(.+)\"", start) == ["openapi.json"]
    assert (await anybody.get("/openapi.json")).json()["openapi"].startswith("3.1")


async def test_docs_run_no_script_from_elsewhere_and_none_of_the_page_itself(anybody: httpx.AsyncClient) -> None:
    page = await anybody.get("/docs")
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert (policy["default-src"], policy["script-src"], policy["connect-src"]) == ("'none'", "'self'", "'self'")
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert not re.search(r"<script>|\son\w+=", page.text)


@pytest.mark.parametrize(
    "path", ["/", "/docs", "/docs/index.html", "/docs/oauth2-redirect", "/redoc", "/docs/nothing"]
)
async def test_every_html_answer_has_a_content_policy(anybody: httpx.AsyncClient, path: str) -> None:
    answer = await anybody.get(path, headers={"Accept": "text/html"})
    if answer.headers["content-type"].startswith("text/html"):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    else:
        assert answer.status_code == 404
        assert json.loads(answer.text)["code"] == "route_unknown"


@pytest.mark.parametrize("path", ["/docs/../app.py", "/docs/%2e%2e/app.py", "/docs/..%2fapp.py"])
async def test_nothing_else_of_the_package_is_served(anybody: httpx.AsyncClient, path: str) -> None:
    assert (await anybody.get(path)).status_code == 404


def test_what_is_vendored_is_unchanged() -> None:
    assert {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in VENDORED} == VENDORED
