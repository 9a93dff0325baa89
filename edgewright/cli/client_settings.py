"""How a command finds its gateway: which one, with which token, and whom to trust."""

import ssl
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from platformdirs import user_config_path, user_data_path
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from edgewright.cli.contexts import LOCAL, Context, ContextsFile
from edgewright.cli.endpoints import read_endpoints
from edgewright.cli.failures import CliError, ExitCode, of_settings
from edgewright.cli.invocation import starter, typed
from edgewright.domain.hosts import is_host, is_loopback

CHOSEN_CONTEXT: ContextVar[str | None] = ContextVar("chosen_context", default=None)
"""What `--context` says; None: it was not given."""


class ClientSettings(BaseSettings):
    """What a command needs to know to reach a gateway; nothing of how a gateway is run."""

    model_config = SettingsConfigDict(env_prefix="EDGEWRIGHT_", frozen=True, extra="ignore", env_ignore_empty=True)

    home: Path = Field(default_factory=lambda: user_data_path("edgewright"))
    """Where the local gateway and its token are found."""
    config: Path = Field(default_factory=lambda: user_config_path("edgewright"))
    """Folder in which `edgewright login` keeps contexts."""
    context: str | None = None
    """Name of the context to use, or `local`."""
    url: str | None = None
    """Base URL of a gateway elsewhere."""
    token: SecretStr | None = None
    """The operator token itself."""
    token_file: Path | None = None
    """File that holds the operator token; default: the local `admin-token`."""
    ca_bundle: Path | None = None
    """PEM file that verifies the gateway's certificate; default: the machine's authorities."""
    allow_plain_http: bool = False
    """Accepts sending the token over plain http to another machine; refused unless set to 1."""


class Origin(Enum):
    """What a gateway was named by, the strongest first."""

    FLAG = "--context"
    VARIABLE = "EDGEWRIGHT_CONTEXT"
    ENVIRONMENT = "EDGEWRIGHT_URL"
    CURRENT = "current context"
    LOCAL = "this machine"


@dataclass(frozen=True)
class Destination:
    """The gateway that a command talks to.

    Args:
        origin: what it was named by.
        url: its base URL, no trailing slash.
        token: None: none is sent.
        context: the name of the context, if it is one.
        token_source: the variable, file or context that the token is from.
    """

    origin: Origin
    url: str
    token: str | None = field(repr=False)
    context: str | None = None
    token_source: str = ""
    ca_bundle: Path | None = None
    ca_certificates: str | None = None


def client_settings() -> ClientSettings:
    """The settings of this environment.

    Raises:
        CliError: one cannot be used.
    """
    try:
        settings = ClientSettings()
    except ValidationError as error:
        raise of_settings(error) from None
    if settings.token and settings.token_file:
        raise CliError(
            "EDGEWRIGHT_TOKEN and EDGEWRIGHT_TOKEN_FILE are both set; only one can hold the token.",
            "Unset one of them.",
            ExitCode.USAGE,
        )
    return settings


def find_destination() -> Destination:
    """The gateway that the command line, the environment, the current context or this machine names, in this order.

    Raises:
        CliError: none is named and none runs here, or there is no token.
    """
    settings = client_settings()
    contexts = ContextsFile(settings.config)
    for origin, name in ((Origin.FLAG, CHOSEN_CONTEXT.get()), (Origin.VARIABLE, settings.context)):
        if name == LOCAL:
            return _local(settings, with_variables=False)
        if name is not None:
            return _of_context(origin, name, contexts.read().named(name), settings)
    if settings.url:
        url = checked_url(settings.url, "EDGEWRIGHT_URL", allow_plain_http=settings.allow_plain_http)
        token, source = _token_of(settings)
        return Destination(Origin.ENVIRONMENT, url, token, token_source=source, ca_bundle=settings.ca_bundle)
    if settings.token or settings.token_file:
        # A token without a URL never goes to whichever centre happens to be current.
        return _local(settings, with_variables=True)
    kept = contexts.read()
    if kept.current is not None:
        return _of_context(Origin.CURRENT, kept.current, kept.named(kept.current), settings)
    return _local(settings, with_variables=False)


def exposed_contexts() -> Path | None:
    """The file of the contexts if other users of this machine may be able to read the tokens in it."""
    file = ContextsFile(client_settings().config)
    return file.path if file.is_exposed else None


def _of_context(origin: Origin, name: str, context: Context, settings: ClientSettings) -> Destination:
    if context.token is None:
        raise CliError(
            f"You are logged out of {name}.",
            f"Log in with `{typed(f'login --context {name}')}`.",
            ExitCode.NOT_ALLOWED,
            code="logged_out",
        )
    allowed = context.plain_http or settings.allow_plain_http
    url = checked_url(context.url, f"The URL of the context {name}", allow_plain_http=allowed)
    token = checked_token(
        context.token, f"The context {name}", f"Log in again: `{typed(f'login --context {name}')}`."
    )
    return Destination(
        origin,
        url,
        token,
        context=name,
        token_source=f"context {name}",
        ca_bundle=None if context.ca_certificates else settings.ca_bundle,
        ca_certificates=context.ca_certificates,
    )


