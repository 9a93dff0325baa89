"""The Sealed Secrets envelope; docs/crypto.md has the byte layout, its sources and why the nonce is zero."""

import base64
import binascii
import secrets
from enum import StrEnum

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from edgewright.domain.kubernetes_names import SecretReference
from edgewright.errors import Invalid
from edgewright.sealing.certificate import SealingCertificate
from edgewright.sealing.plaintext import Plaintext

LENGTH_BYTES = 2
SESSION_KEY_BYTES = 32
TAG_BYTES = 16
ZERO_NONCE = bytes(12)


class Scope(StrEnum):
    """Where a sealed value opens: in one Secret, in one namespace, or anywhere in the cluster."""

    STRICT = "strict"
    NAMESPACE_WIDE = "namespace-wide"
    CLUSTER_WIDE = "cluster-wide"


def label(scope: Scope, secret: SecretReference) -> bytes:
    """The OAEP label that ties an envelope to its scope.

    Raises:
        edgewright.errors.Invalid: ``namespace_invalid`` or ``secret_name_invalid``, in every scope.
    """
    secret.check()
    match scope:
        case Scope.STRICT:
            return str(secret).encode()
        case Scope.NAMESPACE_WIDE:
            return secret.namespace.encode()
        case Scope.CLUSTER_WIDE:
            return b""


def seal(plaintext: Plaintext, certificate: SealingCertificate, *, scope: Scope, secret: SecretReference) -> str:
    """Encrypts one value so that only the certificate's owner can read it.

    Args:
        plaintext: the value; its size is the caller's to check (``check_secret_size``).
        secret: its namespace is a part of the label unless the scope is cluster-wide, its name in strict scope.

    Returns:
        The envelope in base64; different at each call.

    Raises:
        edgewright.errors.Invalid: ``namespace_invalid`` or ``secret_name_invalid``.
    """
    session_key = secrets.token_bytes(SESSION_KEY_BYTES)
    wrapped_key = certificate.wrap(session_key, label(scope, secret))
    encrypted = AESGCM(session_key).encrypt(ZERO_NONCE, plaintext.reveal(), None)
    return base64.b64encode(len(wrapped_key).to_bytes(LENGTH_BYTES, "big") + wrapped_key + encrypted).decode()


def blank_envelope(size: int, certificate: SealingCertificate) -> str:
    """What is as long as the envelope of a value, and holds nothing: whether it fits can be said before it is sealed.

    Args:
        size: of the value, bytes.
    """
    wrapped_length = certificate.public_key.key_size // 8
    content = bytes(wrapped_length + size + TAG_BYTES)
    return base64.b64encode(wrapped_length.to_bytes(LENGTH_BYTES, "big") + content).decode()


def plaintext_size(ciphertext: str) -> int:
    """The length in bytes of the value inside an envelope, told from the envelope's length.

    Args:
        ciphertext: an envelope in base64.

    Raises:
        edgewright.errors.Invalid: it is no envelope (code ``ciphertext_malformed``).
    """
    return _sizes(ciphertext)[1]


def wrapped_key_size(ciphertext: str) -> int:
    """The length in bytes of the wrapped session key: that of the RSA modulus.

    Raises:
        edgewright.errors.Invalid: as ``plaintext_size``.
    """
    return _sizes(ciphertext)[0]


def _sizes(ciphertext: str) -> tuple[int, int]:
    try:
        envelope = base64.b64decode(ciphertext, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _no_envelope() from error
    wrapped_length = int.from_bytes(envelope[:LENGTH_BYTES], "big")
    size = len(envelope) - LENGTH_BYTES - wrapped_length - TAG_BYTES
    if wrapped_length == 0 or size < 0:
        raise _no_envelope()
    return wrapped_length, size


def _no_envelope() -> Invalid:
    return Invalid("This value was not sealed by Sealed Secrets.", code="ciphertext_malformed", where="ciphertext")
