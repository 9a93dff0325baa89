"""What a command needs to know to reach a gateway: its URL, a token, whom to trust."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.hosts import is_loopback


class ClientSettings(BaseSettings):
    """What a command needs to know to reach a gateway; nothing of how a gateway is run."""

    model_config = SettingsConfigDict(env_prefix="EDGEWRIGHT_", frozen=True, extra="ignore", env_ignore_empty=True)

    home: Path = Field(default_factory=lambda: user_data_path("edgewright"))
    """Where the local gateway and its token are found."""
    url: str | None = None
    """Base URL of a gateway elsewhere."""
    token_file: Path | None = None
    """File that holds the operator token; default: the local `admin-token`."""
    ca_bundle: Path | None = None
    """PEM file that verifies the gateway's certificate; default: the machine's authorities."""
    allow_plain_http: bool = False
    """Accepts sending the token over plain http to another machine; refused unless set to 1."""


def read_token(path: Path) -> str:
    """The token in a file.

    Raises:
        CliError: it cannot be read, or holds no token; the text never shows what it holds.
    """
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise CliError(
            f"The token file {path} cannot be read ({error.strerror}).",
            "EDGEWRIGHT_TOKEN_FILE names the file; it must be readable by this user.",
            ExitCode.NOT_ALLOWED,
        ) from error
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise CliError(
            f"The file {path} does not hold a token.",
            "It holds one line: the token as it was shown when it was made.",
            ExitCode.NOT_ALLOWED,
        )
    return token


def checked_url(url: str, *, allow_plain_http: bool) -> str:
    """The base URL without a trailing slash.

    Raises:
        CliError: it is none, or would carry the token in clear to another machine.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        raise CliError(
            "EDGEWRIGHT_URL is not an http(s) URL.",
            "It looks like https://edge.example.com, without user name and password.",
            ExitCode.USAGE,
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname) and not allow_plain_http:
        raise CliError(
            "EDGEWRIGHT_URL is plain http to another machine; the token would travel in clear.",
            "Use https, or set EDGEWRIGHT_ALLOW_PLAIN_HTTP=1 to accept that.",
            ExitCode.USAGE,
        )
    return url.rstrip("/")


def trust(ca_bundle: Path | None) -> ssl.SSLContext:
    """How a gateway's certificate is verified: the machine's authorities, and those of a PEM file if given."""
    context = ssl.create_default_context()
    if ca_bundle:
        try:
            context.load_verify_locations(cafile=str(ca_bundle))
        except OSError as error:
            raise CliError(
                f"EDGEWRIGHT_CA_BUNDLE: {ca_bundle} is not a readable PEM file of certificates.",
                "Name a file of the form -----BEGIN CERTIFICATE----- …",
                ExitCode.USAGE,
            ) from error
    return context
