"""A release of Flux by its version: fetched from a server that answers as GitHub's API does, redirect included."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from command_line import CommandLine
from flux_file import VERSION, flux_file, sha256_of

DIGEST = f"sha256:{sha256_of(flux_file())}"


@contextmanager
def releases(*, digest: str | None = DIGEST, status: int = 200, answer: bytes | None = None) -> Iterator[str]:
    """GitHub's API with one release. ``answer``: sent for it instead."""

    class Releases(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            base = f"http://{self.headers['Host']}"
            if self.path == f"/releases/tags/{VERSION}":
                asset = {"name": "install.yaml", "browser_download_url": f"{base}/download", "digest": digest}
                other = {"name": "flux.tar.gz", "browser_download_url": f"{base}/other", "digest": None}
                document = json.dumps({"tag_name": VERSION, "assets": [other, asset]}).encode()
                self._send(status, document if answer is None else answer)
            elif self.path == "/download":
                self.send_response(302)
                self.send_header("Location", f"{base}/objects/install.yaml")
                self.end_headers()
            elif self.path == "/objects/install.yaml":
                self._send(200, flux_file())
            else:
                self._send(404, b'{"message":"Not Found"}')

        def _send(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Releases) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/releases"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("version", [VERSION, VERSION.removeprefix("v")])
def test_a_version_is_all_that_an_import_needs(edgewright: CommandLine, version: str) -> None:
    with releases() as url:
        imported = edgewright.ok("flux", "import", version, "--releases", url)
    assert VERSION in imported.out
    assert json.loads(edgewright.ok("flux", "show", "--json").out)["sha256"] == sha256_of(flux_file())


def test_a_file_that_is_not_what_the_release_states_is_refused(edgewright: CommandLine) -> None:
    with releases(digest=f"sha256:{'0' * 64}") as url:
        refused = edgewright("flux", "import", VERSION, "--releases", url)
    assert (refused.code, sha256_of(flux_file()) in refused.err) == (2, True)
    assert edgewright("flux", "show").code == 3


@pytest.mark.parametrize(
    ("version", "how", "code", "said"),
    [
        ("v99.0.0", {}, 3, "Flux has no release v99.0.0."),
        (VERSION, {"digest": None}, 1, "states no checksum"),
        (VERSION, {"status": 403}, 5, "answered 403"),
        (VERSION, {"answer": b"<html>sign in</html>"}, 5, "did not answer as GitHub does"),
    ],
)
def test_each_way_to_fail_has_its_sentence(
    edgewright: CommandLine, version: str, how: dict[str, str], code: int, said: str
) -> None:
    with releases(**how) as url:  # type: ignore[arg-type] # each of its own type
        refused = edgewright("flux", "import", version, "--releases", url)
    assert refused.code == code
    assert said in refused.err
    assert "Traceback" not in refused.err


def test_where_nothing_answers_it_says_how_to_do_without(edgewright: CommandLine) -> None:
    with releases() as url:
        pass
    refused = edgewright("flux", "import", VERSION, "--releases", url)
    assert refused.code == 5
    assert "--sha256 HEX" in refused.err


def test_a_mirror_is_not_asked_over_plain_http(edgewright: CommandLine) -> None:
    refused = edgewright("flux", "import", VERSION, "--releases", "http://mirror.example.com/releases")
    assert (refused.code, "not an https URL" in refused.err) == (2, True)


def test_a_file_needs_a_checksum_and_a_version_takes_none(edgewright: CommandLine) -> None:
    assert edgewright("flux", "import", VERSION, "--sha256", "0" * 64).code == 2
    assert edgewright("flux", "import", "no-such-file.yaml").code == 2
    missing = edgewright("flux", "import", "no-such-file.yaml", "--sha256", "0" * 64)
    assert (missing.code, "no-such-file.yaml" in missing.err) == (2, True)
