"""What the Config Store holds from the first start."""

import re
from typing import Any
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator

from edgewright.domain import wellknown as wk
from edgewright.domain.default_entries import (
    DEFAULT_CHART_NAME,
    WITH_SCHEMA,
    application_schema,
    default_entries,
)
from edgewright.domain.names import CLUSTER_NAME

CLUSTER = {"name": "press-shop", "namespace": "edgewright"}


def accepts(app: UUID, body: Any) -> bool:
    return Draft202012Validator(application_schema(app)).is_valid(body)


def test_each_entry_is_there_once_and_each_object_has_one_class() -> None:
    entries = default_entries("ACME")
    keys = [(entry.app, entry.object) for entry in entries]
    assert len(set(keys)) == len(keys)
    classes: dict[UUID, UUID] = {}
    for entry in entries:
        assert classes.setdefault(entry.object, entry.klass) == entry.klass


def test_each_application_has_a_schema_that_is_itself_valid_and_comes_before_its_entries() -> None:
    entries = default_entries("ACME")
    assert set(WITH_SCHEMA) == set(wk.APPLICATIONS)
    known: dict[UUID, Any] = {}
    for entry in entries:
        if entry.app == wk.APP_CONFIG_SCHEMA:
            Draft202012Validator.check_schema(entry.body)
            known[entry.object] = entry.body
        else:
            assert entry.app in known


def test_each_entry_satisfies_its_schema_and_its_class() -> None:
    for entry in default_entries("ACME"):
        errors = [
            error.message for error in Draft202012Validator(application_schema(entry.app)).iter_errors(entry.body)
        ]
        assert errors == []
        assert wk.allows_class(entry.app, entry.klass)


def test_the_default_chart_is_found_by_its_name() -> None:
    names = {entry.object: entry.body["name"] for entry in default_entries("ACME") if entry.app == wk.APP_OBJECT_INFO}
    assert names[wk.OBJECT_DEFAULT_CHART] == DEFAULT_CHART_NAME == "edge-cluster"


def test_the_organisation_is_in_the_default_chart_and_in_no_later_call() -> None:
    def organisation(of: str) -> str:
        chart = next(entry for entry in default_entries(of) if entry.app == wk.APP_HELM_CHART_TEMPLATE)
        return str(chart.body["values"]["cluster"]["organisation"])

    assert (organisation("ACME"), organisation("Other")) == ("ACME", "Other")


def test_a_changed_entry_changes_no_later_call() -> None:
    default_entries("ACME")[0].body["type"] = "nonsense"
    assert default_entries("ACME")[0].body["type"] == "object"


@pytest.mark.parametrize("name", ["a", "press-shop", "08", "A_b-C", "x" * 63])
def test_the_schema_takes_the_names_that_a_cluster_may_have(name: str) -> None:
    assert CLUSTER_NAME.fullmatch(name)
    assert accepts(wk.APP_CLUSTER_CONFIGURATION, {**CLUSTER, "name": name})


@pytest.mark.parametrize("name", ["", "-a", "a-", "_", "Bad Name/../x @", "x" * 64, "a\n", "a\nb", "ä", 7, None])
def test_the_schema_refuses_other_names(name: Any) -> None:
    assert not isinstance(name, str) or CLUSTER_NAME.fullmatch(name) is None
    assert not accepts(wk.APP_CLUSTER_CONFIGURATION, {**CLUSTER, "name": name})


@pytest.mark.parametrize(
    "change",
    [
        {"namespace": "Upper"},
        {"namespace": "a.b"},
        {"namespace": "x" * 64},
        {"namespace": "edge\n"},
        {"chart": "edge-cluster"},
        {"chart": f"{wk.OBJECT_DEFAULT_CHART}\n"},
        {"bare": "yes"},
        {"values": []},
        {"labels": {}},
    ],
)
def test_the_schema_refuses_other_configuration(change: dict[str, Any]) -> None:
    assert accepts(wk.APP_CLUSTER_CONFIGURATION, CLUSTER)
    assert not accepts(wk.APP_CLUSTER_CONFIGURATION, {**CLUSTER, **change})


@pytest.mark.parametrize("missing", ["name", "namespace"])
def test_a_configuration_needs_name_and_namespace(missing: str) -> None:
    assert not accepts(wk.APP_CLUSTER_CONFIGURATION, {key: value for key, value in CLUSTER.items() if key != missing})


