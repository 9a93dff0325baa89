"""TLS of the gateway's own, in the process and on the event loop that people run."""

import ssl
from pathlib import Path

import httpx
import pytest
from lone_gateway import DidNotStart, lone_gateway
from raw_client import RawClient
from supervised import eventually

from tools.production.certificates import make_certificates


def test_gateway_with_a_certificate_serves_https_and_waits_for_no_handshake(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    certificate = {
        "EDGEWRIGHT_TLS_CERT": str(tmp_path / "proxy.crt"),
        "EDGEWRIGHT_TLS_KEY": str(tmp_path / "proxy.key"),
        "EDGEWRIGHT_CONNECTIONS": "40",
        "EDGEWRIGHT_CONNECTIONS_PER_ADDRESS": "10",
    }
    trusted = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    with lone_gateway(tmp_path / "home", instead=certificate, verify=trusted) as gateway:
        silent = [RawClient(gateway.url, secured=False) for _ in range(10)]
        with httpx.Client(base_url=gateway.url, verify=trusted, trust_env=False) as client:
            for _ in range(50):
                assert client.get("/ping").is_success
            large = client.get("/docs/swagger-ui-bundle.js")
        assert len(large.content) == int(large.headers["content-length"])
        eventually(lambda: silent[0].is_closed)
        refused = RawClient(gateway.url, secured=False)
        refused.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in refused.read_until_closed()
        for client_left_open in silent:
            client_left_open.close()
        assert gateway.api("GET", "/healthz").is_success
    assert gateway.process.returncode == 0


def test_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("none")
    none = {"EDGEWRIGHT_TLS_CERT": str(tmp_path / "none.pem"), "EDGEWRIGHT_TLS_KEY": str(tmp_path / "none.pem")}
    with pytest.raises(DidNotStart, match="tls_unusable"), lone_gateway(tmp_path / "home", instead=none):
        raise AssertionError
