"""`edgewright login`, `logout` and `context`: the centres that this user works with."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import httpx
import typer

from edgewright.cli.client import connected
from edgewright.cli.client_settings import (
    CHOSEN_CONTEXT,
    ClientSettings,
    Destination,
    Origin,
    checked_token,
    checked_url,
    client_settings,
    find_destination,
    read_authorities,
)
from edgewright.cli.commands import completion
from edgewright.cli.commands.asking import ask_hidden
from edgewright.cli.commands.options import AsJson, example
from edgewright.cli.commands.screen import result, say, show_facts, show_json, show_table, yes_no
from edgewright.cli.connecting import not_a_gateway
from edgewright.cli.contexts import LOCAL, Context, ContextsFile, checked_name, name_for
from edgewright.cli.endpoints import read_endpoints
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.credentials import parse_operator_token
from edgewright.errors import Unauthenticated

app = typer.Typer(no_args_is_help=True)

LOGIN_EXAMPLE = example("login https://edge.example.com --context munich")
LOGOUT_EXAMPLE = example("logout --context munich")
GIT_EXAMPLE = example("git-credential get")
_LONGEST_TOKEN = 1024
_LONGEST_QUESTION = 65_536

_Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the context.", autocompletion=completion.contexts)
]


def login(
    *,
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="Base URL of the gateway.", show_default="that of the context"),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="NAME",
            help="Name to keep it under.",
            show_default="the host",
            autocompletion=completion.contexts,
        ),
    ] = None,
    ca_bundle: Annotated[
        Path | None,
        typer.Option(
            "--ca-bundle",
            metavar="FILE",
            help="PEM file of the authority that signed the gateway's certificate.",
            show_default=False,
        ),
    ] = None,
    with_token: Annotated[
        bool, typer.Option("--with-token", help="Read the token from standard input instead of asking.")
    ] = False,
) -> None:
    """Log in to a centre, and use it from now on."""
    settings = client_settings()
    file = ContextsFile(settings.config)
    entrance = _entrance(settings, file, url, context or CHOSEN_CONTEXT.get(), ca_bundle)
    _require_gateway(entrance.destination())
    token = _token(with_token=with_token)
    _require_valid(entrance.destination(token))
    with file.changing() as contexts:
        contexts.contexts[entrance.name] = Context(
            url=entrance.url,
            token=token,
            ca_certificates=entrance.ca_certificates,
            plain_http=entrance.plain_http,
        )
        contexts.current = entrance.name
    result(f"Logged in to {entrance.url} as context {entrance.name}.")
    stronger = Origin.VARIABLE.value if settings.context else Origin.ENVIRONMENT.value if settings.url else None
    if stronger:
        say(f"{stronger} is set and takes precedence; unset it to use this context.")


def logout(
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="NAME",
            help="Name of the context.",
            show_default="the current one",
            autocompletion=completion.contexts,
        ),
    ] = None,
) -> None:
    """Forget the token of a centre; its URL stays for the next login."""
    settings = client_settings()
    with ContextsFile(settings.config).changing() as contexts:
        name = context or CHOSEN_CONTEXT.get() or settings.context or contexts.current
        if name is None or name == LOCAL:
            raise CliError(
                "You are not logged in to a centre.", f"`{typed('context list')}` shows yours.", ExitCode.REFUSED
            )
        kept = contexts.named(name)
        contexts.contexts[name] = kept.model_copy(update={"token": None})
    result(f"Logged out of {name}.")
    if kept.token:
        say(f"The token is still valid; `{typed('token revoke NAME')}` ends it for everybody who has it.")


@app.command("list", epilog=example("context list"))
def list_contexts(as_json: AsJson = False) -> None:
    """List your contexts, and which one is current."""
    settings = client_settings()
    kept = ContextsFile(settings.config).read()
    local = read_endpoints(settings.home)
    if as_json:
        items = [
            {"name": name, "url": each.url, "logged_in": each.token is not None, "current": name == kept.current}
            for name, each in sorted(kept.contexts.items())
        ]
        show_json({"current": kept.current or LOCAL, "items": items})
        return
    rows = [
        (name, each.url, yes_no(each.token), yes_no(name == kept.current))
        for name, each in sorted(kept.contexts.items())
    ]
    here = local.gateway if local else "not running"
    has_token = (settings.home / "admin-token").exists()
    rows.insert(0, (LOCAL, here, yes_no(has_token), yes_no(kept.current is None)))
    show_table(("name", "url", "token", "current"), rows)


@app.command("use", epilog=example("context use munich"))
def use(name: _Name) -> None:
    """Make a context the current one; `local` is the gateway on this machine."""
    settings = client_settings()
    with ContextsFile(settings.config).changing() as contexts:
        url = "the gateway on this machine" if name == LOCAL else contexts.named(name).url
        contexts.current = None if name == LOCAL else name
    result(f"Commands go to {url} from now on.")
    if settings.context or settings.url:
        stronger = Origin.VARIABLE.value if settings.context else Origin.ENVIRONMENT.value
        say(f"{stronger} is set and takes precedence; unset it to use this context.")


@app.command("show", epilog=example("context show"))
def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of the context.",
            show_default="what a command would use",
            autocompletion=completion.contexts,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show where a command goes, and what named it; never the token."""
    if name is not None:
        CHOSEN_CONTEXT.set(name)
    destination = find_destination()
    name = destination.context or (LOCAL if destination.origin is Origin.LOCAL else None)
    token_id = _token_id(destination.token)
    document = {
        "context": name,
        "url": destination.url,
        "chosen_by": destination.origin.value,
        "token_id": token_id,
        "token_from": destination.token_source or None,
        "own_authorities": bool(destination.ca_certificates or destination.ca_bundle),
    }
    if as_json:
        show_json(document, names=[name or destination.url])
        return
    show_facts(
        [
            ("context", name or "none"),
            ("url", destination.url),
            ("chosen by", destination.origin.value),
            ("token", f"{token_id or 'none'}{f', from {destination.token_source}' if destination.token else ''}"),
            ("own authorities", yes_no(document["own_authorities"])),
        ]
    )


