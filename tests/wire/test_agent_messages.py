"""What the agent says and reads is what the gateway's OpenAPI document describes."""

import json
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from edgewright.agent.messages import ReceivedHeartbeatAnswer, SentHeartbeat
from edgewright.agent.observation import Kustomized, Released
from edgewright.agent.opening import Opening, Stage, openings_to_json

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][name]
    return {**found, "components": DOCUMENT["components"]}


@pytest.mark.parametrize(
    "beat",
    [
        SentHeartbeat(datetime(2026, 1, 1, tzinfo=UTC), "nonce"),
        SentHeartbeat(datetime(2026, 1, 1, tzinfo=UTC), "nonce", "main@sha1:a", "digest", "ab" * 32, True),
    ],
)
def test_a_heartbeat_is_one_that_the_gateway_takes(beat: SentHeartbeat) -> None:
    jsonschema.validate(beat.to_json(), schema("HeartbeatWish"))
    assert beat.to_json().keys() <= schema("HeartbeatWish")["properties"].keys()


def test_the_status_is_described_with_all_that_the_centre_reads() -> None:
    described = schema("EdgeStatus")["properties"]
    lacks = {"missing", "unknown", "silent", "unopened", "unopened_count"}
    said = {"hosts", "namespaces", "kubeseal_cert", "observed_revision", "flux", "secrets", "versions", "omitted"}
    assert said | lacks | {"flux_is_ours", "anchor"} == described.keys()
    assert described["flux"]["properties"].keys() == {"sources", "kustomizations", "releases", "others"}
    status: dict[str, Any] = {
        "hosts": [{"hostname": "press-1"}],
        "observed_revision": "main@sha1:a",
        "flux": {
            "sources": [{"name": "self", "suspended": False, "conditions": [{"type": "Ready"}]}],
            "releases": [Released("edge-cluster", "edge-cluster", attempted="0.2.0").to_json()],
            "others": [Released("plc", own=False).to_json(), Kustomized("line", "self", own=False).to_json()],
        },
        "secrets": openings_to_json([Opening("default", "db", "a" * 8, Stage.REFUSED, "It is taken.")]),
        "versions": {"agent": "0.2.0", "agent-image": "registry.example.com/edgewright:1", "flux": "v2.7.3"},
        "flux_is_ours": True,
        "anchor": "0b0d8e0c-8f5c-4a43-9a8e-6c1d2f3a4b5c",
        "silent": ["source-controller"],
    }
    assert status["secrets"].keys() == described["secrets"]["properties"].keys()
    jsonschema.validate(status, schema("EdgeStatus"))
    objects = described["flux"]["properties"]["others"]["items"]["properties"]
    assert {"name", "kind", "chart", "attempted", "suspended", "conditions", "source"} <= objects.keys()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"observed_revision": 5}, schema("EdgeStatus"))


def test_each_field_of_the_answer_is_one_that_the_gateway_gives() -> None:
    read = {field.name for field in fields(ReceivedHeartbeatAnswer)}
    assert read == schema("HeartbeatAnswer")["properties"].keys()
