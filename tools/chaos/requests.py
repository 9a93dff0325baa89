"""Wishes as HTTP requests."""

import base64
from collections.abc import Mapping
from typing import Any

import httpx

from tools.chaos.edge_keys import EdgeKey
from tools.chaos.golden import CONFIGURATION, EDGE_STATUS, MOST_UPGRADES
from tools.chaos.journaling_client import SentRequest
from tools.chaos.wishes import SecretRequest, Step


def create(step: Step) -> SentRequest:
    """POST /v1/cluster."""
    fields = step.asked["fields"]
    body = {"name": step.asked["name"], **patch_of(fields)}
    return SentRequest("POST", "/v1/cluster", json=_without_none(body), headers={"Idempotency-Key": step.wish})


def read_entry(cluster: str) -> SentRequest:
    return SentRequest("GET", f"/v1/app/{CONFIGURATION}/object/{cluster}")


def etag(answer: httpx.Response) -> Mapping[str, Any]:
    return {"etag": answer.headers["ETag"]}


def values_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Values that hold a stamp where the chart takes anything."""
    return {"global": {"stamp": fields["stamp"]}}


def stamp_of(body: Mapping[str, Any]) -> str | None:
    """The stamp in the values of a configuration, or of a release; None: there is none."""
    stamp: str | None = body.get("values", {}).get("global", {}).get("stamp")
    return stamp


def write_entry(step: Step, cluster: str, *, etag: str | None = None) -> SentRequest:
    """PUT of the configuration entry: creates, changes or recreates; with ``etag``: of that revision alone."""
    fields = step.asked["fields"]
    body = {"name": step.asked["name"], "namespace": fields["namespace"], "values": values_of(fields)}
    if fields["chart"] is not None:
        body["chart"] = fields["chart"]
    headers = {"If-Match": etag} if etag else {}
    return SentRequest("PUT", f"/v1/app/{CONFIGURATION}/object/{cluster}", json=body, headers=headers)


def remove(cluster: str) -> SentRequest:
    return SentRequest("DELETE", f"/v1/app/{CONFIGURATION}/object/{cluster}")


def patch(step: Step, cluster: str) -> SentRequest:
    return SentRequest("PATCH", f"/v1/cluster/{cluster}", json=patch_of(step.asked["fields"]))


def recreate(step: Step, cluster: str) -> SentRequest:
    body = patch_of(step.asked["fields"]) | {"new_hardware": bool(step.asked.get("new_hardware"))}
    key = {"Idempotency-Key": step.wish}
    return SentRequest("POST", f"/v1/cluster/{cluster}/recreate", json=body, headers=key)


def delete(step: Step, cluster: str) -> SentRequest:
    params = {"force": "true"} if step.asked["force"] else {}
    if step.asked["deadline"]:
        params["deadline"] = step.asked["deadline"]
    key = {"Idempotency-Key": step.wish}
    return SentRequest("DELETE", f"/v1/cluster/{cluster}", params=params, headers=key)


def pause(step: Step, cluster: str) -> SentRequest:
    return SentRequest("POST", f"/v1/cluster/{cluster}/pause", json={"reason": step.wish})


def resume(cluster: str) -> SentRequest:
    return SentRequest("POST", f"/v1/cluster/{cluster}/resume")


def undelete(cluster: str) -> SentRequest:
    return SentRequest("POST", f"/v1/cluster/{cluster}/undelete")


def observe(cluster: str) -> SentRequest:
    return SentRequest("GET", f"/v1/cluster/{cluster}")


def observed(answer: httpx.Response) -> Mapping[str, Any]:
    """What the checker compares of a cluster that was read."""
    body = answer.json()
    return {
        "uuid": body["uuid"],
        "desired": body["desired"],
        "ready": body["ready"],
        "generation": body["generation"],
        "namespace": body["namespace"],
        "chart": body["chart"],
        "stamp": stamp_of(body),
        "label": body["labels"].get("stamp"),
    }


def status(cluster: str, key: EdgeKey) -> SentRequest:
    return SentRequest("PUT", f"/v1/app/{EDGE_STATUS}/object/{cluster}", json=status_body(key))


def status_body(key: EdgeKey) -> dict[str, Any]:
    """An edge status with a sealing certificate."""
    return {"hosts": [{"hostname": "press-1", "control_plane": True}], "kubeseal_cert": key.certificate}


def edge_status_body(key: EdgeKey, image: str) -> dict[str, Any]:
    """The same from an edge, whose agent runs from an image."""
    return status_body(key) | {"versions": {"agent": "0.1.0", "agent-image": image}}


def upgrade(cluster: str) -> SentRequest:
    body = {"component": "agent", "at_once": MOST_UPGRADES}
    return SentRequest("POST", f"/v1/cluster/{cluster}/upgrade", json=body)


def call_off(cluster: str) -> SentRequest:
    return SentRequest("DELETE", f"/v1/cluster/{cluster}/upgrade")


def change_secrets(wish: SecretRequest, cluster: str) -> SentRequest:
    """One key by PUT or DELETE, several by POST."""
    key = {"Idempotency-Key": wish.wish}
    if len(wish.changes) == 1:
        [(place, value)] = wish.changes
        path = f"/v1/cluster/{cluster}/secret/{place}"
        if value is None:
            return SentRequest("DELETE", path, headers=key)
        return SentRequest("PUT", path, content=value.encode(), headers=key)
    changes = [_change(place, value) for place, value in wish.changes]
    return SentRequest("POST", f"/v1/cluster/{cluster}/secret", json={"changes": changes}, headers=key)


def committed(answer: httpx.Response) -> Mapping[str, Any]:
    return {"commit": answer.headers.get("Edgewright-Commit")}


def patch_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as the REST routes take them."""
    body: dict[str, Any] = {name: fields[name] for name in ("namespace", "chart") if name in fields}
    if "stamp" in fields:
        body["values"] = values_of(fields)
    if "label" in fields:
        body["labels"] = {"stamp": fields["label"]}
    return body


def _change(place: str, value: str | None) -> dict[str, Any]:
    namespace, name, key = place.split("/")
    said = {"delete": True} if value is None else {"value_base64": base64.b64encode(value.encode()).decode()}
    return {"namespace": namespace, "name": name, "key": key, **said}


def _without_none(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}
