"""The agent's calls, over real HTTP: what each answer means, and what never leaves the agent."""

import base64
import gzip
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scripted_centre import Reply, ScriptedCentre, answer, scripted_centre

from edgewright.agent.attachment import Attachment
from edgewright.agent.centre import LARGEST_ANSWER, Centre
from edgewright.agent.messages import ReceivedHeartbeatAnswer, SentHeartbeat
from edgewright.agent.urls import trusted_by
from edgewright.errors import (
    EdgewrightError,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    Stalled,
    TooLarge,
    Unauthenticated,
    Waiting,
)
from tools.production.certificates import make_certificates

PASSWORD = "ewa_" + "5ec2e7" * 10
BEAT = SentHeartbeat(datetime(2026, 1, 1, tzinfo=UTC), "nonce-1", "main@sha1:a", "digest")


def attachment(url: str, authority: str | None = None) -> Attachment:
    return Attachment("cluster", PASSWORD, url, "cluster", 1, authority)


@pytest.fixture
async def calls(centre: ScriptedCentre) -> AsyncIterator[Centre]:
    calls = Centre(attachment(centre.url))
    yield calls
    await calls.close()


async def test_a_heartbeat_says_who_when_and_what_was_applied(centre: ScriptedCentre, calls: Centre) -> None:
    centre.reply = lambda request: answer(request, status_due=True, detach=True, unheard_of=[1])
    told = await calls.heartbeat(BEAT)
    (request,) = centre.requests
    assert base64.b64decode(request.headers["Authorization"].split()[1]).decode() == f"cluster:{PASSWORD}"
    assert request.body == {
        "sent_at": "2026-01-01T00:00:00+00:00",
        "nonce": "nonce-1",
        "observed_revision": "main@sha1:a",
        "status_digest": "digest",
    }
    assert told == ReceivedHeartbeatAnswer("active", 100, status_due=True, detach=True, nonce="nonce-1")


async def test_a_status_is_answered_with_its_digest(centre: ScriptedCentre, calls: Centre) -> None:
    assert await calls.put_status({"hosts": []}) == "digest"
    assert (centre.requests[0].method, centre.requests[0].body) == ("PUT", {"hosts": []})


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (401, Unauthenticated, "refused_by_centre"),
        (403, Forbidden, "refused_by_centre"),
        (404, NotFound, "refused_by_centre"),
        (413, TooLarge, "refused_by_centre"),
        (418, Refused, "refused_by_centre"),
        (422, Invalid, "refused_by_centre"),
        (429, Waiting, "centre_busy"),
        (500, Waiting, "centre_busy"),
        (503, Waiting, "centre_busy"),
        (302, Waiting, "not_the_centre"),
    ],
)
async def test_each_answer_without_success_has_its_meaning(
    centre: ScriptedCentre, calls: Centre, status: int, kind: type[EdgewrightError], code: str
) -> None:
    headers = {"Retry-After": "30", "Location": f"{centre.url}/elsewhere"}
    centre.reply = lambda _request: Reply(status, {"code": "because"}, headers)
    with pytest.raises(EdgewrightError) as trouble:
        await calls.heartbeat(BEAT)
    assert (type(trouble.value), trouble.value.code) == (kind, code)
    assert len(centre.requests) == 1, "a redirection is not followed"
    if code == "centre_busy":
        assert isinstance(trouble.value, Waiting) and trouble.value.retry_after == 30
        assert "because" in trouble.value.detail


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Please log in</html>",
        b"\xff\xfe",
        [],
        {"state": "active"},
        {"state": 1, "interval": 5},
        {"state": "active", "interval": True},
        b'{"state": "active", "interval": NaN}',
        {"state": "active", "interval": 100, "nonce": "of another heartbeat"},
        b"[" * 100_000,
        b" " * (LARGEST_ANSWER + 1),
    ],
)
async def test_what_is_no_answer_of_a_centre_counts_as_none(
    centre: ScriptedCentre, calls: Centre, body: object
) -> None:
    centre.reply = lambda _request: Reply(200, body)
    with pytest.raises(Waiting) as trouble:
        await calls.heartbeat(BEAT)
    assert trouble.value.code == "not_the_centre"
    with pytest.raises(Waiting):
        await calls.put_status({})


