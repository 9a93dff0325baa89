"""``If-Match`` and ``If-None-Match`` (RFC 9110, section 13.1), and how an ETag is written."""

import re

from fastapi import Request

from edgewright.errors import Refused
from edgewright.ports.config_store import Precondition

_ETAG = re.compile(r'\s*(?:W/)?(?:"([\x21\x23-\x7e\x80-\xff]*)"|([A-Za-z0-9-]+))\s*')


def quoted(etag: str) -> str:
    """An ETag as the header carries it."""
    return f'"{etag}"'


def precondition_of(request: Request) -> Precondition:
    """What the request's headers demand of the entry that it writes.

    Weak ETags count like strong ones: ours change with each revision. An ETag without quotes, as people type
    it, is taken too.

    Raises:
        Refused: code ``precondition_malformed``.
    """
    return Precondition(match=_etags(request, "if-match"), none_match=_etags(request, "if-none-match"))


def not_modified(request: Request, etag: str) -> bool:
    """Whether a GET may be answered with 304."""
    known = _etags(request, "if-none-match")
    return known is not None and ("*" in known or etag in known)


def _etags(request: Request, header: str) -> frozenset[str] | None:
    lines = request.headers.getlist(header)
    if not lines:
        return None
    text = ",".join(lines)
    if text.strip() == "*":
        return frozenset({"*"})
    found = [_ETAG.fullmatch(part) for part in text.split(",") if part.strip()]
    if not found or not all(found):
        raise Refused(
            f"The header {header} is not a list of ETags.",
            code="precondition_malformed",
            hint='It looks like "3f2a", "9c1d", or *. Separate several with commas.',
            where=header,
        )
    return frozenset(match[1] if match[1] is not None else match[2] for match in found if match)