def _local(settings: ClientSettings, *, with_variables: bool) -> Destination:
    endpoints = read_endpoints(settings.home)
    if endpoints is None:
        raise CliError(
            f"The gateway is not running on this machine (home: {settings.home}).",
            f"Start it with `{starter()}`, or log in to another one with `{typed('login URL')}`.",
            ExitCode.UNAVAILABLE,
            code="gateway_not_running",
        )
    token, source = _token_of(settings) if with_variables else (None, "")
    if token is None:
        file = settings.home / "admin-token"
        token, source = read_token(file), str(file)
    return Destination(
        Origin.LOCAL,
        endpoints.gateway,
        token,
        token_source=source,
        ca_bundle=endpoints.authorities or settings.ca_bundle,
    )


def _token_of(settings: ClientSettings) -> tuple[str | None, str]:
    """The token that the environment gives, and the variable that does."""
    if settings.token:
        hint = "It holds the token as it was shown when it was made."
        return checked_token(settings.token.get_secret_value(), "EDGEWRIGHT_TOKEN", hint), "EDGEWRIGHT_TOKEN"
    if settings.token_file:
        return read_token(settings.token_file), "EDGEWRIGHT_TOKEN_FILE"
    return None, ""


def read_token(path: Path) -> str:
    """The token in a file.

    Raises:
        CliError: it cannot be read, or holds no token; the text never shows what it holds.
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise CliError(
            f"The token file {path} cannot be read ({error.strerror}).",
            "EDGEWRIGHT_TOKEN_FILE names the file; it must be readable by this user.",
            ExitCode.NOT_ALLOWED,
        ) from error
    except UnicodeDecodeError:
        text = ""
    return checked_token(text, f"The file {path}", "It holds one line: the token as it was shown when it was made.")


def checked_token(text: str, source: str, hint: str) -> str:
    """A token without white space around it.

    Raises:
        CliError: it cannot be one; the text never shows it.
    """
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CliError(f"{source} does not hold a token.", hint, ExitCode.NOT_ALLOWED)
    return token


def checked_url(url: str, source: str, *, allow_plain_http: bool) -> str:
    """The base URL without a trailing slash.

    Args:
        source: what holds it, for messages.

    Raises:
        CliError: it is none, or would carry the token in clear to another machine.
    """
    parts = _base(url)
    if parts is None:
        raise CliError(
            f"{source} is not an http(s) URL.",
            "It looks like https://edge.example.com, without user name, password and query.",
            ExitCode.USAGE,
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname or "") and not allow_plain_http:
        raise CliError(
            f"{source} is plain http to another machine; the token would travel in clear.",
            "Use https, or set EDGEWRIGHT_ALLOW_PLAIN_HTTP=1 to accept that.",
            ExitCode.USAGE,
        )
    return url.rstrip("/")


def _base(url: str) -> SplitResult | None:
    """The parts of a URL that others can be built upon; None if it is not one."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:  # brackets that do not match, a port that is none
        return None
    typable = url.isascii() and url.isprintable() and " " not in url
    bare = parts.username is None and not parts.query and not parts.fragment
    return parts if typable and bare and parts.scheme in {"http", "https"} and is_host(host) else None


def read_authorities(path: Path, source: str) -> str:
    """The text of a PEM file of certificates.

    Raises:
        CliError: it is not readable, or none.
    """
    try:
        # Comments may hold any letter; what counts is ASCII.
        text = path.read_bytes().decode("ascii", "ignore")
        ssl.create_default_context().load_verify_locations(cadata=text)
    except (OSError, ValueError) as error:
        raise CliError(
            f"{source}: {path} is not a readable PEM file of certificates.",
            "Name a file of the form -----BEGIN CERTIFICATE----- …",
            ExitCode.USAGE,
        ) from error
    return text


def trust(ca_bundle: Path | None, ca_certificates: str | None = None) -> ssl.SSLContext:
    """How a gateway's certificate is verified: the machine's authorities, and those of PEM that is given.

    Raises:
        CliError: one cannot be read.
    """
    context = ssl.create_default_context()
    if ca_bundle:
        ca_certificates = read_authorities(ca_bundle, "EDGEWRIGHT_CA_BUNDLE")
    if ca_certificates:
        try:
            context.load_verify_locations(cadata=ca_certificates)
        except (ssl.SSLError, ValueError) as error:
            raise CliError(
                "The authorities that the context keeps are damaged.",
                f"Give them again: `{typed('login --ca-bundle FILE')}`.",
            ) from error
    return context
