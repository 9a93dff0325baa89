"""An edge to run the script on: a stand-in for kubectl, a real HTTP server as the centre, real shells."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bootstrap_edge import CLUSTER, SHELLS, KubectlMachine, RegistrationServer
from bootstrap_runs import Register

from edgewright.bootstrap import render_uninstall


@pytest.fixture
def centre() -> Iterator[RegistrationServer]:
    told = RegistrationServer()
    told.says((200, {"state": "accepted", "short_code": "7KQ-2MX", "cluster": str(CLUSTER)}))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.fetched.append((self.path, self.headers["Authorization"]))
            page = render_uninstall() if self.path == "/v1/uninstall.sh" else told.pages.get(self.path)
            if page is None:
                self._answer(404, json.dumps({"detail": "It is not there.", "code": "flux_not_imported"}))
            else:
                self._answer(200, page)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = {"path": self.path, "authorization": self.headers["Authorization"], **json.loads(body)}
            told.requests.append(request)
            if told.decide is not None:
                with told.turn:
                    status, said = told.decide(request)
                self._answer(status, json.dumps(said))
                return
            answer = told.answers.pop(0) if len(told.answers) > 1 else told.answers[0]
            if answer is None:
                self.close_connection = True
                return
            self._answer(*answer)

        def _answer(self, status: int, text: str) -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Quiet: pytest shows what matters."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=sorted(SHELLS))
def edge(request: pytest.FixtureRequest, tmp_path: Path, centre: RegistrationServer) -> KubectlMachine:
    return KubectlMachine(tmp_path / "edge", SHELLS[request.param], centre)


@pytest.fixture
def site(tmp_path: Path, centre: RegistrationServer) -> Iterator[KubectlMachine]:
    """The same with this machine's own shell alone, for what is no matter of shells."""
    made = KubectlMachine(tmp_path / "edge", ["/bin/sh"], centre)
    yield made
    for run in made.runs:
        run.abandon()


@pytest.fixture
def register(centre: RegistrationServer) -> Register:
    """What the centre knows of the one cluster, and decides by."""
    made = Register()
    centre.decide = made.decide
    return made
