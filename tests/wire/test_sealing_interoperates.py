"""Our envelopes against an implementation in another language that shares no code with ours."""

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sealing_keys import certificate_pem, open_envelope, private_key, private_pem, sealing_certificate

from edgewright.domain.kubernetes_names import SecretReference
from edgewright.sealing import Plaintext, Scope, label, plaintext_size, read_scope, read_values, seal

NodeAnswers = Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]

ITS_SCOPES = {Scope.STRICT: "strict", Scope.NAMESPACE_WIDE: "namespace", Scope.CLUSTER_WIDE: "cluster"}
DB = SecretReference("press", "db")
VALUES = ["", "s3cr3t", "Grüße, 世界 \N{KEY}\n\0", "x" * 70_000]


def sealed(value: str, scope: Scope, bits: int) -> str:
    return seal(Plaintext(value.encode()), sealing_certificate(bits), scope=scope, secret=DB)


@pytest.mark.parametrize("bits", [2048, 4096])
@pytest.mark.parametrize("scope", Scope)
def test_it_opens_what_we_seal(ask_node: NodeAnswers, scope: Scope, bits: int) -> None:
    requests = [
        {
            "do": "open",
            "privateKey": private_pem(bits),
            "ciphertext": sealed(value, scope, bits),
            "label": label(scope, DB).decode(),
        }
        for value in VALUES
    ]
    assert ask_node(requests) == [{"value": value} for value in VALUES]


def test_it_refuses_what_we_sealed_for_another_secret(ask_node: NodeAnswers) -> None:
    request = {"do": "open", "privateKey": private_pem(), "ciphertext": sealed("s3cr3t", Scope.STRICT, 2048)}
    assert (
        ask_node([{**request, "label": wrong} for wrong in ("press/other", "press", "")]) == [{"refused": True}] * 3
    )


@pytest.mark.parametrize("bits", [2048, 4096])
@pytest.mark.parametrize("scope", Scope)
def test_our_opener_opens_what_it_seals_and_the_layout_is_the_same(
    ask_node: NodeAnswers, scope: Scope, bits: int
) -> None:
    certificate = certificate_pem(private_key(bits))
    requests = [
        {
            "do": "seal",
            "pemKey": certificate,
            "scope": ITS_SCOPES[scope],
            "namespace": "press",
            "name": "db",
            "value": value,
        }
        for value in VALUES
    ]
    for answer, value in zip(ask_node(requests), VALUES, strict=True):
        theirs, ours = answer["ciphertext"], sealed(value, scope, bits)
        assert open_envelope(theirs, private_key(bits), label(scope, DB)) == value.encode()
        assert plaintext_size(theirs) == plaintext_size(ours) == len(value.encode())
        assert len(theirs) == len(ours)
        assert base64.b64decode(theirs)[:2] == base64.b64decode(ours)[:2]


@pytest.mark.parametrize("scope", Scope)
def test_we_read_the_document_that_it_makes(ask_node: NodeAnswers, scope: Scope) -> None:
    request = {
        "do": "document",
        "pemKey": certificate_pem(private_key()),
        "scope": ITS_SCOPES[scope],
        "namespace": "press",
        "name": "db",
        "values": {"user": "admin", "password": "s3cr3t"},
    }
    document = json.dumps(ask_node([request])[0]["document"]).encode()
    opened = {
        key: open_envelope(value.ciphertext, private_key(), label(scope, DB))
        for key, value in read_values(document).items()
    }
    assert opened == {"user": b"admin", "password": b"s3cr3t"}
    assert read_scope(document) is scope
