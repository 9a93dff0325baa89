"""The key that signing secrets are derived from: a file in the home, as the database holds no secret (ADR 9).

secret = HKDF-SHA-256(input key: the 32 octets of the file, no salt, info: ``edgewright webhook `` and the 16 octets
of the webhook's UUID; 32 octets). docs/crypto.md.
"""

from pathlib import Path
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from edgewright.errors import Stalled
from edgewright.ports.webhook_delivery import SigningSecret

KEY_BYTES = 32
SECRET_BYTES = 32
INFO = b"edgewright webhook "
FILE_NAME = "webhook-key"


class WebhookKeyFile:
    """Implements ``SigningSecrets``. The file is read each time: it may be put back while the process runs."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def secret_of(self, webhook: UUID) -> SigningSecret:
        """See the port."""
        derivation = HKDF(algorithm=SHA256(), length=SECRET_BYTES, salt=None, info=INFO + webhook.bytes)
        return SigningSecret(derivation.derive(self._key()))

    def _key(self) -> bytes:
        try:
            key = bytes.fromhex(self._file.read_text("ascii").strip())
        except (OSError, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise Stalled(
                f"The key that webhooks are signed with cannot be read: {FILE_NAME} in EDGEWRIGHT_HOME.",
                code="webhook_key_missing",
                hint="Put it back from a backup; or run `edgewright admin init`, and set the webhook anew.",
            )
        return key
