"""Whether other machines reach this centre, and under which address: asked for once, then remembered in the home."""

import json
import re
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address
from pathlib import Path

import psutil

from edgewright.cli.endpoints import write_atomically
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.hosts import is_host, is_loopback

FILE = "share.json"
_MOST_FORMER = 8
_WITH_PORT = re.compile(r"[^:]*:\d+|\[.*\]:\d+")


@dataclass(frozen=True)
class Sharing:
    """Where other machines reach this centre.

    Args:
        address: an IP address or a host name, lower-case; None: only this machine reaches it.
        former: the addresses before, newest first. The certificate still covers them, so that edges which use one
            can ask where to go.
    """

    address: str | None = None
    former: tuple[str, ...] = ()

    def moved_to(self, address: str | None) -> "Sharing":
        """The same centre under another address, or under none."""
        before = [each for each in (self.address, *self.former) if each and each != address]
        return replace(self, address=address, former=tuple(before[:_MOST_FORMER]))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every address that edges may use."""
        return tuple(each for each in (self.address, *self.former) if each)


@dataclass(frozen=True)
class Outward:
    """One address of this machine that others may reach. ``where``: its network interface, or what else it is."""

    address: str
    where: str


def read_sharing(home: Path) -> Sharing:
    """What was chosen last.

    Raises:
        CliError: the file is damaged. To take that for "not shared" would cut off every edge.
    """
    file = home / FILE
    try:
        said = json.loads(file.read_text("utf-8"))
        address, former = said["address"], said["former"]
        return Sharing(checked_address(address) if address else None, tuple(map(checked_address, former)))
    except FileNotFoundError:
        return Sharing()
    except (ValueError, KeyError, TypeError, AttributeError, CliError) as error:
        raise CliError(
            f"{file} is damaged, so the address that edges use is not known.",
            f"Delete it, then run `{typed('up --share ADDRESS')}`.",
        ) from error


def write_sharing(home: Path, sharing: Sharing) -> None:
    """Remembers a choice for the next start."""
    write_atomically(home / FILE, json.dumps(asdict(sharing)) + "\n")


def checked_address(said: str) -> str:
    """An address or a name as it goes into URLs and certificates.

    Raises:
        CliError: it is neither, or no other machine could reach it.
    """
    host = said.strip().lower().removesuffix(".")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if "://" in host or _WITH_PORT.fullmatch(host):
        raise CliError(
            "--share takes an IP address or a host name, without https:// and port.",
            "EDGEWRIGHT_GATEWAY_PORT sets the port.",
            ExitCode.USAGE,
        )
    if not is_host(host) or "%" in host:
        raise CliError(
            f"{said!r} is neither an IP address nor a host name.",
            f"For example: {typed('up --share 10.0.0.5')}, or centre.example.com.",
            ExitCode.USAGE,
        )
    if is_loopback(host) or _names_no_machine(host):
        raise CliError(
            f"Other machines cannot reach {host}.",
            f"Name an address that they can{_for_example(outward_addresses())}.",
            ExitCode.USAGE,
        )
    return host


def outward_addresses() -> list[Outward]:
    """The addresses of this machine that others may reach, IPv4 first, and its host name."""
    found: list[Outward] = []
    up = {name for name, state in psutil.net_if_stats().items() if state.isup}
    for interface, addresses in psutil.net_if_addrs().items():
        found += [
            Outward(each.address, interface)
            for each in addresses
            if interface in up and _is_outward(each.family, each.address)
        ]
    found.sort(key=lambda each: ":" in each.address)
    name = socket.gethostname().lower()
    named = [Outward(name, "host name")] if is_host(name) and not is_loopback(name) else []
    return found + named


def ask_for_address() -> str:
    """The address that somebody picks at the terminal.

    Raises:
        CliError: there is no terminal, or no answer. Which of several addresses edges reach is never guessed.
    """
    offered = outward_addresses()
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CliError(
            "--share needs the address that edges reach, and there is no terminal to ask on.",
            f"Name it, as in {typed('up --share ADDRESS')}{_for_example(offered)}.",
            ExitCode.USAGE,
        )
    for line in _question(offered):
        sys.stderr.write(line)
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if not answer:
        raise CliError(
            "Nothing was started: no address was given.",
            f"Type one, or name it: {typed('up --share ADDRESS')}.",
            ExitCode.USAGE,
        )
    if answer.isdecimal() and 1 <= int(answer) <= len(offered):
        return checked_address(offered[int(answer) - 1].address)
    return checked_address(answer)


def _question(offered: Sequence[Outward]) -> Iterator[str]:
    yield "Under which address do edges reach this machine?\n"
    width = max((len(each.address) for each in offered), default=0)
    for number, each in enumerate(offered, start=1):
        yield f"  {number}  {each.address:<{width}}  {each.where}\n"
    yield "Number, or another address or host name: "


def _is_outward(family: int, address: str) -> bool:
    if family not in {socket.AF_INET, socket.AF_INET6} or "%" in address:
        return False
    return not (is_loopback(address) or _names_no_machine(address))


def _names_no_machine(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_unspecified or address.is_multicast or address.is_link_local


def _for_example(offered: Sequence[Outward]) -> str:
    return f"; this machine has {', '.join(each.address for each in offered)}" if offered else ""
