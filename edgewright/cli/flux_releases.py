"""Releases of Flux, fetched from where they are published, with the checksum that is published beside them."""

import re
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, Field, ValidationError

from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.hosts import is_loopback

RELEASES = "https://api.github.com/repos/fluxcd/flux2/releases"
"""The releases of Flux in GitHub's REST API: https://docs.github.com/en/rest/releases/releases."""
FILE = "install.yaml"
LARGEST_BYTES = 4 * 1024 * 1024
"""The gateway refuses more."""
VERSION = re.compile(r"v?(?P<number>\d{1,4}\.\d{1,4}\.\d{1,4}(?:-[0-9A-Za-z.]{1,32})?)")
_SECONDS = 60.0


@dataclass(frozen=True)
class FluxRelease:
    """A file of a release, which has the checksum that the release states."""

    version: str
    content: bytes
    sha256: str


class _Asset(BaseModel):
    name: str
    browser_download_url: str
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None


class _Release(BaseModel):
    tag_name: str
    assets: list[_Asset]


def version_of(text: str) -> str | None:
    """The tag that a version names, such as ``v2.7.0`` for ``2.7.0``; None if the text is no version."""
    match = VERSION.fullmatch(text)
    return f"v{match['number']}" if match else None


def fetch_release(version: str, releases: str = RELEASES) -> FluxRelease:
    """The file ``install.yaml`` of a release.

    The checksum is GitHub's own, computed when the file was uploaded, and comes from another host than the file does.

    Args:
        version: a tag.
        releases: URL of the releases, in GitHub's REST API or a mirror of it.

    Raises:
        CliError: there is no such release, it states no checksum, or it cannot be fetched from here.
    """
    url = _checked(releases)
    with httpx.Client(timeout=_SECONDS, follow_redirects=True, headers={"User-Agent": "edgewright"}) as http:
        try:
            answer = http.get(f"{url}/tags/{version}", headers={"Accept": "application/vnd.github+json"})
            if answer.status_code == httpx.codes.NOT_FOUND:
                raise CliError(f"Flux has no release {version}.", "Its releases: " + _PAGE, ExitCode.NOT_FOUND)
            release = _Release.model_validate_json(answer.raise_for_status().content)
            file = next((one for one in release.assets if one.name == FILE), None)
            if file is None or file.digest is None:
                raise CliError(
                    f"The release {version} of Flux states no checksum of {FILE}.",
                    f"Releases since June 2025 do. For an older one, give the file and its SHA-256: {_BY_HAND}",
                )
            content = _download(http, file.browser_download_url)
        except httpx.HTTPStatusError as error:
            raise _out_of_reach(f"{_host(url)} answered {error.response.status_code}") from None
        except httpx.HTTPError as error:
            raise _out_of_reach(f"{_host(url)} cannot be reached ({type(error).__name__})") from None
        except ValidationError:
            raise _out_of_reach(f"{_host(url)} did not answer as GitHub does") from None
    return FluxRelease(version, content, file.digest.removeprefix("sha256:"))


def _download(http: httpx.Client, url: str) -> bytes:
    parts = []
    with http.stream("GET", url) as answer:
        answer.raise_for_status()
        for part in answer.iter_bytes():
            parts.append(part)
            if sum(map(len, parts)) > LARGEST_BYTES:
                raise CliError(f"{FILE} of this release has more than {LARGEST_BYTES} bytes.")
    return b"".join(parts)


def _checked(releases: str) -> str:
    parts = urlsplit(releases)
    trusted = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not trusted or not parts.hostname:
        raise CliError("--releases is not an https URL.", f"The default is {RELEASES}.", ExitCode.USAGE)
    return releases.rstrip("/")


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _out_of_reach(why: str) -> CliError:
    return CliError(
        f"The release could not be fetched: {why}.",
        f"On a machine with internet access, download it, and give the file and its SHA-256: {_BY_HAND}",
        ExitCode.UNAVAILABLE,
    )


_PAGE = "https://github.com/fluxcd/flux2/releases"
_BY_HAND = "`edgewright flux import install.yaml --sha256 HEX`."
