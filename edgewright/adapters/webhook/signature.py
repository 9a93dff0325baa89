"""The signature of Standard Webhooks 1.0.0 (standardwebhooks.com), symmetric: ``v1``.

The signed octets are ``<webhook-id>.<webhook-timestamp>.<body>``; HMAC-SHA-256 over them, with the octets behind
``whsec_`` as key, in base64. The timestamp is that of the try, in seconds since 1970: receivers refuse what is more
than minutes old, so each try is signed anew. docs/crypto.md.
"""

import hmac
from base64 import b64encode
from datetime import datetime
from uuid import UUID

from edgewright.ports.webhook_delivery import SigningSecret

PREFIX = "whsec_"


def shown(secret: SigningSecret) -> str:
    """The secret as its owner is given it, this once."""
    return PREFIX + b64encode(secret.reveal()).decode()


def signed_headers(secret: SigningSecret, event: UUID, at: datetime, body: bytes) -> dict[str, str]:
    """The headers that a receiver verifies the body with."""
    timestamp = str(int(at.timestamp()))
    signed = f"{event}.{timestamp}.".encode() + body
    signature = b64encode(hmac.digest(secret.reveal(), signed, "sha256")).decode()
    return {"webhook-id": str(event), "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}
