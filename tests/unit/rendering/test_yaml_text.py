"""Manifests as YAML text."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from edgewright.domain.rendering.manifests import checked_manifest, manifests_yaml
from edgewright.domain.templates import TemplateError

text = st.text(max_size=20) | st.text("0123456789abcdefxotz.-+_: \n\t#'\"|>", max_size=10)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)


def manifest(value: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"value": value}}


def spelled(value: Any) -> str:
    return manifests_yaml([manifest(value)]).decode().split("  value: ", 1)[1].removesuffix("\n")


@given(values)
def test_what_is_written_is_read_back(value: Any) -> None:
    try:
        checked_manifest(manifest(value), where="x", pointer="")
    except TemplateError:
        return  # cannot be delivered, and is said so
    content = manifests_yaml([manifest(value), manifest(value)])
    assert list(yaml.safe_load_all(content)) == [manifest(value)] * 2
    assert b"\r" not in content


@pytest.mark.parametrize(
    "word",
    [
        "",
        "08",
        "1e5",
        "1e-3",
        "0o17",
        "0x1F",
        "0b1",
        "1_000",
        "1:30",
        "y",
        "N",
        "Yes",
        "off",
        "null",
        "~",
        "=",
        "<<",
        ".5",
        ".inf",
        ".NaN",
        "-1",
        "+1",
        "1.",
        "2.7.5",
        "12e03",
        "2001-12-14",
        "2001-12-14t21:59:43z",
    ],
)
def test_text_that_some_reader_takes_for_something_else_is_quoted(word: str) -> None:
    assert spelled(word) == f"'{word}'"


@pytest.mark.parametrize("word", ["press-shop", "3m", "1h30m", "./by-hand", "https://a.example/b", "v1", "main"])
def test_text_that_no_reader_mistakes_is_plain(word: str) -> None:
    assert spelled(word) == word


@pytest.mark.parametrize("odd", ["a\x85b", "a\u2028b", "a\r\nb", "\x85", "\ufeffa", " a\nb", "a \nb"])
def test_line_ends_that_only_some_readers_know_are_escaped(odd: str) -> None:
    spelling = spelled(odd)
    assert spelling.startswith('"')
    assert not set(spelling) & set("\x85\u2028\r\ufeff")


def test_text_of_several_lines_can_be_read_by_a_person() -> None:
    assert spelled("a\nb\n") == "|\n    a\n    b"


def test_an_object_that_is_there_twice_is_written_twice() -> None:
    shared = {"a": [1, 2]}
    content = manifests_yaml([manifest([shared, shared])])
    assert b"&" not in content
    assert b"*" not in content


def test_keys_come_as_kubernetes_people_expect_them() -> None:
    content = manifests_yaml(
        [{"spec": {"b": 1, "a": 2}, "metadata": {"labels": {}, "name": "x"}, "kind": "T", "apiVersion": "v1"}]
    )
    assert list(yaml.safe_load(content)) == ["apiVersion", "kind", "metadata", "spec"]
    assert list(yaml.safe_load(content)["metadata"]) == ["name", "labels"]
    assert list(yaml.safe_load(content)["spec"]) == ["a", "b"]
