"""The private keys of all edges of a run: a few, for making one takes long. Kept beside the journal."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import load_pem_x509_certificate
from sealing_keys import certificate_pem

POOL = 5


@dataclass(frozen=True)
class EdgeKey:
    """One key with its certificate, both PEM."""

    private: str = field(repr=False)
    certificate: str = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, hexadecimal."""
        return load_pem_x509_certificate(self.certificate.encode()).fingerprint(hashes.SHA256()).hex()

    def opened(self) -> rsa.RSAPrivateKey:
        key = serialization.load_pem_private_key(self.private.encode(), password=None)
        assert isinstance(key, rsa.RSAPrivateKey)
        return key


def make_keys(path: Path) -> list[EdgeKey]:
    """Makes the pool and writes it to a file that only its owner reads."""
    keys = [_make() for _ in range(POOL)]
    path.touch(mode=0o600)
    path.write_text(json.dumps([[key.private, key.certificate] for key in keys]))
    return keys


def read_keys(path: Path) -> list[EdgeKey]:
    """The pool of a run."""
    return [EdgeKey(private, certificate) for private, certificate in json.loads(path.read_text())]


def _make() -> EdgeKey:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    now = datetime.now(UTC)
    encoded = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate = certificate_pem(private, not_before=now - timedelta(days=1), not_after=now + timedelta(days=3650))
    return EdgeKey(encoded.decode(), certificate)
