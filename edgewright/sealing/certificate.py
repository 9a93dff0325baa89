"""Which certificates Edgewright seals with. The rules are in docs/crypto.md, "Certificates"."""

import base64
import binascii
import hashlib
import re
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from edgewright.errors import Invalid

PEM_LIMIT = 64 * 1024
"""Characters of PEM text; a certificate of 16,384 bits has less than 8 KiB."""
REMEMBERED = 256
"""Certificates that were read lately; each is a few kB."""
CLOCK_SKEW = timedelta(minutes=5)
"""How far a certificate's beginning may lie ahead, as the edge's clock made it."""
RSA_BITS = range(2048, 16384 + 1)
RSA_EXPONENTS = range(3, 2**31, 2)

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END CERTIFICATE-----")


@dataclass(frozen=True)
class SealingCertificate:
    """The public half of a cluster's sealing key; made by ``parse_certificate`` only.

    Args:
        pem: the certificate, re-wrapped at 64 columns, ends with a newline.
        fingerprint: SHA-256 of the DER bytes, 64 lower-case hexadecimal digits.
        not_before: with time zone, UTC.
        not_after: with time zone, UTC.
    """

    pem: str
    fingerprint: str
    not_before: datetime
    not_after: datetime
    public_key: RSAPublicKey = field(repr=False, compare=False)

    def wrap(self, session_key: bytes, label: bytes) -> bytes:
        """RSA-OAEP (SHA-256) of a session key, as long as the RSA modulus; only the edge can undo it."""
        return _wrap(self.public_key, session_key, label)


def parse_certificate(pem: str, *, now: datetime) -> SealingCertificate:
    """Reads a certificate and decides whether Edgewright may seal with it.

    Args:
        pem: as the edge reported it.
        now: the centre's time, with time zone.

    Raises:
        Invalid: code ``certificate_malformed``, ``certificate_not_yet_valid``, ``certificate_expired`` or
            ``certificate_weak``; ``where`` is ``kubeseal_cert``.
        ValueError: ``now`` has no time zone (a defect of the caller).
    """
    if now.tzinfo is None:
        raise ValueError("now needs a time zone")
    certificate = _parsed(pem)
    _check_time(certificate.not_before, certificate.not_after, now)
    return certificate


@lru_cache(REMEMBERED)
def _parsed(pem: str) -> SealingCertificate:
    """What does not depend on the time. A cluster's certificate is asked for with each of its secrets."""
    der = _der(pem)
    try:
        certificate = x509.load_der_x509_certificate(der)
        not_before, not_after = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except (ValueError, x509.InvalidVersion) as error:
        raise _refusal("certificate_malformed", "it is not a valid X.509 certificate") from error
    return SealingCertificate(
        pem=ssl.DER_cert_to_PEM_cert(der),
        fingerprint=hashlib.sha256(der).hexdigest(),
        not_before=not_before,
        not_after=not_after,
        public_key=_strong_key(certificate),
    )


def _der(pem: str) -> bytes:
    if len(pem) > PEM_LIMIT:
        raise _refusal("certificate_malformed", f"it has more than {PEM_LIMIT // 1024} KiB")
    block = _PEM.fullmatch(pem.strip(" \t\r\n"))
    if block is None:
        raise _refusal("certificate_malformed", "it is not exactly one PEM block of type CERTIFICATE")
    try:
        return base64.b64decode("".join(block[1].split()), validate=True)
    except binascii.Error as error:
        raise _refusal("certificate_malformed", "its base64 is broken") from error


def _check_time(not_before: datetime, not_after: datetime, now: datetime) -> None:
    if now > not_after:
        raise _refusal("certificate_expired", f"it ended at {not_after.isoformat()}")
    if now + CLOCK_SKEW < not_before:
        raise _refusal("certificate_not_yet_valid", f"it begins only at {not_before.isoformat()}")


def _strong_key(certificate: x509.Certificate) -> RSAPublicKey:
    try:
        key = certificate.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _refusal("certificate_malformed", "its public key cannot be read") from error
    if not isinstance(key, RSAPublicKey):
        raise _refusal("certificate_weak", "its key is not RSA, and Sealed Secrets uses nothing else")
    if key.key_size not in RSA_BITS:
        raise _refusal("certificate_weak", f"its RSA key has {key.key_size} bits, wanted are 2,048 to 16,384")
    if key.public_numbers().e not in RSA_EXPONENTS:
        raise _refusal("certificate_weak", "its RSA exponent is not between 3 and 2^31 - 1")
    try:
        _wrap(key, bytes(32), b"")
    except ValueError as error:
        raise _refusal("certificate_malformed", "nothing can be encrypted with its key") from error
    return key


def _wrap(key: RSAPublicKey, session_key: bytes, label: bytes) -> bytes:
    return key.encrypt(session_key, OAEP(MGF1(SHA256()), SHA256(), label))


def _refusal(code: str, reason: str) -> Invalid:
    return Invalid(
        f"The sealing certificate is refused: {reason}.",
        code=code,
        hint="Send the certificate that the sealed-secrets controller serves at /v1/cert.pem.",
        where="kubeseal_cert",
    )