async def test_an_answer_that_unpacks_to_far_more_is_not_unpacked(centre: ScriptedCentre, calls: Centre) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    centre.reply = lambda _request: Reply(200, bomb, {"Content-Encoding": "gzip"})
    with pytest.raises(Waiting) as trouble:
        await calls.heartbeat(BEAT)
    assert trouble.value.code == "not_the_centre"
    assert centre.requests[0].headers["Accept-Encoding"] == "identity"


async def test_what_is_no_code_of_a_centre_is_not_repeated(centre: ScriptedCentre, calls: Centre) -> None:
    centre.reply = lambda _request: Reply(403, {"code": f"you sent {PASSWORD}"})
    with pytest.raises(Forbidden) as trouble:
        await calls.heartbeat(BEAT)
    assert PASSWORD not in trouble.value.detail


@pytest.mark.parametrize("proxy", ["socks5://u:s3cret@127.0.0.1:1", "ftp://u:s3cret@127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(Stalled) as trouble:
        Centre(attachment("https://centre.example"))
    assert trouble.value.code == "proxy_unusable"
    assert trouble.value.__suppress_context__
    assert "s3cret" not in str(trouble.value)


async def test_a_centre_that_is_away_is_waited_for_and_no_secret_is_told() -> None:
    with scripted_centre() as gone:
        url = gone.url
    calls = Centre(attachment(url))
    with pytest.raises(Waiting) as trouble:
        await calls.heartbeat(BEAT)
    await calls.close()
    assert trouble.value.code == "centre_away"
    assert trouble.value.__suppress_context__
    assert PASSWORD not in str(trouble.value) + repr(vars(trouble.value))


async def test_the_proxy_of_the_environment_is_used_and_its_exceptions_are_kept(
    centre: ScriptedCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    centre.reply = answer
    monkeypatch.setenv("HTTP_PROXY", centre.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    far = Centre(attachment("http://centre.example"))
    await far.heartbeat(BEAT)
    await far.close()
    assert centre.requests[0].path == "http://centre.example/v1/agent/heartbeat"
    near = Centre(attachment(centre.url))
    await near.heartbeat(BEAT)
    await near.close()
    assert centre.requests[1].path == "/v1/agent/heartbeat"


async def test_a_centre_is_believed_that_the_certificates_in_the_secret_vouch_for(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "proxy.crt", tmp_path / "proxy.key")
    with scripted_centre(tls=tls) as centre:
        known = Centre(attachment(centre.url, (tmp_path / "ca.pem").read_text()))
        assert (await known.heartbeat(BEAT)).state == "active"
        await known.close()
        unknown = Centre(attachment(centre.url))
        with pytest.raises(Waiting) as trouble:
            await unknown.heartbeat(BEAT)
        await unknown.close()
        assert len(centre.requests) == 1
    assert trouble.value.code == "centre_untrusted"
    assert "issuer certificate" in trouble.value.detail, "as it would say that a clock is years off"


async def test_certificates_in_the_secret_that_cannot_be_read_are_named() -> None:
    for wrong in ("no PEM", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", "ü"):
        with pytest.raises(Stalled) as trouble:
            Centre(attachment("https://centre.example", wrong))
        assert trouble.value.where == "ca.crt"


def test_authorities_are_read_where_something_is_encrypted_and_nowhere_else() -> None:
    assert trusted_by("https://centre.example") is True
    plain = trusted_by("http://sealed-secrets.kube-system:8080")
    assert isinstance(plain, ssl.SSLContext)
    assert plain.get_ca_certs() == []
    assert plain.verify_mode is ssl.CERT_REQUIRED, "whoever shows a certificate all the same is trusted by nobody"
