"""Tokens and credentials: how each is written, parsed, and stored as a hash.

====================  ==============================================  =========================
text                  spelling                                        stored
====================  ==============================================  =========================
operator token        ``ew_<16 hex id>_<43 base64url>``               its ID and its SHA-256
registration token    ``ewr_<16 hex id>_<43 base64url>``              its ID and its SHA-256
flux credential       ``ewf_<64 hex>``                                its SHA-256
agent credential      ``ewa_<64 hex>``                                its SHA-256
====================  ==============================================  =========================

Every secret part is 256 random bits, so a plain SHA-256 is as good as a slow hash. Callers pass in the random bytes.
"""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import timedelta

from edgewright.domain.cluster import Role
from edgewright.errors import Unauthenticated

TOKEN_ID_BYTES = 8
LONGEST_TOKEN_LIFE = timedelta(days=7)
"""Longest life of a registration token."""
SECRET_BYTES = 32

OPERATOR_PREFIX = "ew"
REGISTRATION_PREFIX = "ewr"
ROLE_PREFIXES = {Role.FLUX: "ewf", Role.AGENT: "ewa"}

_TOKEN = re.compile(r"(ew|ewr)_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_CREDENTIAL = re.compile(r"(ewf|ewa)_([0-9a-f]{64})", re.ASCII)
_ROLE_OF_PREFIX = {prefix: role for role, prefix in ROLE_PREFIXES.items()}


@dataclass(frozen=True)
class Token:
    """The parts of an operator or registration token.

    Args:
        prefix: ``ew`` or ``ewr``.
        id: 16 hexadecimal digits; public, so it may be logged and shown.
        text: the whole token, which grants access.
    """

    prefix: str
    id: str
    text: str = field(repr=False)

    @property
    def sha256(self) -> bytes:
        """The hash of the whole text, 32 bytes."""
        return sha256_of(self.text)


@dataclass(frozen=True)
class CredentialSecret:
    """The password of one of a cluster's credentials; its prefix names the role."""

    role: Role
    text: str = field(repr=False)

    @property
    def sha256(self) -> bytes:
        """The hash of the whole text, 32 bytes."""
        return sha256_of(self.text)


def operator_token(token_id: bytes, secret: bytes) -> Token:
    """An operator token of 8 and 32 random bytes."""
    return _token(OPERATOR_PREFIX, token_id, secret)


def registration_token(token_id: bytes, secret: bytes) -> Token:
    """A registration token of 8 and 32 random bytes."""
    return _token(REGISTRATION_PREFIX, token_id, secret)


def cluster_secret(role: Role, secret: bytes) -> CredentialSecret:
    """Makes the password of a cluster credential from 32 random bytes; edges make their own."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a credential is made of {SECRET_BYTES} bytes")
    return CredentialSecret(role, f"{ROLE_PREFIXES[role]}_{secret.hex()}")


def parse_operator_token(text: str) -> Token:
    """Parses an operator token.

    Raises:
        Unauthenticated: it does not look like one; the message does not repeat it.
    """
    return _parse_token(text, OPERATOR_PREFIX, "operator token")


def parse_registration_token(text: str) -> Token:
    """Parses a registration token; raises like ``parse_operator_token``."""
    return _parse_token(text, REGISTRATION_PREFIX, "registration token")


def parse_cluster_secret(text: str) -> CredentialSecret:
    """Parses a cluster credential's password, which tells its role.

    Raises:
        Unauthenticated: it does not look like one; the message does not repeat it.
    """
    match = _CREDENTIAL.fullmatch(text)
    if match is None:
        raise Unauthenticated("This is not a credential of a cluster.")
    return CredentialSecret(_ROLE_OF_PREFIX[match[1]], text)


def sha256_of(text: str) -> bytes:
    """Returns the hash under which a token or credential secret is stored: 32 bytes."""
    return hashlib.sha256(text.encode()).digest()


def matches(text: str, stored_sha256: bytes) -> bool:
    """Whether a text matches a stored hash, compared in constant time."""
    return hmac.compare_digest(sha256_of(text), stored_sha256)


def _token(prefix: str, token_id: bytes, secret: bytes) -> Token:
    if len(token_id) != TOKEN_ID_BYTES or len(secret) != SECRET_BYTES:
        raise ValueError(f"a token is made of {TOKEN_ID_BYTES} and {SECRET_BYTES} bytes")
    encoded = base64.urlsafe_b64encode(secret).rstrip(b"=").decode()
    return Token(prefix, token_id.hex(), f"{prefix}_{token_id.hex()}_{encoded}")


def _parse_token(text: str, prefix: str, what: str) -> Token:
    match = _TOKEN.fullmatch(text)
    if match is None or match[1] != prefix:
        raise Unauthenticated(f"What was sent is not spelled like the {what} that is wanted.")
    return Token(prefix, match[2], text)
