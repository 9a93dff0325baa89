"""Re-sealing on the real controller: by the real agent, from the repository and back into it through Flux."""

from __future__ import annotations

import base64
import time
from base64 import b64encode
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from edge_cluster.agent import NAMESPACE
from loopback import PLAIN
from resealing_edge import digest
from sealing_keys import open_envelope
from supervised import eventually

from edgewright.agent.resealing import fingerprint_of
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.sealing import Plaintext, Scope, parse_certificate, seal

if TYPE_CHECKING:
    from edge.conftest import Edge
    from edge_cluster.controllers import SealedSecrets

pytestmark = [pytest.mark.real, pytest.mark.timeout(900), pytest.mark.usefixtures("flux")]

FIFTY = [f"s{number:02}" for number in range(50)]


@pytest.fixture(autouse=True)
def without_secrets(edge: Edge) -> None:
    """No secret of another test is in the repository that Flux has fetched."""
    items = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/secret").json()["items"]
    named = [{part: each[part] for part in ("namespace", "name", "key")} for each in items]
    put(edge, *({**each, "delete": True} for each in named))
    edge.cluster.fetch_now()


def put(edge: Edge, *changes: dict[str, Any]) -> None:
    if changes:
        body = {"changes": [{"namespace": "default", **change} for change in changes]}
        answer = edge.centre.api("POST", f"/v1/cluster/{edge.uuid}/secret", json=body)
        assert answer.status_code == 200, answer.text


def value(name: str, text: str, key: str = "password") -> dict[str, str]:
    return {"name": name, "key": key, "value_base64": b64encode(text.encode()).decode()}


def decrypted(edge: Edge, name: str) -> dict[str, str]:
    """What the real controller has made of a SealedSecret."""
    found = edge.cluster.find("secret", name)
    return {} if found is None else {k: base64.b64decode(v).decode() for k, v in found["data"].items()}


def all_decrypted(edge: Edge) -> dict[str, dict[str, str]]:
    found = edge.cluster.find("secret")["items"]
    return {
        each["metadata"]["name"]: {k: base64.b64decode(v).decode() for k, v in each.get("data", {}).items()}
        for each in found
    }


def sealed(edge: Edge, name: str) -> dict[str, str]:
    """The ciphertexts that the edge holds."""
    found = edge.cluster.find("sealedsecret", name)
    return {} if found is None else dict(found["spec"]["encryptedData"])


def states(edge: Edge) -> dict[str, str]:
    items = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/secret").json()["items"]
    return {f"{each['name']}/{each['key']}": each["state"] for each in items}


def renew(edge: Edge, sealed_secrets: SealedSecrets) -> str:
    """A new key, and the centre knows of it; returns its name."""
    name = sealed_secrets.renew_key()
    fingerprint = fingerprint_of(sealed_secrets.certificate())
    eventually(lambda: (edge.shown()["certificate"] or {}).get("fingerprint") == fingerprint)
    return name


def reseal(edge: Edge) -> dict[str, Any]:
    answer = edge.centre.api("POST", f"/v1/cluster/{edge.uuid}/reseal", json={"reason": "a test"})
    assert answer.status_code == 202, answer.text
    begun: dict[str, Any] = answer.json()
    return begun


def lines(edge: Edge, kind: str) -> list[dict[str, Any]]:
    document = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/timeline", params={"limit": 500}).json()
    return [each for each in document["items"] if each["kind"] == kind]


def test_fifty_secrets_are_sealed_for_the_new_key_whatever_happens_meanwhile(
    edge: Edge, sealed_secrets: SealedSecrets
) -> None:
    put(edge, *(value(name, f"value of {name}") for name in FIFTY))
    edge.cluster.fetch_now()
    eventually(lambda: set(FIFTY) <= all_decrypted(edge).keys(), seconds=300)
    renew(edge, sealed_secrets)
    committed = len(lines(edge, "secret.resealed"))
    began = time.monotonic()
    assert reseal(edge)["left"] == len(FIFTY)
    put(edge, value("s49", "set meanwhile"))
    progress = eventually_under_way(edge)
    assert 0 < progress["left"] < len(FIFTY)
    status, reason = edge.condition("SealingKeyCurrent")
    assert (status, reason) == ("True", "Resealing")
    edge.agent.kill()
    edge.agent.start()
    eventually(lambda: set(states(edge).values()) == {"current"}, seconds=300)
    took = time.monotonic() - began
    print(f"{len(FIFTY)} Secrets re-sealed in {took:.0f} s, with an agent killed meanwhile")  # noqa: T201 - a figure
    eventually(lambda: edge.condition("SealingKeyCurrent") == ("True", "Current"))
    assert len(lines(edge, "secret.resealed")) == committed + 1, "one commit"

    edge.cluster.fetch_now()
    eventually(lambda: decrypted(edge, "s49") == {"password": "set meanwhile"})
    eventually(lambda: edge.condition("Synced") == ("True", "UpToDate"))
    newest = load_pem_private_key(sealed_secrets.newest_private_key().encode(), None)
    assert isinstance(newest, RSAPrivateKey)
    expected = {name: f"value of {name}" for name in FIFTY} | {"s49": "set meanwhile"}
    opened = {
        name: open_envelope(sealed(edge, name)["password"], newest, f"default/{name}".encode()).decode()
        for name in FIFTY
    }
    assert opened == expected
    assert {name: values["password"] for name, values in all_decrypted(edge).items() if name in expected} == expected


