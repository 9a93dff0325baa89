"""`edgewright api`: any request to the gateway, with its token and its errors."""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.options import example
from edgewright.cli.commands.screen import show_json
from edgewright.cli.failures import CliError, ExitCode

EXAMPLE = example("api POST /v1/cluster -f name=press-shop -F bare=true")
_STDIN = "-"
_LONGEST_PATH = 8192
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_KEY = re.compile(r"(?P<name>[^\[\]]+)(?P<below>(?:\[[^\[\]]*\])*)")
_MERGE_PATCH = "application/merge-patch+json"
_OURS = frozenset({"authorization", "proxy-authorization", "host", "content-length", "transfer-encoding"})
_LITERALS = {"true": True, "false": False, "null": None}
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)


class Method(StrEnum):
    """Methods that routes of a gateway have."""

    GET = "GET"
    HEAD = "HEAD"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"


def api(
    *,
    method: Annotated[
        Method,
        typer.Argument(
            metavar="METHOD",
            help="GET, HEAD, POST, PUT, PATCH or DELETE.",
            case_sensitive=False,
            show_choices=False,
            show_default=False,
        ),
    ],
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="Path at the gateway, such as /v1/cluster.", show_default=False)
    ],
    text: Annotated[
        list[str] | None,
        typer.Option(
            "-f", "--raw-field", metavar="KEY=VALUE", help="Add a string to the body; for GET, to the query."
        ),
    ] = None,
    typed_value: Annotated[
        list[str] | None,
        typer.Option(
            "-F",
            "--field",
            metavar="KEY=VALUE",
            help="Likewise, as true, false, null or a number if it looks like one; @FILE is read.",
        ),
    ] = None,
    body_file: Annotated[
        str | None,
        typer.Option("--input", metavar="FILE|-", help="Send a file as the body; - is stdin.", show_default=False),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("-H", "--header", metavar="NAME:VALUE", help="Add a header; may be given several times."),
    ] = None,
    include: Annotated[bool, typer.Option("-i", "--include", help="Show status and headers first.")] = False,
    paginate: Annotated[bool, typer.Option("--paginate", help="Follow `next` and show all items as one.")] = False,
) -> None:
    """Send a request to the gateway, and print the body of its answer."""
    _require_path(path)
    if paginate and (method is not Method.GET or include):
        raise CliError("--paginate goes with GET alone, without --include.", "Leave one of them out.", ExitCode.USAGE)
    fields = _fields(text or [], typed_value or [])
    headers = _headers(header or [])
    content = _input(body_file) if body_file is not None else None
    query = _query(fields) if content is not None or method in {Method.GET, Method.HEAD} else []
    if content is None and fields and not query:
        content = json.dumps(fields).encode()
    if content is not None and "content-type" not in headers:
        headers["content-type"] = _MERGE_PATCH if method is Method.PATCH else "application/json"
    url = httpx.URL(path)
    for name, value in query:
        url = url.copy_add_param(name, value)
    with connect() as gateway:
        if paginate:
            show_json(_all_pages(gateway, url, headers))
        else:
            _show(gateway, method, url, content, headers, include=include)


def _require_path(path: str) -> None:
    """Raises ``CliError`` for what could lead to another host: the token goes to this gateway alone."""
    if not path.startswith("/") or path.startswith("//") or "\\" in path or not path.isprintable():
        raise CliError(
            "That is not a path at the gateway.",
            "It begins with one slash, such as /v1/cluster; --context chooses another gateway.",
            ExitCode.USAGE,
        )
    if "#" in path or " " in path:
        raise CliError("The path holds a space or a #.", "Write them as %20 and %23.", ExitCode.USAGE)
    if len(path) > _LONGEST_PATH:
        raise CliError("The path is too long.", "Send long values in the body.", ExitCode.USAGE)


