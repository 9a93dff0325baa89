"""One sealed value of a Secret, what the file says of it, and how large all of them may be together."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from edgewright.errors import Invalid, TooLarge
from edgewright.sealing.envelope import plaintext_size

SECRET_LIMIT = 1024 * 1024
"""Bytes of plaintext of all keys of one Secret together (Kubernetes)."""

_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


@dataclass(frozen=True)
class SealedValue:
    """One key's value as the driving repository holds it.

    Args:
        ciphertext: the envelope in base64.
        fingerprint: of the certificate that it was sealed with; None if the file does not say.
        sealed_at: with time zone; kept in UTC and whole seconds; None exactly if ``fingerprint`` is.

    Raises:
        ValueError: a time without time zone, or only one of fingerprint and time (a defect of the caller).
    """

    ciphertext: str
    fingerprint: str | None
    sealed_at: datetime | None

    def __post_init__(self) -> None:
        if (self.fingerprint is None) != (self.sealed_at is None):
            raise ValueError("fingerprint and sealed_at are known together or not at all")
        if self.sealed_at is not None:
            if self.sealed_at.tzinfo is None:
                raise ValueError("sealed_at needs a time zone")
            object.__setattr__(self, "sealed_at", self.sealed_at.astimezone(UTC).replace(microsecond=0))


def total_plaintext_size(values: Mapping[str, SealedValue]) -> int:
    """Bytes of plaintext of all keys together.

    A ciphertext that is no envelope counts nothing: the edge cannot open it, and it must not be in the way of
    the value that will replace it.
    """
    return sum(_size_or_zero(value.ciphertext) for value in values.values())


def check_secret_size(values: Mapping[str, SealedValue]) -> None:
    """Holds all keys of one Secret to Kubernetes' limit.

    Args:
        values: every key that the Secret will have, not only those that change.

    Raises:
        TooLarge: code ``secret_too_large``.
    """
    total = total_plaintext_size(values)
    if total > SECRET_LIMIT:
        raise secret_too_large(f"All keys of one Secret may have {SECRET_LIMIT} bytes together; these have {total}.")


def secret_too_large(detail: str, where: str | None = None) -> TooLarge:
    """The one refusal for all limits of a Secret; ``detail`` names the limit."""
    return TooLarge(detail, code="secret_too_large", hint="Spread the keys over several Secrets.", where=where)


def write_records(values: Mapping[str, SealedValue]) -> str | None:
    """The annotation: canonical JSON ``{key: [fingerprint, sealed_at]}``; None if there is nothing to say."""
    records = {
        key: [value.fingerprint, value.sealed_at.strftime(_TIME_FORMAT)]
        for key, value in values.items()
        if value.sealed_at is not None
    }
    return json.dumps(records, sort_keys=True, separators=(",", ":")) if records else None


def read_records(annotation: str | None) -> dict[str, tuple[str, datetime]]:
    """What the annotation says: key -> fingerprint and time. Whatever in it is not ours counts as not said."""
    if annotation is None:
        return {}
    try:
        parsed = json.loads(annotation)
    except (ValueError, RecursionError):
        return {}
    records = {}
    for key, record in parsed.items() if isinstance(parsed, dict) else ():
        match record:
            case [str(fingerprint), str(sealed_at)]:
                moment = _moment(sealed_at)
                if moment is not None:
                    records[key] = (fingerprint, moment)
    return records


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if _TIME.fullmatch(text) else None
    except ValueError:
        return None


def _size_or_zero(ciphertext: str) -> int:
    try:
        return plaintext_size(ciphertext)
    except Invalid:
        return 0
