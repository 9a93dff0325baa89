"""The page at ``/``: says what this is and where to go from here, to a browser and to a program alike."""

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx
import pytest
from gateway_centre import BASE_URL, GatewayCentre

from api.routes.front_page import FrontRoom, prefers_html
from edgewright import __version__

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}
UI = "http://127.0.0.1:8233"


class Page(HTMLParser):
    """The links and the elements of a page, and what it loads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.elements: list[str] = []
        self.loaded: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        for name, value in attrs:
            assert not name.startswith("on") and name != "style", "the policy lets no such attribute act"
            if name == "href" and tag == "a" and value:
                self.links.append(value)
            elif name in {"src", "href", "srcset", "data"}:
                self.loaded.append(str(value))


async def test_a_browser_gets_a_page_whose_links_lead_somewhere(anybody: httpx.AsyncClient) -> None:
    answer = await anybody.get("/", headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = Page(answer.text)
    assert "edgewright cluster list" in answer.text
    for link in page.links:
        if link != UI:
            assert (await anybody.get(f"/{link}")).status_code == 200, link
    assert {"docs", "openapi.json", UI} <= set(page.links)


async def test_a_program_gets_the_same_links_as_json(anybody: httpx.AsyncClient) -> None:
    page = Page((await anybody.get("/", headers=BROWSER)).text)
    for accept in ("application/json", "*/*", "image/png", ""):
        answer = await anybody.get("/", headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/json"
        assert set(answer.json()["links"].values()) == {urljoin(f"{BASE_URL}/", link) for link in page.links}
        assert "Accept" in answer.headers["vary"].split(", ")


async def test_the_page_runs_no_script_and_loads_nothing(anybody: httpx.AsyncClient) -> None:
    answer = await anybody.get("/", headers=BROWSER)
    page = Page(answer.text)
    assert page.loaded == []
    assert not {"script", "img", "link", "iframe", "form", "object"} & set(page.elements)
    assert not re.search(r"url\(|@import", answer.text)
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert (
        policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    )
    (style,) = re.findall(r"<style>(.*)</style>", answer.text, re.DOTALL)
    assert policy["style-src"] == f"'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


@pytest.mark.parametrize("accept", [BROWSER["Accept"], "application/json"])
async def test_nobody_learns_a_version_without_a_token(anybody: httpx.AsyncClient, accept: str) -> None:
    answer = await anybody.get("/", headers={"Accept": accept})
    assert __version__ not in answer.text
    assert "server" not in answer.headers


@pytest.mark.parametrize("accept", [BROWSER["Accept"], "application/json"])
async def test_head_has_the_headers_of_get(anybody: httpx.AsyncClient, accept: str) -> None:
    got, head = [await anybody.request(method, "/", headers={"Accept": accept}) for method in ("GET", "HEAD")]
    assert (head.status_code, head.content) == (200, b"")
    names = ("content-type", "content-security-policy", "vary", "cache-control")
    assert [head.headers.get(name) for name in names] == [got.headers.get(name) for name in names]


async def test_other_methods_are_refused_in_words(anybody: httpx.AsyncClient) -> None:
    answer = await anybody.post("/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.json()["code"] == "method_not_allowed"


async def test_a_caller_on_another_machine_is_not_told_where_temporals_web_ui_is(centre: GatewayCentre) -> None:
    elsewhere = httpx.ASGITransport(centre.app, client=("203.0.113.9", 4711))
    async with httpx.AsyncClient(transport=elsewhere, base_url=BASE_URL) as client:
        for accept in (BROWSER["Accept"], "application/json"):
            answer = await client.get("/", headers={"Accept": accept})
            assert answer.status_code == 200
            assert "8233" not in answer.text and "temporal_ui" not in answer.text


@pytest.mark.parametrize(
    ("external", "ui", "client", "shown"),
    [
        (BASE_URL, UI, "127.0.0.1", True),
        (BASE_URL, UI, "::1", True),
        (BASE_URL, UI, "192.0.2.7", False),
        (BASE_URL, UI, "", False),
        (BASE_URL, None, "127.0.0.1", False),
        ("https://edge.example.com", UI, "127.0.0.1", False),  # the caller may be a proxy on this machine
        (BASE_URL, "https://temporal.example.com", "127.0.0.1", False),
    ],
)
def test_temporals_web_ui_is_linked_only_where_it_is_certainly_reached(
    external: str, ui: str | None, client: str, shown: bool
) -> None:
    assert (FrontRoom(external, ui).reachable_ui(client) is not None) is shown


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        ("text/html", True),
        ("TEXT/HTML; Q=0.5", True),
        ("text/html;q=0.5, application/json;q=0.5", True),
        ("text/html;q=0.5, application/json", False),
        ("text/html;q=0.5, */*", False),
        ("text/html;q=0", False),
        ("text/html;charset=utf-8;q=0.1", True),
        ("text/html;q=nan", True),  # no quality, as if it were not there
        ("application/json", False),
        ("*/*", False),
        (",;,q=1,,", False),
        ("", False),
    ],
)
def test_html_is_for_whoever_asks_for_it(accept: str, html: bool) -> None:
    assert prefers_html(accept) is html
