"""A status is read whatever an edge sends: what does not fit is left out, and the rest counts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from edgewright.domain.cluster import MOST_NAMES
from edgewright.domain.edge_status import (
    MOST_REFUSED,
    MOST_REPORTED,
    EdgeStatus,
    MissingRight,
    SealingCounts,
    checked_schema,
    read_edge_status,
    status_schema,
)

WHOLE: dict[str, Any] = {
    "hosts": [{"hostname": "n1", "ready": True, "specialised": {"gpu": 1}}],
    "namespaces": ["default", "line-1"],
    "kubeseal_cert": "PEM",
    "observed_revision": "main@sha1:a",
    "flux": {
        "sources": [{"name": "self-link", "conditions": [{"type": "Ready", "status": "True"}]}],
        "kustomizations": [{"name": "self-link", "source": "self-link", "suspended": True}],
    },
    "secrets": {"counts": {"opened": 1, "pending": 0, "refused": 0}, "opened": "a" * 8},
    "missing": ["Secret flux-secrets"],
    "unknown": [{"what": "nodes", "right": "list on nodes"}],
    "silent": ["source-controller"],
    "unopened": [{"secret": "default/db", "key": "k", "sha256": "0" * 64}],
    "unopened_count": 1,
    "versions": {"flux": "v2"},
    "flux_is_ours": True,
    "anchor": "0b0d8e0c-8f5c-4a43-9a8e-6c1d2f3a4b5c",
    "omitted": {"hosts": 3},
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["", "True", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "status", "counts", "x"]), inner, max_size=3)
    ),
    max_leaves=10,
)


def test_each_member_that_fits_is_read() -> None:
    status = read_edge_status(WHOLE)
    assert {name for name in EdgeStatus.model_fields if getattr(status, name) != getattr(EdgeStatus(), name)} == set(
        EdgeStatus.model_fields
    )
    assert status.flux is not None and status.flux.kustomizations[0].suspended
    assert (status.hosts[0].hostname, status.versions, status.omitted) == ("n1", {"flux": "v2"}, {"hosts": 3})


@pytest.mark.parametrize("name", [*EdgeStatus.model_fields])
@pytest.mark.parametrize("wrong", [None, True, -1, 1.5, "text", ["text", 5, {}], {"a": [1]}])
def test_what_is_of_another_type_is_left_out_and_the_rest_counts(name: str, wrong: object) -> None:
    status = read_edge_status(WHOLE | {name: wrong})
    assert all(
        getattr(status, other) == getattr(read_edge_status(WHOLE), other)
        for other in EdgeStatus.model_fields
        if other != name
    )


def test_items_of_another_type_are_left_out_of_lists() -> None:
    status = read_edge_status({"missing": ["a", 5, None, "b"], "unknown": ["x", {"what": 5, "right": "r"}]})
    assert (status.missing, status.unknown) == (("a", "b"), (MissingRight(right="r"),))


def test_members_that_nobody_knows_are_ignored_and_stay_in_the_document() -> None:
    document = {"colour": "blue", "flux": {"moon": 1}, "hosts": [{"hostname": "n1", "rack": 7}]}
    status = read_edge_status(document)
    assert "colour" not in status.model_dump()
    assert status.document is document
    assert status != read_edge_status({**document, "colour": "red"})


def test_of_long_lists_the_first_items_count_and_of_namespaces_none() -> None:
    names = [f"n{number}" for number in range(MOST_REPORTED + 1)]
    assert read_edge_status({"namespaces": names}).namespaces is None
    assert read_edge_status({"namespaces": names[1:]}).namespaces == tuple(names[1:])
    refused = read_edge_status({"secrets": {"refused": [{"name": name} for name in names]}}).secrets
    assert refused is not None and len(refused.refused) == MOST_REFUSED


@pytest.mark.parametrize(
    "document",
    [
        {name: [wrong] * 5000}
        for name in ("hosts", "namespaces", "missing", "unknown", "silent", "unopened")
        for wrong in (1, "x", None, {"hostname": 1, "what": 1, "secret": 1})
    ]
    + [{"flux": {"others": [{"conditions": [wrong] * 3000}, wrong] * 2}} for wrong in (1, {"type": 5})]
    + [{"secrets": {"refused": [1] * 3000}}, {"versions": {f"{number}": number for number in range(3000)}}],
)
def test_however_much_does_not_fit_the_rest_counts(document: dict[str, Any]) -> None:
    assert read_edge_status({"observed_revision": "main@sha1:a"} | document).observed_revision == "main@sha1:a"


def test_what_comes_late_in_a_list_never_takes_the_place_of_what_is_left_out() -> None:
    assert read_edge_status({"missing": [1] * MOST_NAMES + ["late"]}).missing == ()


def test_what_is_not_counted_is_not_taken_for_none() -> None:
    said = read_edge_status({"secrets": {"counts": {"opened": 0, "pending": True, "refused": "1"}}}).secrets
    assert said is not None and said.counts == SealingCounts(opened=0)
    assert said.counts.pending == said.counts.refused == -1


@given(st.dictionaries(st.sampled_from([*EdgeStatus.model_fields]), ANYTHING, max_size=4))
def test_a_status_of_any_shape_is_read(document: dict[str, Any]) -> None:
    assert read_edge_status(document).document == document


def test_the_schema_names_every_member_that_is_read() -> None:
    assert set(status_schema()["properties"]) == set(EdgeStatus.model_fields)
    assert not {"$ref", "$defs", "default", "anyOf"} & _keys(status_schema())


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        (WHOLE, True),
        ({}, True),
        ({"flux": 7, "versions": [], "observed_revision": None, "missing": 5, "colour": "blue"}, True),
        ({"hosts": "no list"}, False),
        ({"hosts": [{"arch": "amd64"}]}, False),
        ({"hosts": [{"hostname": "n1", "ready": "yes"}]}, False),
        ({"namespaces": [5]}, False),
        ({"kubeseal_cert": None}, False),
    ],
)
def test_the_config_store_refuses_only_what_it_has_always_refused(document: dict[str, Any], fits: bool) -> None:
    assert Draft202012Validator(checked_schema()).is_valid(document) is fits


def test_the_config_store_names_what_the_centre_reads_of_flux_and_programs() -> None:
    assert {"flux", "versions", "observed_revision"} < set(checked_schema()["properties"])


def _keys(schema: object) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(_keys, schema))
    return set(schema).union(*map(_keys, schema.values())) if isinstance(schema, dict) else set()
