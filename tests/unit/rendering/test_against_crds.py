"""Rendered manifests against the schemas of Flux's CustomResourceDefinitions."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from edgewright.domain.rendering import render_repository

SCHEMAS = Path(__file__).parent / "schemas"


def strict(schema: Any) -> Any:
    """The schema with unknown members refused, as an API server does that is asked for strict validation."""
    if isinstance(schema, list):
        return [strict(element) for element in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    if "properties" in schema and schema.get("type") == "object":
        result["properties"] = {name: strict(value) for name, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            result.setdefault("additionalProperties", False)
    return result


def problems_of(manifest: dict[str, Any]) -> list[str]:
    name = f"{manifest['apiVersion'].replace('/', '_')}_{manifest['kind'].lower()}.json"
    schema = strict(json.loads((SCHEMAS / name).read_text()))
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(manifest)]


def manifests_of(files: Any) -> list[dict[str, Any]]:
    return [
        manifest
        for path, content in files.items()
        if path.endswith(".yaml")
        for manifest in yaml.safe_load_all(content)
    ]


@pytest.mark.parametrize("bare", [False, True])
def test_every_rendered_manifest_satisfies_its_crd(render_input: Any, bare: bool) -> None:
    manifests = manifests_of(render_repository(render_input(bare=bare)))
    assert {manifest["kind"] for manifest in manifests} == {"GitRepository", "Kustomization", "HelmRelease"}
    assert [problem for manifest in manifests for problem in problems_of(manifest)] == []


def test_values_of_any_kind_satisfy_the_crd_of_a_helm_release(render_input: Any) -> None:
    values = {"a": None, "b": [1, "x", {"c": True}], "d": {"e": {"f": 1.5}}}
    manifests = manifests_of(render_repository(render_input(values=values)))
    assert [problem for manifest in manifests for problem in problems_of(manifest)] == []


@pytest.mark.parametrize("kind", ["GitRepository", "Kustomization", "HelmRelease"])
def test_the_schemas_refuse_a_misspelt_member_and_a_wrong_duration(render_input: Any, kind: str) -> None:
    good = next(item for item in manifests_of(render_repository(render_input())) if item["kind"] == kind)
    for member, value in (("intervall", "3m"), ("interval", "three minutes"), ("interval", 3)):
        bad = copy.deepcopy(good)
        bad["spec"][member] = value
        assert problems_of(bad)
