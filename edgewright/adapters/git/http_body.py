"""Request bodies of Git's smart HTTP protocol: decoded and counted while they stream."""

import zlib
from collections.abc import AsyncIterator

from edgewright.errors import Refused

_PIECE = 64 * 1024


async def decoded(body: AsyncIterator[bytes], content_encoding: str | None) -> AsyncIterator[bytes]:
    """The body without its ``Content-Encoding``, in pieces of at most 64 KiB if it was packed.

    Raises:
        Refused: code ``body_encoding_invalid``: an unknown encoding, or not what it says.
    """
    encoding = (content_encoding or "identity").strip().lower()
    if encoding == "identity":
        async for chunk in body:
            yield chunk
    elif encoding in {"gzip", "x-gzip"}:
        async for piece in _gunzipped(body):
            yield piece
    else:
        raise _invalid(f"The content encoding {encoding[:40]!r} is not known; send gzip or none.")


async def _gunzipped(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    gunzip = zlib.decompressobj(16 + zlib.MAX_WBITS)
    async for chunk in body:
        rest, piece = chunk, b""
        # A full piece may have more behind it, even when no input is left.
        while rest or len(piece) == _PIECE:
            if gunzip.eof:
                raise _invalid("The body goes on after the end of its gzip stream.")
            try:
                piece = gunzip.decompress(rest, _PIECE)
            except zlib.error as error:
                raise _invalid("The body is not valid gzip.") from error
            rest = gunzip.unconsumed_tail or gunzip.unused_data
            if piece:
                yield piece
    if not gunzip.eof:
        raise _invalid("The body ends before its gzip stream does.")


def _invalid(detail: str) -> Refused:
    return Refused(detail, code="body_encoding_invalid")
