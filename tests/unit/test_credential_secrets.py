"""What tokens are made of, and how they are told from wrong ones."""

import base64
import hashlib
import hmac

import pytest

from api.routes.tokens import draw
from edgewright.domain.credentials import matches


def test_a_token_has_256_random_bits_and_is_compared_by_its_sha_256_in_constant_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token, other = draw(), draw()
    assert len(base64.urlsafe_b64decode(token.text.rpartition(f"{token.id}_")[2] + "=")) == 256 // 8
    assert len({token.id, other.id, token.text, other.text}) == 4
    assert token.sha256 == hashlib.sha256(token.text.encode()).digest()
    # A spy, because no test can measure whether a comparison takes the same time for all.
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, two: bytes) -> bool:
        compared.append((one, two))
        return one == two

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert (matches(token.text, token.sha256), matches(other.text, token.sha256)) == (True, False)
    assert compared == [(token.sha256, token.sha256), (other.sha256, token.sha256)]
