"""The client finds the gateway, and turns what goes wrong into sentences and exit codes."""

import os
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.client_settings import read_token
from edgewright.cli.endpoints import Endpoints, write_endpoints
from edgewright.cli.failures import CliError, ExitCode

TOKEN = "ew_0123456789abcdef_" + "A" * 43
PROBLEM = {
    "type": "about:blank",
    "title": "Conflict",
    "detail": "That name is taken.",
    "code": "name_taken",
    "hint": "X.",
}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("EDGEWRIGHT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EDGEWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("EDGEWRIGHT_CONFIG", str(tmp_path / "config"))


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> GatewayClient:
    return GatewayClient("http://127.0.0.1:1", TOKEN, transport=httpx.MockTransport(answer))


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [
        (400, ExitCode.USAGE),
        (401, ExitCode.NOT_ALLOWED),
        (403, ExitCode.NOT_ALLOWED),
        (404, ExitCode.NOT_FOUND),
        (409, ExitCode.REFUSED),
        (412, ExitCode.REFUSED),
        (413, ExitCode.USAGE),
        (422, ExitCode.USAGE),
        (429, ExitCode.UNAVAILABLE),
        (500, ExitCode.FAILED),
        (503, ExitCode.UNAVAILABLE),
    ],
)
def test_problem_document_becomes_sentence_hint_and_exit_code(status: int, exit_code: ExitCode) -> None:
    with answering(lambda _: httpx.Response(status, json=PROBLEM)) as gateway, pytest.raises(CliError) as caught:
        gateway.get("/v1/cluster")
    error = caught.value
    assert (error.sentence, error.hint, error.code) == ("That name is taken.", "X.", "name_taken")
    assert error.exit_code == exit_code


def test_answer_that_is_no_gateways_says_so() -> None:
    with answering(lambda _: httpx.Response(502, text="<html>")) as gateway, pytest.raises(CliError) as caught:
        gateway.get("/v1/cluster")
    assert "502" in caught.value.sentence
    assert caught.value.exit_code == ExitCode.UNAVAILABLE


def test_refused_token_points_to_the_token_file() -> None:
    body = {"detail": "No valid credentials."}
    with answering(lambda _: httpx.Response(401, json=body)) as gateway, pytest.raises(CliError) as caught:
        gateway.get("/v1/cluster")
    assert "EDGEWRIGHT_TOKEN_FILE" in (caught.value.hint or "")
    assert TOKEN not in f"{caught.value.sentence} {caught.value.hint}"


def test_token_and_json_travel_as_they_should() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.headers.get("authorization"), request.headers["content-type"]))
        return httpx.Response(201, json={"uuid": "x"})

    with answering(answer) as gateway:
        assert gateway.post("/v1/cluster", {"name": "x"}) == {"uuid": "x"}
        gateway.patch("/v1/cluster/x", {})
    bearer = f"Bearer {TOKEN}"
    assert seen == [("POST", bearer, "application/json"), ("PATCH", bearer, "application/merge-patch+json")]


def test_wanted_error_status_is_handed_to_the_caller() -> None:
    with answering(lambda _: httpx.Response(503, json=PROBLEM)) as gateway:
        assert gateway.request("GET", "/x", accept=frozenset({503})).status_code == 503


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.ReadError("cut")])
def test_gateway_out_of_reach_is_unavailable_and_says_where(error: httpx.HTTPError) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise error

    with answering(answer) as gateway, pytest.raises(CliError) as caught:
        gateway.get("/v1/cluster")
    assert "http://127.0.0.1:1" in caught.value.sentence
    assert caught.value.exit_code == ExitCode.UNAVAILABLE


def test_redirect_never_carries_the_token_away() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.host == "127.0.0.1"
        return httpx.Response(302, headers={"Location": "http://elsewhere.example/"})

    with answering(answer) as gateway, pytest.raises(CliError):
        gateway.get("/v1/cluster")


def test_proxy_of_the_company_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with GatewayClient(f"http://127.0.0.1:{server.server_port}", None) as gateway:
            assert gateway.get("/") == {}


def test_local_gateway_and_token_are_found_by_themselves(tmp_path: Path) -> None:
    write_endpoints(tmp_path, Endpoints("http://127.0.0.1:7", "127.0.0.1:8", "", os.getpid()))
    (tmp_path / "admin-token").write_text(TOKEN + "\n")
    with connect() as gateway:
        assert gateway.url == "http://127.0.0.1:7"


def test_no_gateway_running_says_how_to_start_one() -> None:
    with pytest.raises(CliError, match="is not running") as caught:
        connect()
    assert "up" in (caught.value.hint or "")
    assert caught.value.exit_code == ExitCode.UNAVAILABLE


def test_gateway_elsewhere_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.setenv("EDGEWRIGHT_URL", "https://edge.example.com/")
    monkeypatch.setenv("EDGEWRIGHT_TOKEN_FILE", str(tmp_path / "token"))
    with connect() as gateway:
        assert gateway.url == "https://edge.example.com"


@pytest.mark.parametrize("url", ["edge.example.com", "ftp://edge.example.com", "https://user:x@edge.example.com"])
def test_url_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("EDGEWRIGHT_URL", url)
    with pytest.raises(CliError) as caught:
        connect()
    assert caught.value.exit_code == ExitCode.USAGE


def test_token_is_not_sent_in_clear_to_another_machine_without_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEWRIGHT_URL", "http://edge.example.com")
    with pytest.raises(CliError, match="in clear"):
        connect()
    monkeypatch.setenv("EDGEWRIGHT_ALLOW_PLAIN_HTTP", "1")
    connect().close()


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff\xfe", b"line\nline"])
def test_file_without_a_token_is_refused_without_showing_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(CliError, match="does not hold a token"):
        read_token(tmp_path / "token")


def test_missing_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="token cannot be read"):
        read_token(tmp_path / "token")
