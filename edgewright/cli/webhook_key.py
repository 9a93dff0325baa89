"""The key file that the signing secrets of webhooks are derived from."""

import secrets
from pathlib import Path

from edgewright.adapters.webhook.key_file import KEY_BYTES
from edgewright.cli.endpoints import write_atomically


def ensure_webhook_key(file: Path) -> None:
    """Makes the file if it is not there; one that is there is never replaced, whatever it holds."""
    if not file.exists():
        write_atomically(file, secrets.token_bytes(KEY_BYTES).hex() + "\n", mode=0o600)
    elif file.stat().st_mode & 0o077:  # else left alone: it may be mounted read-only
        file.chmod(0o600)
