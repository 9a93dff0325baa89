"""The webhook over HTTP: set, shown without its secret, replaced, removed."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from gateway_centre import GatewayCentre, gateway_centre
from standardwebhooks import Webhook

from api.app import create_app
from edgewright.adapters.webhook.key_file import FILE_NAME
from edgewright.ports.notifications import Outcome
from edgewright.ports.operators import Permission

URL = "https://alerts.example.com/edgewright?team=7"


async def make(admin: httpx.AsyncClient, url: str = URL) -> dict[str, object]:
    answer = await admin.post("/v1/webhook", json={"url": url})
    assert answer.status_code == 201, answer.text
    assert (answer.headers["location"], answer.headers["cache-control"]) == ("/v1/webhook", "no-store")
    document: dict[str, object] = answer.json()
    return document


async def joined(centre: GatewayCentre, name: str) -> UUID:
    cluster = await centre.create(name)
    await centre.ports.edge_reports.write_status(
        cluster, {"hosts": []}, certificate=None, certificate_problem=None, generation=None, actor="token:test"
    )
    return cluster


async def test_the_secret_is_shown_once_and_is_one_that_the_library_takes(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    made = await make(admin)
    secret = str(made.pop("secret"))
    assert secret.startswith("whsec_")
    Webhook(secret)
    shown = (await admin.get("/v1/webhook")).json()
    assert shown == made
    assert (shown["url"], shown["last_delivery"], shown["waiting"]) == (URL, None, None)


async def test_the_database_holds_nothing_that_could_sign(
    centre: GatewayCentre, admin: httpx.AsyncClient, tmp_path: Path
) -> None:
    secret = str((await make(admin))["secret"])
    key = bytes.fromhex((tmp_path / FILE_NAME).read_text())
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("edgewright.db*"))
    for mark in (secret.encode(), secret.removeprefix("whsec_").encode(), key, key.hex().encode()):
        assert mark not in stored
    identity = UUID((await admin.get("/v1/webhook")).json()["id"])
    assert sha256(centre.ports.signing.secret_of(identity).reveal()).digest() in stored


async def test_the_newest_delivery_and_what_waits_are_told_in_words(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    await make(admin)
    for name in ("press-shop", "paint-shop"):
        await joined(centre, name)
    notifications = centre.ports.notifications
    await notifications.collect()
    batch = await notifications.due(2)
    assert batch is not None
    problem = "The receiver answered 500."
    outcomes = [Outcome(batch.due[0].position, 204), Outcome(batch.due[1].position, 500, problem)]
    await notifications.settle(batch.webhook, outcomes)
    shown = (await admin.get("/v1/webhook")).json()
    last, waiting = shown["last_delivery"], shown["waiting"]
    assert (last["type"], last["cluster"], last["status"], last["attempts"]) == (
        "cluster.joined",
        "paint-shop",
        500,
        1,
    )
    assert last["message"] == f"cluster.joined of paint-shop was not delivered on the first try. {problem}"
    assert (waiting["count"], waiting["message"]) == (1, f"1 notification waits. {problem}")


async def test_another_one_takes_its_place_with_another_secret(admin: httpx.AsyncClient) -> None:
    first, second = await make(admin), await make(admin, "https://other.example.com/")
    assert first["secret"] != second["secret"]
    assert (await admin.get("/v1/webhook")).json()["url"] == "https://other.example.com/"


async def test_what_waits_is_tried_at_once_when_another_one_is_set(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    await make(admin)
    assert centre.fleet.delivering == []  # nothing waits
    await joined(centre, "press-shop")
    await centre.ports.notifications.collect()
    await make(admin)
    assert centre.fleet.delivering == [True]
    centre.fleet.available = False
    await make(admin)  # the sweep sees to it


async def test_a_removed_one_is_gone(admin: httpx.AsyncClient) -> None:
    for answer in (await admin.get("/v1/webhook"), await admin.delete("/v1/webhook")):
        assert (answer.status_code, answer.json()["code"]) == (404, "webhook_unknown")
    await make(admin)
    assert (await admin.delete("/v1/webhook")).status_code == 204
    assert (await admin.get("/v1/webhook")).status_code == 404


@pytest.mark.parametrize(
    "url",
    [
        "",
        "alerts.example.com",
        "ftp://alerts.example.com",
        "https://",
        "https://user:secret@alerts.example.com/",
        "https://alerts.example.com/#part",
        "https://alerts.example.com/ü",
        "https://alerts.example.com/a b",
        "https://alerts.example.com/\n",
        "https://alerts.example.com:port/",
        "https://[::1/",
        "https://[v1.a]/",
        "https://alerts..example.com/",
        "https://alerts%2eexample.com/",
        "https://256.1.1.1/",
        "https://" + "a" * 64 + ".example.com/",
        "http://alerts.example.com/",
        "http://10.0.0.7/",
        "https://alerts.example.com/" + "x" * 2000,
    ],
)
async def test_a_url_that_cannot_be_used_is_refused_and_not_repeated(admin: httpx.AsyncClient, url: str) -> None:
    answer = await admin.post("/v1/webhook", json={"url": url})
    assert answer.status_code == 422
    assert "secret" not in answer.text and "alerts.example.com:port" not in answer.text
    assert (await admin.get("/v1/webhook")).status_code == 404


@pytest.mark.parametrize(
    "url", ["https://10.0.0.7/hook", "http://127.0.0.1:9000/hook", "http://localhost/", "http://[::1]:9000/"]
)
async def test_private_addresses_may_be_told_and_this_machine_without_tls(admin: httpx.AsyncClient, url: str) -> None:
    assert (await make(admin, url))["url"] == url


async def test_plain_http_wants_an_explicit_yes(centre: GatewayCentre) -> None:
    app = create_app(replace(centre.gateway, allow_plain_http=True))
    allowing = GatewayCentre(centre.gateway, app, centre.fleet, centre.workflow, centre.ports)
    admin = await allowing.operator(Permission.ADMIN)
    try:
        await make(admin, "http://alerts.example.com/hook")
    finally:
        await admin.aclose()


async def test_without_its_key_file_no_webhook_is_set_and_the_answer_says_what_to_do(
    centre: GatewayCentre, admin: httpx.AsyncClient, tmp_path: Path
) -> None:
    (tmp_path / FILE_NAME).unlink()
    answer = await admin.post("/v1/webhook", json={"url": URL})
    assert (answer.status_code, answer.json()["code"]) == (409, "webhook_key_missing")
    assert "admin init" in answer.json()["hint"]
    assert (await admin.get("/v1/webhook")).status_code == 404


async def test_the_key_outlives_the_gateway(tmp_path: Path, fresh_database: Path) -> None:
    (tmp_path / "edgewright.db").write_bytes(fresh_database.read_bytes())
    secrets = set()
    identity = UUID(int=7)
    for _ in range(2):
        async with gateway_centre(tmp_path / "edgewright.db", tmp_path / "git") as centre:
            secrets.add(centre.ports.signing.secret_of(identity).reveal())
    assert len(secrets) == 1
