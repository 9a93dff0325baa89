"""The files of a chart that decide which values fit it: read as Helm reads them, and within bounds."""

import json
from typing import Any

import pytest
from memory_git_server import MemoryGitServer

from edgewright.adapters.charts.coalescing import Chart
from edgewright.adapters.charts.files import LARGEST_FILE
from edgewright.adapters.charts.folders import Unusable
from edgewright.adapters.charts.trees import read_tree
from edgewright.adapters.json_schema import violation_of
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage

ANY = b"{}"
BY_TEST = CommitMessage(subject="Ours", actor="test")


def read(schema: bytes | None = ANY, values: bytes | None = None) -> Chart:
    git, repository = MemoryGitServer(), REPOSITORY_HELM_CHARTS
    git.create_repository(repository)
    files = {
        "broker/Chart.yaml": b"name: broker\n",
        "broker/values.schema.json": schema,
        "broker/values.yaml": values,
    }
    head = git.commit(repository, files, BY_TEST, expected_head=None)
    return read_tree(git, "broker", at=head).chart


def test_a_chart_without_a_schema_takes_anything() -> None:
    assert read(None, b"\xff").schema is None


def test_what_the_defaults_say_in_yaml_becomes_json() -> None:
    values = b"a: &a {b: [1, 2.5, yes]}\nc: *a\n1: 2026-01-31\ntext: ~\n"
    inner = {"b": [1, 2.5, True]}
    assert read(values=values).defaults == {"a": inner, "c": inner, "1": "2026-01-31", "text": None}


@pytest.mark.parametrize("values", [None, b"", b"# nothing\n", b"\xef\xbb\xbf{}"])
def test_a_chart_may_have_no_defaults(values: bytes | None) -> None:
    assert read(values=values).defaults == {}


@pytest.mark.parametrize("values", [b"a: [", b"[1]", b"\xff\xfe\x00", b"a: !!python/object:os.system {}", b"x"])
def test_defaults_that_are_no_yaml_object_cannot_be_used(values: bytes) -> None:
    with pytest.raises(Unusable, match=r"values\.yaml is not"):
        read(values=values)


LAUGHS = b"a0: &a0 [x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (b" " * (LARGEST_FILE + 1), None),
        (b'{"default": ' + b"[" * 100 + b"]" * 100 + b"}", None),
        (json.dumps({"enum": list(range(30_000))}).encode(), None),
        (ANY, b"a: " + b"[" * 100_000),
        (ANY, b"a: " + b"[" * 100 + b"]" * 100),
        (ANY, b"a: b\n" * (LARGEST_FILE // 5)),
        (ANY, LAUGHS),
        (ANY, b"a: &a [*a]\n"),
    ],
)
def test_what_is_too_much_is_not_read(schema: bytes, values: bytes | None) -> None:
    with pytest.raises(Unusable, match=r"nested too deep|too large|more than"):
        read(schema, values)


@pytest.mark.parametrize(
    ("named", "schema", "misfit"),
    [
        ("http://json-schema.org/draft-04/schema#", {"minimum": 1, "exclusiveMinimum": True}, 1),
        ("http://json-schema.org/draft-06/schema#", {"const": 1}, 2),
        ("http://json-schema.org/draft-07/schema#", {"items": [{"type": "string"}]}, [1]),
        ("http://json-schema.org/draft-07/schema", {"if": {"minimum": 1}, "then": {"maximum": 1}}, 2),
        ("https://json-schema.org/draft/2019-09/schema", {"items": [{"type": "string"}]}, [1]),
        ("https://json-schema.org/draft/2020-12/schema", {"prefixItems": [{"type": "string"}]}, [1]),
        (None, {"prefixItems": [{"type": "string"}]}, [1]),
    ],
)
def test_each_draft_is_read_as_it_means(named: str | None, schema: dict[str, Any], misfit: Any) -> None:
    whole = {**({"$schema": named} if named else {}), "properties": {"port": schema}}
    chart = read(json.dumps(whole).encode())
    assert violation_of(chart.schema, {"port": misfit}, draft=chart.draft) is not None


@pytest.mark.parametrize("named", ["http://json-schema.org/draft-03/schema#", "https://example.com/own", 7])
def test_a_draft_that_nobody_knows_cannot_be_used(named: object) -> None:
    with pytest.raises(Unusable, match="draft"):
        read(json.dumps({"$schema": named}).encode())
