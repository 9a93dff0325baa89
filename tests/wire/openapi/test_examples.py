"""Whoever reads /docs sees of every answer and of every body what it looks like; each example fits its schema."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012
from tour import DOCUMENT, OPERATIONS

HERE = "urn:edgewright:document"
REGISTRY: Registry[Any] = Registry().with_resource(HERE, DRAFT202012.create_resource(DOCUMENT))
MODELS: dict[str, Any] = DOCUMENT["components"]["schemas"]
SHOWN_PROBLEMS: dict[str, Any] = DOCUMENT["components"]["examples"]
SECRET = re.compile(r"\bew[rfa]?_[0-9A-Za-z]")


def misfits(schema: Any, example: object) -> list[str]:
    elsewhere = json.loads(json.dumps(schema).replace('"#/', f'"{HERE}#/'))
    return [error.message for error in Draft202012Validator(elsewhere, registry=REGISTRY).iter_errors(example)]


def described(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][path][method.lower()]
    return found


def contents(method: str, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every JSON that an operation takes or answers with, and where."""
    operation = described(method, path)
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        if "json" in kind:
            yield "body", content
    for status, answer in operation["responses"].items():
        for kind, content in answer.get("content", {}).items():
            if "json" in kind:
                yield status, content


def examples_of(content: dict[str, Any]) -> list[object]:
    if "example" in content:
        return [content["example"]]
    if "examples" in content:
        return [SHOWN_PROBLEMS[each["$ref"].rpartition("/")[2]]["value"] for each in content["examples"].values()]
    return list(MODELS.get(content["schema"].get("$ref", "").rpartition("/")[2], {}).get("examples", []))


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_json_of_an_operation_has_an_example_that_fits(method: str, path: str) -> None:
    for where, content in contents(method, path):
        shown = examples_of(content)
        assert shown, f"{where} has no example"
        for example in shown:
            assert misfits(content["schema"], example) == [], where


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_the_example_of_a_problem_has_the_status_that_it_stands_at(method: str, path: str) -> None:
    for status, content in contents(method, path):
        if status.isdigit() and int(status) >= 400:
            assert [example["status"] for example in examples_of(content) if isinstance(example, dict)] == [
                int(status)
            ]


def test_an_example_that_does_not_fit_would_be_found() -> None:
    assert misfits({"$ref": "#/components/schemas/Revoked"}, {"revoked": "two"})


def test_no_example_holds_a_secret_that_somebody_could_have() -> None:
    shown = [
        *SHOWN_PROBLEMS.values(),
        *(example for model in MODELS.values() for example in model.get("examples", ())),
    ]
    shown += [content["example"] for each in OPERATIONS for _, content in contents(*each) if "example" in content]
    text = re.sub(r"ew[fa]_0{64}", "", json.dumps(shown))
    assert SECRET.findall(text) == []


def test_operations_are_named_in_words_and_each_name_is_taken_once() -> None:
    names = [described(*operation)["operationId"] for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+)*(_v2)?", name)] == []


def test_every_tag_is_described_and_every_operation_has_one() -> None:
    told = {tag["name"]: tag["description"] for tag in DOCUMENT["tags"]}
    assert {tag for operation in OPERATIONS for tag in described(*operation)["tags"]} <= set(told)
    assert all(text.endswith(".") for text in told.values())


def test_whoever_may_repeat_a_write_is_told_of_the_idempotency_key() -> None:
    told = {
        described(*operation)["operationId"]
        for operation in OPERATIONS
        if any(each["name"] == "Idempotency-Key" for each in described(*operation).get("parameters", ()))
    }
    secrets = {"put_secret", "patch_secret", "delete_secret", "change_secrets"}
    assert told == {"create_cluster", "delete_cluster", "recreate_cluster", *secrets}
