"""The words of Git's smart HTTP protocol: services, versions, headers, encodings of bodies, packet lines."""

import re
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Literal, cast

from edgewright.errors import Forbidden, Refused

Service = Literal["git-upload-pack", "git-receive-pack"]

_NO_CACHE = {
    "Cache-Control": "no-cache, max-age=0, must-revalidate",
    "Pragma": "no-cache",
    "Expires": "Fri, 01 Jan 1980 00:00:00 GMT",
}
_VERSION = re.compile(r"version=[012]")
_PIECE = 64 * 1024


def parse_service(service: str | None) -> Service:
    """The ``service`` query parameter of ``info/refs``, or the last part of the path of a POST.

    Raises:
        Forbidden: code ``dumb_protocol`` if it is missing, ``service_unknown`` if it is none of Git's two.
    """
    if service is None:
        raise Forbidden(
            "Only Git's smart HTTP protocol is served here, not the dumb one.",
            code="dumb_protocol",
            hint="Use git 1.6.6 or newer, or any client that asks for info/refs?service=git-upload-pack.",
        )
    if service not in {"git-upload-pack", "git-receive-pack"}:
        raise Forbidden(f"There is no Git service {service[:40]!r}.", code="service_unknown")
    return cast(Service, service)


def command(service: Service) -> list[str]:
    """The arguments that make ``git`` one end of a stateless exchange."""
    return [service.removeprefix("git-"), "--stateless-rpc"]


def content_type(service: Service, part: Literal["advertisement", "request", "result"]) -> str:
    """The media type of one part of the protocol."""
    return f"application/x-{service}-{part}"


def headers(service: Service, part: Literal["advertisement", "result"]) -> Mapping[str, str]:
    """The headers of an answer; nothing in between may keep it."""
    return {"Content-Type": content_type(service, part), **_NO_CACHE}


def visible_protocol(service: Service, header: str | None) -> str:
    """The versions in a ``Git-Protocol`` header, as git may see them; pushes know no version 2."""
    versions = [word for word in (header or "")[:200].split(":") if _VERSION.fullmatch(word)]
    if service == "git-receive-pack":
        versions = [version for version in versions if version != "version=2"]
    return ":".join(versions)


def banner(service: Service, protocol: str) -> bytes:
    """What stands before an advertisement; protocol version 2 leaves it out."""
    return b"" if "version=2" in protocol else packet(f"# service={service}\n".encode()) + b"0000"


def packet(content: bytes) -> bytes:
    """Git's packet line: four hexadecimal digits of length, themselves included, then the content."""
    return b"%04x%b" % (len(content) + 4, content)


def last_word(sentence: str) -> bytes:
    """An answer to a push that makes the client show the sentence and give up (band 3 of the side band)."""
    return packet(b"\x03" + sentence.encode() + b"\n")


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
        raise _invalid_body(f"The content encoding {encoding[:40]!r} is not known; send gzip or none.")


async def _gunzipped(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    gunzip = zlib.decompressobj(16 + zlib.MAX_WBITS)
    async for chunk in body:
        rest, piece = chunk, b""
        # A full piece may have more behind it, even when no input is left.
        while rest or len(piece) == _PIECE:
            if gunzip.eof:
                raise _invalid_body("The body goes on after the end of its gzip stream.")
            try:
                piece = gunzip.decompress(rest, _PIECE)
            except zlib.error as error:
                raise _invalid_body("The body is not valid gzip.") from error
            rest = gunzip.unconsumed_tail or gunzip.unused_data
            if piece:
                yield piece
    if not gunzip.eof:
        raise _invalid_body("The body ends before its gzip stream does.")


def _invalid_body(detail: str) -> Refused:
    return Refused(detail, code="body_encoding_invalid")
