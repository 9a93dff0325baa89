"""What a gateway reads of a request before it has had enough."""

import json
from collections.abc import Iterator

import psutil
import pytest
from bounded_gateway import BoundedGateway
from lone_gateway import LoneGateway
from raw_client import RawClient

MIB = 1024 * 1024
START = b"GET /ping HTTP/1.1\r\nHost: x\r\n"


def many_lines() -> Iterator[bytes]:
    yield START
    for number in range(72):
        yield b"".join(b"X-%07d: %b\r\n" % (number * 1024 + line, b"a" * 1012) for line in range(1024))


def one_long_line() -> Iterator[bytes]:
    yield START + b"X-Long: "
    for _ in range(72):
        yield b"a" * MIB


def one_long_path() -> Iterator[bytes]:
    yield b"GET /"
    for _ in range(72):
        yield b"a" * MIB


@pytest.mark.parametrize("pieces", [many_lines, one_long_line, one_long_path])
def test_72_megabytes_of_headers_are_refused_and_take_no_memory(
    lone: LoneGateway, pieces: "type[Iterator[bytes]]"
) -> None:
    process = psutil.Process(lone.process.pid)
    before = process.memory_info().rss
    client = RawClient(lone.url)
    taken = client.send_all_of(pieces())
    assert client.read_until_closed().startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert taken < 72 * MIB
    assert process.memory_info().rss - before < 48 * MIB
    assert lone.api("GET", "/healthz").is_success


def test_refusal_is_a_problem_document(live: BoundedGateway) -> None:
    client = RawClient(live.url)
    client.send(START + b"".join(b"X-%d: a\r\n" % number for number in range(200)) + b"\r\n")
    head, _, body = client.read_until_closed().partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert (json.loads(body)["status"], json.loads(body)["code"]) == (431, "headers_too_large")


JUST_TOO_LONG = 66 * 1024
"""Bytes; `docs/operations.md` says 64 KiB."""


@pytest.mark.parametrize(
    "head",
    [
        START + b"".join(b"X-%d: %b\r\n" % (number, b"a" * (JUST_TOO_LONG // 6)) for number in range(6)) + b"\r\n",
        START + b"X-Long: " + b"a" * JUST_TOO_LONG + b"\r\n\r\n",
        START + b"X-Unfinished: " + b"a" * JUST_TOO_LONG,
        b"GET /" + b"a" * JUST_TOO_LONG + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["few lines", "one line", "half a line", "path"],
)
def test_more_than_64_kib_of_headers_are_refused(live: BoundedGateway, head: bytes) -> None:
    client = RawClient(live.url)
    client.send(head)
    answer, _, body = client.read_until_closed().partition(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert json.loads(body)["code"] == "headers_too_large"


def test_long_headers_within_the_limit_are_taken(live: BoundedGateway) -> None:
    client = RawClient(live.url)
    client.send(START + b"".join(b"X-%d: %b\r\n" % (number, b"a" * 600) for number in range(100)) + b"\r\n")
    assert client.read_answer().startswith(b"HTTP/1.1 200 OK\r\n")


def test_what_is_no_http_is_told_so(live: BoundedGateway) -> None:
    client = RawClient(live.url)
    client.send(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
    assert client.read_until_closed().startswith(b"HTTP/1.1 400 Bad Request\r\n")


def endless_blank_lines() -> Iterator[bytes]:
    for _ in range(72):
        yield b"\r\n" * (MIB // 2)


def endless_trailer() -> Iterator[bytes]:
    yield b"POST /ping HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Trailer: "
    for _ in range(72):
        yield b"a" * MIB


def endless_chunk_extension() -> Iterator[bytes]:
    yield b"POST /ping HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;"
    for _ in range(72):
        yield b"a" * MIB


def endless_body_of_an_answered_request() -> Iterator[bytes]:
    yield b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
    for _ in range(72):
        yield b"a" * MIB


def pipelined_requests() -> Iterator[bytes]:
    for _ in range(200):
        yield b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 1000


@pytest.mark.parametrize(
    "pieces",
    [
        endless_blank_lines,
        endless_trailer,
        endless_chunk_extension,
        endless_body_of_an_answered_request,
        pipelined_requests,
    ],
)
def test_what_never_ends_is_broken_off(lone: LoneGateway, pieces: "type[Iterator[bytes]]") -> None:
    process = psutil.Process(lone.process.pid)
    before = process.memory_info().rss
    client = RawClient(lone.url)
    everything = sum(len(piece) for piece in pieces())
    assert client.send_all_of(pieces()) < everything
    client.read_until_closed()
    assert process.memory_info().rss - before < 48 * MIB
    assert lone.api("GET", "/healthz").is_success


def test_requests_of_one_connection_follow_each_other(live: BoundedGateway) -> None:
    client = RawClient(live.url)
    for _ in range(300):
        client.send(START + b"\r\n")
        assert client.read_answer().startswith(b"HTTP/1.1 200 OK\r\n")


def test_body_in_the_smallest_chunks_is_taken(live: BoundedGateway) -> None:
    client = RawClient(live.url)
    client.send(b"POST /v1/register HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(40):
        client.send(b"1\r\na\r\n" * 1000)
    client.send(b"0\r\n\r\n")
    assert client.read_answer().startswith(b"HTTP/1.1 401 Unauthorized\r\n")