def eventually_under_way(edge: Edge) -> dict[str, Any]:
    """What is shown of a re-sealing as soon as some of it is done."""
    shown: list[dict[str, Any]] = []

    def has_begun() -> bool:
        found = edge.shown()["resealing"]
        if found is not None and found["left"] < found["secrets"]:
            shown.append(found)
        return bool(shown)

    eventually(has_begun)
    return shown[0]


def test_a_key_that_is_lost_takes_only_its_own_values_along(edge: Edge, sealed_secrets: SealedSecrets) -> None:
    held = sealed_secrets.keys()
    put(edge, value("db", "lost", "old"), value("gone", "lost"))
    renew(edge, sealed_secrets)
    put(edge, value("db", "kept", "new"), value("other", "kept"))
    edge.cluster.fetch_now()
    eventually(lambda: sealed(edge, "db").keys() == {"old", "new"} and bool(sealed(edge, "other")))
    sealed_secrets.lose_keys(*held)
    renew(edge, sealed_secrets)
    assert reseal(edge)["left"] == 3
    eventually(lambda: states(edge)["other/password"] == "current", seconds=120)
    assert states(edge) == {
        "db/new": "current",
        "db/old": "stale",
        "gone/password": "stale",
        "other/password": "current",
    }
    document = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/secret").json()
    assert document["must_reenter"] == ["default/db/old", "default/gone/password"]
    eventually(lambda: edge.condition("SealingKeyCurrent") == ("False", "Unreadable"))
    put(edge, value("db", "entered again", "old"), value("gone", "entered again"))
    edge.cluster.fetch_now()
    eventually(lambda: decrypted(edge, "db") == {"old": "entered again", "new": "kept"})
    eventually(lambda: edge.condition("SealingKeyCurrent") == ("True", "Current"))


def test_a_lying_agent_destroys_its_own_values_only_and_the_real_one_mends_nothing_that_is_not_there(
    edge: Edge, sealed_secrets: SealedSecrets
) -> None:
    put(edge, value("one", "first"), value("two", "second"))
    edge.cluster.fetch_now()
    eventually(lambda: decrypted(edge, "one") == {"password": "first"} and bool(decrypted(edge, "two")))
    renew(edge, sealed_secrets)
    edge.agent.stop()
    reseal(edge)
    attached = edge.cluster.find("secret", "edgewright-agent", namespace=NAMESPACE)["data"]
    user, password, url = (base64.b64decode(attached[key]).decode() for key in ("username", "password", "url"))
    pem = sealed_secrets.certificate()
    certificate = parse_certificate(pem, now=datetime.now(UTC))
    # Well formed, of the right length, and for another Secret: the centre cannot tell.
    lie = seal(Plaintext(b"first"), certificate, scope=Scope.STRICT, secret=SecretReference("default", "stranger"))
    old = sealed(edge, "one")["password"]
    body = {
        "fingerprint": fingerprint_of(pem),
        "secrets": [
            said("one", old, lie),
            said("two", old, lie),  # what it replaces is not there
            said("invented", old, lie),
        ],
    }
    answer = httpx.post(f"{url}/v1/agent/resealed", json=body, auth=(user, password), **PLAIN, timeout=60)
    assert answer.status_code == 200, answer.text
    assert [each["secret"] for each in answer.json()["ignored"]] == ["default/two"]
    edge.agent.start()
    eventually(lambda: states(edge) == {"one/password": "current", "two/password": "current"}, seconds=120)
    edge.cluster.fetch_now()
    eventually(lambda: sealed(edge, "one")["password"] == lie)
    eventually(lambda: not is_synced(edge, "one"))
    assert decrypted(edge, "one") == {"password": "first"}, "the controller leaves what it has decrypted before"
    assert decrypted(edge, "two") == {"password": "second"}
    assert sealed(edge, "invented") == {}
    put(edge, value("one", "set anew"))
    edge.cluster.fetch_now()
    eventually(lambda: decrypted(edge, "one") == {"password": "set anew"})


def said(name: str, old: str, new: str) -> dict[str, Any]:
    replaced = {"old_sha256": digest(old), "ciphertext": new}
    return {"namespace": "default", "name": name, "values": {"password": replaced}}


def is_synced(edge: Edge, name: str) -> bool:
    """Whether the controller says that it has opened a SealedSecret."""
    found = edge.cluster.find("sealedsecret", name)
    conditions = (found.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Synced" and each["status"] == "True" for each in conditions)
