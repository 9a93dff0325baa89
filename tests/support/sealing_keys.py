"""Keys, certificates and the opener: what the edge has and the product must not."""

import base64
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificateIssuerPrivateKeyTypes,
    CertificatePublicKeyTypes,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from edgewright.sealing import SealingCertificate, parse_certificate

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def private_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    """One key per size and process: making one of 4,096 bits takes a good part of a second."""
    return _generated(bits)


@cache
def _generated(bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def private_pem(bits: int = 2048) -> str:
    """The key as the controller's Secret and ``kubeseal --recovery-private-key`` hold it."""
    encoded = private_key(bits).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return encoded.decode()


def certificate_pem(
    key: CertificateIssuerPrivateKeyTypes,
    *,
    public_key: CertificatePublicKeyTypes | None = None,
    not_before: datetime = NOW - timedelta(days=1),
    not_after: datetime = NOW + timedelta(days=3650),
) -> str:
    """A self-signed certificate like the controller's; of ``public_key`` instead, if that is given."""
    name = x509.Name([])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public_key or key.public_key())
        .serial_number(20260301)
        .not_valid_before(not_before)
        .not_valid_after(not_after)
        .sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def sealing_certificate(bits: int = 2048) -> SealingCertificate:
    """The certificate of ``private_key(bits)``, accepted by the product."""
    return parse_certificate(certificate_pem(private_key(bits)), now=NOW)


def open_envelope(ciphertext: str, key: rsa.RSAPrivateKey, label: bytes) -> bytes:
    """Opens one envelope; written from docs/crypto.md, sharing nothing with the product.

    Raises:
        ValueError: another key or label.
        cryptography.exceptions.InvalidTag: the encrypted value was changed.
    """
    envelope = base64.b64decode(ciphertext, validate=True)
    wrapped_length = envelope[0] * 256 + envelope[1]
    wrapped_key = envelope[2 : 2 + wrapped_length]
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=label)
    session_key = key.decrypt(wrapped_key, oaep)
    assert len(session_key) == 32
    return AESGCM(session_key).decrypt(b"\0" * 12, envelope[2 + wrapped_length :], None)