@app.command("remove", epilog=example("context remove munich"))
def remove(name: _Name) -> None:
    """Forget a context, its token included."""
    with ContextsFile(client_settings().config).changing() as contexts:
        contexts.named(name)
        del contexts.contexts[name]
        was_current = contexts.current == name
        if was_current:
            contexts.current = None
    result(f"The context {name} is removed.")
    if was_current:
        say("Commands go to the gateway on this machine from now on.")


@dataclass(frozen=True)
class _Entrance:
    """What somebody logs in to."""

    name: str
    url: str
    ca_certificates: str | None
    plain_http: bool

    def destination(self, token: str | None = None) -> Destination:
        return Destination(Origin.FLAG, self.url, token, ca_certificates=self.ca_certificates)


def _entrance(
    settings: ClientSettings, file: ContextsFile, url: str | None, name: str | None, ca_bundle: Path | None
) -> _Entrance:
    kept = file.read()
    if url is None:
        name = name or kept.current
        if name is None:
            raise CliError(
                "Which centre? Name the URL of its gateway.",
                f"For example `{typed('login https://edge.example.com')}`.",
                ExitCode.USAGE,
            )
        url = kept.named(checked_name(name)).url
    else:
        url = url.rstrip("/")
        known = kept.with_url(url) if name is None else None
        name = checked_name(name) if name is not None else known
    before = kept.contexts.get(name) if name is not None else None
    before = before if before is not None and before.url == url else None
    plain_http = settings.allow_plain_http or (before is not None and before.plain_http)
    url = checked_url(url, "The URL", allow_plain_http=plain_http)
    authorities = before.ca_certificates if before else None
    if ca_bundle:
        authorities = read_authorities(ca_bundle, "--ca-bundle")
    elif settings.ca_bundle and authorities is None:
        authorities = read_authorities(settings.ca_bundle, "EDGEWRIGHT_CA_BUNDLE")
    return _Entrance(name or name_for(urlsplit(url).netloc), url, authorities, plain_http)


def _require_gateway(destination: Destination) -> None:
    """Raises ``CliError`` unless a gateway answers there: nobody else is to be shown a token."""
    with connected(destination) as gateway:
        answer = gateway.request("GET", "/ping", accept=frozenset({httpx.codes.NOT_FOUND}))
    try:
        known = answer.json()["software"]["application"] == "edgewright"
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise not_a_gateway(destination, answer)


def _token(*, with_token: bool) -> str:
    hint = f"Make one with `{typed('token create')}`, or ask the administrator of the centre for one."
    if with_token:
        if sys.stdin.isatty():
            say("Paste the token, then press Ctrl-D on a line of its own.")
        try:
            text = sys.stdin.read(_LONGEST_TOKEN + 1)
        except UnicodeDecodeError:
            text = ""
        return checked_token(text if len(text) <= _LONGEST_TOKEN else "", "Standard input", hint)
    text = ask_hidden("Token: ", otherwise=f"Pipe the token: `{typed('login URL --with-token')} < FILE`.")
    return checked_token(text, "What you typed", hint)


def _require_valid(destination: Destination) -> None:
    """Raises ``CliError`` unless the gateway knows the token; it need not be allowed to read."""
    with connected(destination) as gateway:
        answer = gateway.request(
            "GET",
            "/v1/cluster",
            params={"limit": 1},
            accept=frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}),
        )
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise CliError(
            f"{destination.url} does not accept this token; it is wrong, expired or revoked.",
            "Nothing was kept. Use the token as it was shown when it was made.",
            ExitCode.NOT_ALLOWED,
            code=Unauthenticated.code,
        )


def _token_id(token: str | None) -> str | None:
    try:
        return parse_operator_token(token or "").id
    except Unauthenticated:
        return None


def git_credential(
    operation: Annotated[str, typer.Argument(metavar="get|store|erase", help="What git asks for.")],
) -> None:
    """Answer git's question for a password of the gateway: set it as git's credential.helper."""
    # The protocol: https://git-scm.com/docs/git-credential#IOFMT
    asked = dict(line.partition("=")[::2] for line in sys.stdin.read(_LONGEST_QUESTION).splitlines())
    if operation != "get":
        return  # there is nothing to keep or to forget: the token is the command line's
    destination = find_destination()
    url = urlsplit(destination.url)
    if (asked.get("protocol"), asked.get("host")) == (url.scheme, url.netloc) and destination.token:
        result("username=edgewright")
        result(f"password={destination.token}")
