"""An *Edge cluster status* that the centre takes, however much there is to say: the least important goes first."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

MOST_BYTES = 60 * 1024
"""The centre takes 64 KiB."""
SHORT_MESSAGE = 100
"""Characters that are left of what Flux says."""

_DIGEST_LENGTH = 8
_HOST_FACTS = ("hostname", "control_plane", "ready")
_Shorten = Callable[[dict[str, Any]], dict[str, Any]]


def fitted(status: Mapping[str, Any], *, own_source: str) -> dict[str, Any]:
    """The same status if it is small enough; else without what matters least, which ``omitted`` counts.

    What Flux says at length goes first, then which templates secrets have, then details of hosts, then the names of
    namespaces, then which secrets are opened, then what Flux does well and whatever of it takes more than half, then
    hosts, control planes last. Which hosts stay depends on their names only: one that becomes ready drives no other
    out.

    Args:
        own_source: name of the Flux source that is the cluster's own driving repository; what concerns it goes
            last.
    """
    shorter: dict[str, Any] = dict(status)
    steps: tuple[_Shorten, ...] = (
        _with_short_messages,
        _without_templates,
        _without_host_details,
        _without_namespaces,
        _without_opened_secrets,
        partial(_with_most_of_flux, own_source=own_source),
        _with_first_hosts,
    )
    for shorten in steps:
        if _size(shorter) <= MOST_BYTES:
            break
        shorter = shorten(shorter)
    return shorter


def _with_short_messages(status: dict[str, Any]) -> dict[str, Any]:
    number = 0

    def shortened(condition: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal number
        number += len(condition["message"]) > SHORT_MESSAGE
        return {**condition, "message": condition["message"][:SHORT_MESSAGE]}

    flux = {
        kind: [{**each, "conditions": [shortened(said) for said in each["conditions"]]} for each in found]
        for kind, found in status.get("flux", {}).items()
    }
    return _omitting({**status, "flux": flux} if flux else status, flux_messages=number)


def _without_templates(status: dict[str, Any]) -> dict[str, Any]:
    """Those of the refused secrets that are named stay."""
    if "secrets" not in status:
        return status
    secrets = status["secrets"]
    left = {name: said for name, said in secrets.items() if name != "templates"}
    number = sum(len(secrets[stage]) // _DIGEST_LENGTH for stage in secrets["templates"])
    return _omitting({**status, "secrets": left}, secret_templates=number)


def _without_host_details(status: dict[str, Any]) -> dict[str, Any]:
    hosts = [{fact: host[fact] for fact in _HOST_FACTS} for host in status.get("hosts", ())]
    return _omitting({**status, "hosts": hosts}, host_details=len(hosts))


def _without_namespaces(status: dict[str, Any]) -> dict[str, Any]:
    """All or none: the centre would take those that it is not told of for missing."""
    left = {name: value for name, value in status.items() if name != "namespaces"}
    return _omitting(left, namespaces=len(status.get("namespaces", ())))


def _without_opened_secrets(status: dict[str, Any]) -> dict[str, Any]:
    """Counts and what is refused stay."""
    if "secrets" not in status:
        return status
    secrets = status["secrets"]
    without = {**secrets, "opened": "", "pending": "", "refused_too": ""}
    number = sum(secrets["counts"].values()) - len(secrets["refused"])
    return _omitting({**status, "secrets": without}, secrets=number)


def _with_most_of_flux(status: dict[str, Any], own_source: str) -> dict[str, Any]:
    left = MOST_BYTES // 2
    said: Mapping[str, Sequence[Mapping[str, Any]]] = status.get("flux", {})
    flux: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in said}
    for is_turn_of in (_is_own, _is_ill):
        for kind, found in said.items():
            matters = sorted((each for each in found if is_turn_of(kind, each, own_source)), key=_is_well)
            sizes = accumulate(_size(each) + 2 for each in matters)
            stays = [each for each, size in zip(matters, sizes, strict=True) if size <= left]
            left -= sum(_size(each) + 2 for each in stays)
            flux[kind] += stays
    number = sum(len(found) - len(flux[kind]) for kind, found in said.items())
    return _omitting({**status, "flux": flux} if flux else status, flux_objects=number)


def _with_first_hosts(status: dict[str, Any]) -> dict[str, Any]:
    hosts: Sequence[Mapping[str, Any]] = sorted(
        status.get("hosts", ()), key=lambda host: (not host["control_plane"], host["hostname"])
    )
    left = MOST_BYTES - _size(_omitting({**status, "hosts": []}, hosts=len(hosts), hosts_not_ready=len(hosts)))
    stays = 0
    for host in hosts:
        left -= _size(host) + 2
        if left < 0:
            break
        stays += 1
    goes = hosts[stays:]
    not_ready = sum(not host["ready"] for host in goes)
    return _omitting({**status, "hosts": list(hosts[:stays])}, hosts=len(goes), hosts_not_ready=not_ready)


def _is_own(kind: str, flux_object: Mapping[str, Any], source: str) -> bool:
    """Whether it is on the way of what the centre renders: all reported releases are."""
    return kind == "releases" or source in {flux_object["name"], flux_object.get("source")}


def _is_ill(kind: str, flux_object: Mapping[str, Any], source: str) -> bool:
    return not (_is_own(kind, flux_object, source) or _is_well(flux_object))


def _is_well(flux_object: Mapping[str, Any]) -> bool:
    return any(said["type"] == "Ready" and said["status"] == "True" for said in flux_object["conditions"])


def _omitting(status: dict[str, Any], **numbers: int) -> dict[str, Any]:
    told = {what: number for what, number in numbers.items() if number}
    return {**status, "omitted": {**status.get("omitted", {}), **told}} if told else status


def _size(value: object) -> int:
    """Bytes of its JSON; at most a few more than are sent."""
    return len(json.dumps(value))
