"""What sharing makes of the settings. What somebody has set explicitly wins; what contradicts itself is refused."""

import socket
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from edgewright.cli.endpoints import Endpoints
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.cli.share.choice import Sharing, ask_for_address, checked_address, read_sharing
from edgewright.domain.hosts import is_loopback
from edgewright.settings import Settings

_ALL_IPV4, _ALL_IPV6 = "0.0.0.0", "::"  # noqa: S104 - what sharing is for


def chosen_sharing(settings: Settings, *, share: bool | None, address: str | None) -> Sharing:
    """What the arguments of `up` and the last choice come to. Nothing is remembered yet.

    Args:
        share: True: other machines shall reach this centre; False: they shall not; None: as last time.
        address: where; None: as last time, else where the settings say, else asked for.

    Raises:
        CliError: an argument cannot be used or contradicts a setting; or there is nobody to ask.
    """
    if address is not None and not share:
        raise CliError(
            "An address goes with --share.", f"For example: {typed('up --share 10.0.0.5')}.", ExitCode.USAGE
        )
    named = checked_address(address) if address is not None else None
    before = read_sharing(settings.home)
    if share is None:
        return before
    if not share:
        return before.moved_to(None)
    _refuse_contradictions(settings, named)
    said = urlsplit(settings.external_url or "").hostname
    return before.moved_to(named or before.address or (checked_address(said) if said else ask_for_address()))


def _refuse_contradictions(settings: Settings, address: str | None) -> None:
    """Between --share and the environment."""
    url = urlsplit(settings.external_url or "")
    if url.hostname and address and url.hostname != address:
        raise CliError(
            f"--share says {address}, and EDGEWRIGHT_EXTERNAL_URL says {url.hostname}.",
            "Use the same address in both, or unset EDGEWRIGHT_EXTERNAL_URL.",
            ExitCode.USAGE,
        )
    if not url.hostname and "bind" in settings.model_fields_set and is_loopback(settings.bind):
        raise CliError(
            f"EDGEWRIGHT_BIND={settings.bind} keeps other machines out, and --share lets them in.",
            "Unset EDGEWRIGHT_BIND. If a proxy stands before this centre, set EDGEWRIGHT_EXTERNAL_URL to its URL.",
            ExitCode.USAGE,
        )


def with_shared_bind(settings: Settings, sharing: Sharing) -> Settings:
    """The settings with the address to listen on: all of this machine's, unless EDGEWRIGHT_BIND names one."""
    if sharing.address is None or "bind" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"bind": _ALL_IPV6 if _is_ipv6_only(sharing.address) else _ALL_IPV4})


def with_shared_door(settings: Settings, sharing: Sharing) -> Settings:
    """The settings with URL, certificate and authority; makes the certificates that are missing or end soon.

    Args:
        settings: with every port decided.

    Raises:
        CliError: they contradict each other, or the authority is damaged.
    """
    if sharing.address is None:
        return settings
    url = settings.external_url or f"https://{_in_url(sharing.address)}:{settings.gateway_port}"
    update: dict[str, object] = {"external_url": url}
    if settings.tls_cert is None:
        if urlsplit(url).scheme != "https":
            raise CliError(
                "A shared centre serves https, and EDGEWRIGHT_EXTERNAL_URL begins with http://.",
                f"Unset EDGEWRIGHT_EXTERNAL_URL, or run `{typed('up --no-share')}` to serve plain http.",
                ExitCode.USAGE,
            )
        authority, server = renewed(settings, sharing)
        update |= {"tls_cert": server, "tls_key": server, "ca_bundle": settings.ca_bundle or authority}
        _refuse_other_bundle(settings.ca_bundle, authority)
    return settings.model_copy(update=update)


def renewed(settings: Settings, sharing: Sharing) -> tuple[Path, Path]:
    """The files of the home's authority and of the gateway's certificate; the latter is new if it was due.

    Raises:
        CliError, OSError.
    """
    from edgewright.cli.share.authority import ensure_certificates  # noqa: PLC0415 - slow, and seldom wanted

    external = urlsplit(settings.external_url or "").hostname
    hosts = [*sharing.hosts, *([external] if external else [])]
    made = ensure_certificates(settings.home, hosts, datetime.now(UTC))
    return made.authority, made.server


def as_running(settings: Settings, endpoints: Endpoints | None) -> Settings:
    """The settings that a running `up` has decided on, for whoever looks at it from beside."""
    if endpoints is None or not endpoints.external_url:
        return settings
    return settings.model_copy(
        update={
            "bind": endpoints.bind,
            "external_url": endpoints.external_url,
            "ca_bundle": endpoints.authorities or settings.ca_bundle,
        }
    )


def _refuse_other_bundle(bundle: Path | None, authority: Path) -> None:
    """An edge that is given a bundle without our authority could not verify our certificate."""
    if bundle is None:
        return
    try:
        has_ours = _body(authority) in _body(bundle)
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(
            f"EDGEWRIGHT_CA_BUNDLE: {bundle} cannot be read.", "Correct the path, or unset it.", ExitCode.USAGE
        ) from error
    if not has_ours:
        raise CliError(
            f"EDGEWRIGHT_CA_BUNDLE: {bundle} lacks the authority that signs this centre's certificate.",
            f"Unset EDGEWRIGHT_CA_BUNDLE, add {authority} to that file, or set EDGEWRIGHT_TLS_CERT and "
            "EDGEWRIGHT_TLS_KEY to a certificate that it verifies.",
            ExitCode.USAGE,
        )


def _body(file: Path) -> str:
    """The text of a PEM file without white space."""
    return "".join(file.read_text("utf-8").split())


def _is_ipv6_only(address: str) -> bool:
    if ":" in address:
        return True
    try:
        families = {found[0] for found in socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)}
    except OSError:
        return False  # doctor says that the name does not resolve
    return families == {socket.AF_INET6}


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
