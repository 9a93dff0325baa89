import base64

import pytest
from cryptography.exceptions import InvalidTag
from hypothesis import given
from hypothesis import strategies as st
from sealing_keys import open_envelope, private_key, sealing_certificate

from edgewright.domain.kubernetes_names import SecretReference
from edgewright.errors import Invalid
from edgewright.sealing import Plaintext, Scope, blank_envelope, label, plaintext_size, seal

LABELS = {Scope.STRICT: b"press/db", Scope.NAMESPACE_WIDE: b"press", Scope.CLUSTER_WIDE: b""}


def sealed(value: bytes, scope: Scope = Scope.STRICT, bits: int = 2048, name: str = "db") -> str:
    return seal(Plaintext(value), sealing_certificate(bits), scope=scope, secret=SecretReference("press", name))


@pytest.mark.parametrize("scope", Scope)
def test_labels_are_those_of_the_controller(scope: Scope) -> None:
    assert label(scope, SecretReference("press", "db")) == LABELS[scope]


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("bits", [2048, 3072, 4096])
def test_the_edge_opens_what_is_sealed(bits: int, scope: Scope) -> None:
    assert open_envelope(sealed(b"s3cr3t", scope, bits), private_key(bits), LABELS[scope]) == b"s3cr3t"


@pytest.mark.parametrize("scope", [Scope.STRICT, Scope.NAMESPACE_WIDE])
@pytest.mark.parametrize("wrong", [b"press/other", b"other/db", b"pres", b"press/db ", b""])
def test_an_envelope_does_not_open_elsewhere(scope: Scope, wrong: bytes) -> None:
    with pytest.raises(ValueError):
        open_envelope(sealed(b"s3cr3t", scope), private_key(), wrong)


def test_another_cluster_cannot_open_it() -> None:
    with pytest.raises(ValueError):
        open_envelope(sealed(b"s3cr3t", bits=2048), private_key(3072), b"press/db")


@given(st.binary(max_size=300))
def test_any_bytes_come_back_and_their_length_shows(value: bytes) -> None:
    envelope = sealed(value)
    assert open_envelope(envelope, private_key(), b"press/db") == value
    assert plaintext_size(envelope) == len(value)


@pytest.mark.parametrize("size", [0, 1, 255, 1000])
@pytest.mark.parametrize("bits", [2048, 3072, 4096])
def test_how_long_an_envelope_will_be_is_known_before_its_value_is_sealed(bits: int, size: int) -> None:
    blank = blank_envelope(size, sealing_certificate(bits))
    assert len(blank) == len(sealed(bytes(size), bits=bits))
    assert plaintext_size(blank) == size


@pytest.mark.parametrize("size", [0, 1, 1024 * 1024])
@pytest.mark.parametrize("bits", [2048, 4096])
def test_smallest_and_largest_values_come_back(size: int, bits: int) -> None:
    value = bytes(range(256)) * (size // 256) + bytes(size % 256)
    envelope = sealed(value, bits=bits)
    assert open_envelope(envelope, private_key(bits), b"press/db") == value
    assert plaintext_size(envelope) == size


def test_the_same_value_never_gives_the_same_key_or_ciphertext() -> None:
    first, second = (base64.b64decode(sealed(b"same value")) for _ in range(2))
    assert first[:2] == second[:2] == (256).to_bytes(2, "big")
    assert first[2:258] != second[2:258]
    assert first[258:] != second[258:]


def test_a_changed_envelope_is_noticed() -> None:
    envelope = bytearray(base64.b64decode(sealed(b"s3cr3t")))
    envelope[-1] ^= 1
    with pytest.raises(InvalidTag):
        open_envelope(base64.b64encode(envelope).decode(), private_key(), b"press/db")


@pytest.mark.parametrize("scope", Scope)
def test_nothing_is_sealed_for_a_name_that_kubernetes_refuses(scope: Scope) -> None:
    with pytest.raises(Invalid) as refusal:
        sealed(b"s3cr3t", scope, name="../db")
    assert refusal.value.code == "secret_name_invalid"


@pytest.mark.parametrize(
    "ciphertext",
    [
        "",
        "AA==",
        "not base64!",
        "QUJD\nREVG",
        "\N{SNOWMAN}",
        base64.b64encode(bytes(2) + bytes(16)).decode(),
        base64.b64encode((256).to_bytes(2, "big") + bytes(256) + bytes(15)).decode(),
    ],
)
def test_the_size_of_what_is_no_envelope_is_refused(ciphertext: str) -> None:
    with pytest.raises(Invalid) as refusal:
        plaintext_size(ciphertext)
    assert refusal.value.code == "ciphertext_malformed"
