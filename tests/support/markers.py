"""Looks for secrets where none may be: every store and output, each secret in each way that it may be written.

A *marker* is a secret whose text can be recognised. A *place* is a name and the bytes that were found there.
What the search can do is proven by planting: ``disguised`` writes a marker the way a store would, with text
around it, and shares no code with ``forms``, which makes what is looked for.
"""

import asyncio
import base64
import binascii
import json
import secrets
import sqlite3
import subprocess
import urllib.parse
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

Place = tuple[str, bytes]
_ALPHABETS = {"base64": base64.b64encode, "base64url": base64.urlsafe_b64encode}
DATABASES = ("edgewright.db", "temporal.db")
"""Files of an embedded centre."""
SPECIAL = ('é"', "/+", "\\ ", "%&", "???", "\n<")
"""What some escaping changes; three question marks have a character in base64 that base64url has not."""


@dataclass(frozen=True)
class Marker:
    """A secret to look for.

    Args:
        name: how a finding calls it.
    """

    name: str
    value: bytes


@dataclass(frozen=True, order=True)
class FoundMarker:
    """A marker was at a place, written in one way."""

    place: str
    marker: str
    form: str

    def __str__(self) -> str:
        return f"{self.place}: {self.marker}, as {self.form}"


def marked_text(name: str) -> Marker:
    """A new marker that looks different in each form."""
    return Marker(name, "".join(secrets.token_hex(3) + special for special in SPECIAL).encode())


def marked_bytes(name: str) -> Marker:
    """A new marker that is no text: every byte value once, in an order of its own, and no UTF-8."""
    order = list(range(256))
    secrets.SystemRandom().shuffle(order)
    return Marker(name, bytes(order))


def token_markers(name: str, text: str) -> list[Marker]:
    """The markers of a token or credential: its secret part as it is spelled, and the bytes that this stands for."""
    secret = text.rpartition("_")[2] if text.startswith(("ewf_", "ewa_")) else text.split("_", 2)[2]
    raw = bytes.fromhex(secret) if len(secret) == 64 else base64.urlsafe_b64decode(secret + "=")
    return [Marker(name, secret.encode()), Marker(f"{name}, its bytes", raw)]


def forms(value: bytes) -> dict[str, list[bytes]]:
    """Every way in which a value may be written, by name; of each, the part that its surroundings do not change."""
    text = _as_text(value)
    found = {"raw": [value]}
    for name, encode in _ALPHABETS.items():
        for offset in range(3):
            found[f"{name} at offset {offset}"] = [_inner_base64(value, offset, encode)]
    found["hex"] = [value.hex().encode()]
    found["HEX"] = [value.hex().upper().encode()]
    found["url"] = _both_cases(urllib.parse.quote(value, safe=""), urllib.parse.quote(value))
    found["form"] = _both_cases(urllib.parse.quote_plus(value), urllib.parse.quote_plus(value, safe="/"))
    found["every byte as %"] = _both_cases("".join(f"%{byte:02x}" for byte in value))
    ascii_json, plain_json = json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
    found["json"] = [form.encode() for form in (ascii_json, plain_json)]
    found["json"] += [form.replace("/", "\\/").encode() for form in (ascii_json, plain_json)]
    found["json in json"] = [json.dumps(ascii_json)[1:-1].encode(), json.dumps(plain_json)[1:-1].encode()]
    found["repr"] = [repr(value)[2:-1].encode(), repr(text)[1:-1].encode()]
    return found


def disguised(value: bytes) -> dict[str, bytes]:
    """The same value, written in every way by other means, with something before and behind it."""
    text = _as_text(value)
    written = {"raw": b"before" + value + b"behind"}
    for offset in range(3):
        padded = b"-" * (3 + offset) + value + b"-" * 4
        written[f"base64 at offset {offset}"] = binascii.b2a_base64(padded, newline=False)
        swapped = binascii.b2a_base64(padded, newline=False).translate(bytes.maketrans(b"+/", b"-_"))
        written[f"base64url at offset {offset}"] = swapped
    written["hex"] = b"0a" + binascii.b2a_hex(value) + b"0b"
    written["HEX"] = b"0A" + binascii.b2a_hex(value).upper() + b"0B"
    written["url"] = b"?v=" + urllib.parse.urlencode({"v": value}, quote_via=urllib.parse.quote, safe="")[2:].encode()
    written["form"] = b"v=" + urllib.parse.urlencode({"v": value})[2:].encode() + b"&w="
    written["every byte as %"] = b"%2D" + b"".join(b"%%%02X" % byte for byte in value)
    written["json"] = json.JSONEncoder().encode({"v": f"-{text}-"}).encode()
    written["json in json"] = json.dumps({"v": json.dumps({"w": f"-{text}-"})}).encode()
    written["repr"] = f"{[value]!r}".encode()
    return written