def _fields(texts: Sequence[str], typed_values: Sequence[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for option, values in (("-f", texts), ("-F", typed_values)):
        for each in values:
            key, equals, value = each.partition("=")
            match = _KEY.fullmatch(key)
            if not equals or match is None:
                raise CliError(
                    f"{option} takes KEY=VALUE; KEY may be name, name[key] or name[].",
                    "For example -f name=press-shop, or -f labels[site]=sheffield.",
                    ExitCode.USAGE,
                )
            steps = [match["name"], *re.findall(r"\[([^\[\]]*)\]", match["below"])]
            _put(fields, steps, _typed(value) if option == "-F" else value)
    return fields


def _put(fields: dict[str, Any], steps: list[str], value: Any) -> None:
    """Puts a value where a key such as ``name[key][]`` says."""
    place: Any = fields
    for step, after in pairwise(steps):
        below: Any = [] if after == "" else {}
        place = place.setdefault(step, below) if isinstance(place, dict) and step else None
        if type(place) is not type(below):
            break
    last = steps[-1]
    if isinstance(place, list) and last == "":
        place.append(value)
    elif isinstance(place, dict) and last and last not in place:
        place[last] = value
    else:
        raise CliError(
            f"The field {_quoted(steps)} is given twice, or as two different things.",
            "Give each key once; name[] adds to a list.",
            ExitCode.USAGE,
        )


def _quoted(steps: Sequence[str]) -> str:
    name = steps[0] + "".join(f"[{step}]" for step in steps[1:])
    return name if name.isprintable() else "with that name"


def _typed(value: str) -> Any:
    if value in _LITERALS:
        return _LITERALS[value]
    if _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    if not value.startswith("@"):
        return value
    try:
        return _input(value[1:]).decode()
    except UnicodeDecodeError:
        raise CliError(
            f"-F: {value[1:]} does not hold text in UTF-8.", "Send other bytes with --input.", ExitCode.USAGE
        ) from None


def _input(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == _STDIN else Path(file).read_bytes()
    except OSError as error:
        raise CliError(
            f"The file {file} cannot be read ({error.strerror}).",
            "Name a readable file, or - for stdin.",
            ExitCode.USAGE,
        ) from error


def _headers(texts: Sequence[str]) -> dict[str, str]:
    headers = {}
    for each in texts:
        name, colon, value = each.partition(":")
        if not colon or not _HEADER_NAME.fullmatch(name) or not value.isascii() or not value.isprintable():
            raise CliError("-H takes NAME:VALUE.", "For example -H 'If-Match: \"7\"'.", ExitCode.USAGE)
        if name.lower() in _OURS:
            raise CliError(
                f"The header {name} is set by the command itself.",
                "A context or EDGEWRIGHT_TOKEN_FILE chooses the token.",
                ExitCode.USAGE,
            )
        headers[name.lower()] = value.strip()
    return headers


def _query(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    query = []
    for key, value in fields.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict | list):
                raise CliError(
                    f"The field {key} is too deep for a query.", "Use key=value or key[]=value.", ExitCode.USAGE
                )
            query.append((key, each if isinstance(each, str) else json.dumps(each)))
    return query


def _all_pages(gateway: GatewayClient, url: httpx.URL, headers: Mapping[str, str]) -> dict[str, Any]:
    """The pages of a list as one document: the last page with the items of all."""
    items: list[Any] = []
    while True:
        page = gateway.decoded(gateway.request("GET", str(url), headers=headers))
        if not isinstance(page, dict) or not isinstance(page.get("items"), list):
            raise CliError("The answer is not a list with pages.", "Leave --paginate out.", ExitCode.USAGE)
        items += page["items"]
        after = page.get("next")
        if after is None:
            return {**page, "items": items}
        url = url.copy_set_param("after", str(after))


def _show(
    gateway: GatewayClient,
    method: Method,
    url: httpx.URL,
    content: bytes | None,
    headers: Mapping[str, str],
    *,
    include: bool,
) -> None:
    """Shows an answer as it arrives.

    Raises:
        CliError: it was an error; its body is shown before.
    """
    with gateway.opened(str(method), str(url), content=content, headers=headers) as answer:
        if include:
            _show_head(answer)
        if not answer.is_success:
            answer.read()
        if sys.stdout.isatty() and answer.headers.get("Content-Type", "").partition(";")[0].endswith("json"):
            answer.read()
            if answer.content:
                show_json(gateway.decoded(answer))
        else:
            _copy(answer.iter_bytes())
        if not answer.is_success:
            raise gateway.problem(answer)


def _show_head(answer: httpx.Response) -> None:
    lines = [f"{answer.http_version} {answer.status_code} {answer.reason_phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    shown = ("".join(letter if letter.isprintable() else "?" for letter in line) for line in lines)
    sys.stdout.write("\n".join([*shown, "", ""]))
    sys.stdout.flush()


def _copy(chunks: Iterator[bytes]) -> None:
    """Bytes as they come to a file or pipe; to a terminal, free of what could steer it."""
    for chunk in chunks:
        if sys.stdout.isatty():
            text = chunk.decode(errors="replace")
            sys.stdout.write("".join(each if each.isprintable() or each in "\n\t" else "?" for each in text))
            sys.stdout.flush()
        else:
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