def test_a_full_configuration_is_taken() -> None:
    full = {**CLUSTER, "chart": str(wk.OBJECT_DEFAULT_CHART), "bare": True, "values": {"any": ["thing"]}}
    assert accepts(wk.APP_CLUSTER_CONFIGURATION, full)


def test_an_edge_status_may_say_more_than_is_known_here() -> None:
    host = {
        "hostname": "n1",
        "arch": "arm64",
        "k8s_version": "v1.33.1",
        "control_plane": True,
        "specialised": "x",
        "more": 1,
    }
    assert accepts(wk.APP_CLUSTER_STATUS, {"hosts": [host], "kubeseal_cert": "PEM", "more": {"a": 1}})
    assert accepts(wk.APP_CLUSTER_STATUS, {})
    assert not accepts(wk.APP_CLUSTER_STATUS, {"hosts": [{"arch": "arm64"}]})
    assert not accepts(wk.APP_CLUSTER_STATUS, {"kubeseal_cert": 1})


def test_a_bootstrap_entry_adds_files_and_hooks_and_replaces_nothing() -> None:
    assert accepts(wk.APP_BOOTSTRAP_SCRIPT, {"files": {"a.yaml": "---"}})
    assert not accepts(wk.APP_BOOTSTRAP_SCRIPT, {"files": {"a.yaml": "---"}, "wrapper": "#!/bin/sh"})
    assert accepts(wk.APP_BOOTSTRAP_SCRIPT, {"files": {}, "hooks": {"before": "true", "after": "true"}})
    assert not accepts(wk.APP_BOOTSTRAP_SCRIPT, {"wrapper": "#!/bin/sh"})
    assert not accepts(wk.APP_BOOTSTRAP_SCRIPT, {"files": {"../a": ""}})
    assert not accepts(wk.APP_BOOTSTRAP_SCRIPT, {"files": {}, "hooks": {"during": ""}})


def test_a_flux_template_needs_its_self_link_and_usable_file_names() -> None:
    source = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository"}
    assert accepts(wk.APP_FLUX_TEMPLATE, {"self-link.yaml": [source], "x.yaml": ["{{ helm }}"]})
    refused: list[Any] = [
        {},
        {"x.yaml": [source]},
        {"self-link.yaml": [source], "../x.yaml": [source]},
        {"self-link.yaml": []},
    ]
    for bad in refused:
        assert not accepts(wk.APP_FLUX_TEMPLATE, bad)


@pytest.mark.parametrize(
    "settings", [{}, {"labels": {"site": "leeds", "a.b/c": ""}, "accept": "manual", "lease_seconds": 60}]
)
def test_settings_of_a_cluster_are_taken(settings: dict[str, Any]) -> None:
    assert accepts(wk.APP_CLUSTER_SETTINGS, settings)


@pytest.mark.parametrize(
    "settings",
    [{"accept": "maybe"}, {"lease_seconds": 9}, {"labels": {"a b": "x"}}, {"labels": {"a": "x y"}}, {"other": 1}],
)
def test_other_settings_are_refused(settings: dict[str, Any]) -> None:
    assert not accepts(wk.APP_CLUSTER_SETTINGS, settings)


def test_objects_that_drive_the_edge_are_never_pruned() -> None:
    for entry in default_entries("ACME"):
        if entry.app == wk.APP_FLUX_TEMPLATE:
            manifests = [manifest for file in entry.body.values() for manifest in file if isinstance(manifest, dict)]
        elif entry.app == wk.APP_KUBERNETES_TEMPLATE:
            manifests = [entry.body["template"]]
        else:
            continue
        for manifest in manifests:
            assert manifest["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
            assert manifest["metadata"]["labels"]["edgewright.dev/cluster"] == "{{ uuid }}"


def test_no_pattern_relies_on_the_end_of_a_line_alone() -> None:
    """``$`` matches before a last line feed, so that each pattern for text has a companion that refuses one."""

    def check(schema: Any) -> None:
        if isinstance(schema, dict):
            pattern = schema.get("pattern")
            if isinstance(pattern, str) and re.search(r"\$$", pattern) and "{{" not in pattern.replace("\\", ""):
                assert schema["not"] == {"pattern": "\\n"}, schema
            for member in schema.values():
                check(member)
        elif isinstance(schema, list):
            for element in schema:
                check(element)

    for app in WITH_SCHEMA:
        check(application_schema(app))