class MarkerSearch:
    """Knows every form of some markers, and finds them."""

    def __init__(self, markers: Iterable[Marker]) -> None:
        self._needles: dict[bytes, tuple[str, str]] = {}
        for marker in markers:
            for form, needles in forms(marker.value).items():
                for needle in needles:
                    assert len(needle) >= 16, f"{marker.name} as {form} is too short to be told from chance"
                    self._needles.setdefault(needle, (marker.name, form))

    def through(self, places: Iterable[Place]) -> list[FoundMarker]:
        """Every finding, sorted; a form that equals another one is reported as the first of them."""
        return sorted(
            {
                FoundMarker(place, marker, form)
                for place, content in places
                for needle, (marker, form) in self._needles.items()
                if needle in content
            }
        )


def files_below(folder: Path, *, without: Iterable[Path] = ()) -> Iterator[Place]:
    """Every regular file as it is on disk, and its path; named by that path."""
    left_out = set(without)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path not in left_out:
            name = path.relative_to(folder).as_posix()
            yield name, name.encode() + b"\0" + path.read_bytes()


def stores(home: Path, *, without: Iterable[Path] = ()) -> Iterator[Place]:
    """Everything that a centre stores: files as they are, values of databases, inflated objects."""
    yield from files_below(home, without=without)
    for name in DATABASES:
        yield from cells_of(home / name)
    yield from objects_of(home / "repositories")


def cells_of(database: Path) -> Iterator[Place]:
    """Every value of every table of an SQLite file: a value may lie on several pages of the file, in pieces."""
    with closing(sqlite3.connect(database)) as connection:
        connection.text_factory = bytes
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            name = table.decode()
            rows = connection.execute(f'SELECT * FROM "{name}"')
            values = (value for row in rows for value in row if value is not None)
            yield (
                f"{database.name}, table {name}",
                b"\0".join(value if isinstance(value, bytes) else str(value).encode() for value in values),
            )


def objects_of(repositories: Path) -> Iterator[Place]:
    """Every Git object of every repository below a folder, inflated; also those that nothing refers to."""
    for head in sorted(repositories.rglob("HEAD")):
        folder = head.parent
        done = subprocess.run(
            ["git", "--git-dir", folder, "cat-file", "--batch-all-objects", "--batch", "--unordered"],
            capture_output=True,
            check=True,
            timeout=60,
        )
        yield f"{folder.relative_to(repositories)}, objects", done.stdout


async def histories_of(address: str, namespace: str = "default") -> AsyncIterator[Place]:
    """Every event of every run of every workflow, and what lists and descriptions show; payloads are decoded."""
    client = await Client.connect(address, namespace=namespace)
    async for listed in client.list_workflows():
        handle = client.get_workflow_handle(listed.id, run_id=listed.run_id)
        try:
            history = await handle.fetch_history()
            described = (await handle.describe()).raw_description
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            continue  # a round of the sweep that has ended is deleted
        messages: list[Message] = [listed.raw_info, described, *history.events]
        yield f"workflow {listed.id}", b"\0".join(part for message in messages for part in _parts(message))
    async for schedule in await client.list_schedules():
        described_schedule = (await client.get_schedule_handle(schedule.id).describe()).raw_description
        yield f"schedule {schedule.id}", b"\0".join(_parts(described_schedule))


def histories_at(address: str) -> list[Place]:
    """``histories_of``, for whoever has no event loop."""

    async def collected() -> list[Place]:
        return [place async for place in histories_of(address)]

    return asyncio.run(collected())


def _parts(message: Message) -> Iterator[bytes]:
    yield message.SerializeToString()
    for payload in _payloads(message):
        yield payload.data
        yield from (bytes(value) for value in payload.metadata.values())
        yield from _texts_of(payload.data)


def _payloads(message: Message) -> Iterator[Payload]:
    if isinstance(message, Payload):
        yield message
        return
    for field, value in message.ListFields():
        if field.type != field.TYPE_MESSAGE:
            continue
        children = value if field.is_repeated else [value]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            children = [each for each in value.values() if isinstance(each, Message)]
        for child in children:
            yield from _payloads(child)


def _texts_of(content: bytes) -> Iterator[bytes]:
    """The texts in a JSON document, as they were before they were written as JSON."""
    try:
        waiting: list[Any] = [json.loads(content)]
    except ValueError:
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            yield value.encode(errors="surrogatepass")


def _inner_base64(value: bytes, offset: int, encode: Any) -> bytes:
    """What all texts in base64 share in which the value begins ``offset`` bytes after a multiple of 3."""
    first = (offset * 8 + 5) // 6
    behind = (offset + len(value)) * 8 // 6
    shared: bytes = encode(b"\0" * offset + value)[first:behind]
    return shared


def _both_cases(*texts: str) -> list[bytes]:
    """The digits behind percent signs may be capitals or not."""
    return list(dict.fromkeys(_cased(text, case).encode() for text in texts for case in (str.upper, str.lower)))


def _cased(text: str, case: Callable[[str], str]) -> str:
    head, *rest = text.split("%")
    return head + "".join(f"%{case(part[:2])}{part[2:]}" for part in rest)


def _as_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
