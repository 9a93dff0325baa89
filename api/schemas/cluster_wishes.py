"""Bodies of requests about clusters."""

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from api.schemas.base import ShortText, Wish
from edgewright.domain.check_in import MOST_WINDOWS, WINDOW
from edgewright.domain.cluster import AcceptancePolicy
from edgewright.domain.kubernetes_names import EDGEWRIGHT_NAMESPACE


class CheckInWish(Wish):
    """When the edge calls. ``windows``: such as ``22:00-06:00`` or ``Mon-Fri,Sun 22:00-06:00``; one that ends before
    it begins ends on the next day. ``time_zone``: a name from the IANA time zone database."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"windows": ["Mon-Fri 22:00-06:00"], "time_zone": "Europe/London"}]},
    )

    windows: list[Annotated[str, Field(pattern=WINDOW, max_length=60)]] = Field(min_length=1, max_length=MOST_WINDOWS)
    time_zone: str = Field(default="UTC", max_length=60)


class NewCluster(Wish):
    """A cluster to commission. ``chart``: UUID or name of a Helm chart template."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            "examples": [{"name": "press-shop", "labels": {"site": "sheffield"}, "accept": "manual"}],
        },
    )

    name: str
    namespace: str = EDGEWRIGHT_NAMESPACE
    chart: str | None = None
    bare: bool = False
    values: dict[str, JsonValue] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    accept: AcceptancePolicy = AcceptancePolicy.AUTO
    lease_seconds: int | None = Field(default=None, ge=10, le=30 * 86400)
    check_in: CheckInWish | None = None


class ClusterPatch(Wish):
    """JSON merge patch of a cluster: null resets a field to its default. The name cannot change."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"values": {"sealed-secrets": {"enabled": False}}, "labels": {"line": "4"}}]},
    )

    name: str | None = None
    namespace: str | None = None
    chart: str | None = None
    bare: bool | None = None
    values: dict[str, JsonValue] | None = None
    labels: dict[str, str | None] | None = None
    accept: AcceptancePolicy | None = None
    lease_seconds: int | None = None
    check_in: CheckInWish | None = None


class Recreation(Wish):
    """A merge patch of the configuration. ``new_hardware``: refuse everything from the old edge."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"examples": [{"new_hardware": True}]})

    new_hardware: bool = False
    name: str | None = None
    namespace: str | None = None
    chart: str | None = None
    bare: bool | None = None
    values: dict[str, JsonValue] | None = None


class ConfirmedCertificate(Wish):
    """``fingerprint``: of the proposed certificate, as `certificate_proposed` of the cluster shows it."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [{"fingerprint": "9f" * 32}]}
    )

    fingerprint: str = Field(pattern="^[0-9a-f]{64}$")


class Reason(Wish):
    """Why; shown in the timeline."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [{"reason": "line 4 is down"}]}
    )

    reason: ShortText = ""
