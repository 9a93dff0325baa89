"""What a supervisor asks twenty times a second while its parts start."""

import http.server
import ssl
import threading
from collections.abc import Iterator

import pytest

from edgewright.cli.parts import answers


@pytest.fixture
def url() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_probe_reads_no_authorities(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It verifies nothing, and to read them takes ten times as long as the question."""

    def reads_all(*_: object, **__: object) -> ssl.SSLContext:
        raise AssertionError("the authorities of this machine were read")

    monkeypatch.setattr(ssl, "create_default_context", reads_all)
    assert answers(url)


def test_nobody_there_is_no(url: str) -> None:
    assert not answers(f"{url}nothing")
    assert not answers("http://127.0.0.1:1/")
