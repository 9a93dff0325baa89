"""One driver for each namespace with secrets, and how repositories of earlier versions come to that."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from edgewright.domain.rendering import render_changes, render_repository, workload_removal
from edgewright.domain.rendering.layout import (
    DRIVER_PATTERN_PATH,
    DRIVERS_PATH,
    RETIRED_DRIVER_PATH,
    RETIRED_NOTE_PATH,
)
from edgewright.domain.rendering.secret_drivers import (
    MOST_NAMESPACES,
    check_room,
    driver_name,
    open_namespaces,
    read_pattern,
    sealed_place,
)
from edgewright.errors import Invalid

OLD_DRIVER = "edo/cluster/edge-secrets.yaml"
SEALED = ["edo/secrets/default/db.yaml", "edo/secrets/line-1/mqtt.yaml", "edo/secrets/line-1/opc.ua.yaml"]


def after(files: Mapping[str, bytes], changes: Mapping[str, bytes | None]) -> dict[str, bytes]:
    return {path: content for path, content in {**files, **changes}.items() if content is not None}


def rendered_on(files: Mapping[str, bytes], spec: Any) -> dict[str, bytes]:
    return after(files, render_changes(render_repository(spec), list(files)))


def with_secrets(files: Mapping[str, bytes], *paths: str) -> dict[str, bytes]:
    return {**files, **dict.fromkeys(paths, b"sealed")}


def documents(content: bytes) -> list[Any]:
    return list(yaml.safe_load_all(content))


def drivers(files: Mapping[str, bytes]) -> dict[str, str]:
    """Name of each driver -> its folder."""
    found = documents(files[DRIVERS_PATH]) if DRIVERS_PATH in files else []
    return {one["metadata"]["name"]: one["spec"]["path"] for one in found}


def set_secret(files: Mapping[str, bytes], path: str, *, create: bool = False) -> dict[str, bytes]:
    place = sealed_place(path)
    assert place
    opened = {place.namespace} if f"edo/secrets/{place.namespace}/README.md" not in files else set()
    pattern = read_pattern(files.get(DRIVER_PATTERN_PATH))
    brought = open_namespaces(pattern, list(files), opened, {place.namespace} if create else set())
    return with_secrets(after(files, brought), path)


def test_a_new_repository_has_no_driver_of_secrets_yet(render_input: Any) -> None:
    files = rendered_on({}, render_input())
    assert not {DRIVERS_PATH, RETIRED_DRIVER_PATH, OLD_DRIVER} & set(files)
    assert [one["metadata"]["name"] for one in documents(files[DRIVER_PATTERN_PATH])] == ["edge-secrets"]


def test_the_first_secret_of_a_namespace_brings_its_driver_and_a_rendering_changes_nothing(render_input: Any) -> None:
    files = rendered_on({}, render_input())
    for path in SEALED:
        files = set_secret(files, path)
    assert drivers(files) == {
        "edge-secrets-default": "./edo/secrets/default",
        "edge-secrets-line-1": "./edo/secrets/line-1",
    }
    assert {"edo/secrets/default/README.md", "edo/secrets/line-1/README.md"} <= set(files)
    assert rendered_on(files, render_input()) == files


def test_a_driver_is_the_pattern_and_goes_with_its_file(render_input: Any) -> None:
    spec = render_input()
    template = copy.deepcopy(dict(spec.flux_template))
    template["edge-secrets.yaml"][0]["spec"] |= {"interval": "7m", "decryption": {"provider": "sops"}}
    files = set_secret(rendered_on({}, render_input(flux_template=template)), SEALED[0])
    [driver] = documents(files[DRIVERS_PATH])
    assert driver["metadata"] == {
        "name": "edge-secrets-default",
        "namespace": "edgewright",
        "labels": {"edgewright.dev/cluster": str(spec.uuid)},
    }
    assert driver["spec"] == {
        **{"interval": "7m", "decryption": {"provider": "sops"}, "path": "./edo/secrets/default", "prune": True},
        **{"retryInterval": "30s", "timeout": "5m", "sourceRef": {"kind": "GitRepository", "name": "self-link"}},
    }


def test_the_driver_outlives_the_last_secret_until_the_next_rendering(render_input: Any) -> None:
    """Else Flux would remove a secret that is set again at once, together with the driver that goes."""
    files = set_secret(rendered_on({}, render_input()), SEALED[0], create=True)
    del files[SEALED[0]]
    again = set_secret(files, SEALED[0])
    assert drivers(again) == drivers(files) == {"edge-secrets-default": "./edo/secrets/default"}
    rendered = rendered_on(files, render_input())
    assert rendered == rendered_on({}, render_input())


def test_a_namespace_that_is_to_be_created_stays_so_and_outlives_its_file(render_input: Any) -> None:
    files = set_secret(rendered_on({}, render_input()), "edo/secrets/line-1/namespace.yaml", create=True)
    [namespace] = documents(files["edo/secrets/line-1/namespace.yml"])
    assert (namespace["kind"], namespace["metadata"]["name"]) == ("Namespace", "line-1")
    assert namespace["metadata"]["annotations"] == {
        "kustomize.toolkit.fluxcd.io/prune": "disabled",
        "kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent",
    }
    assert rendered_on(files, render_input()) == files


def old_repository(spec: Any) -> dict[str, bytes]:
    """As the renderer before this one has left it."""
    files = rendered_on({}, spec)
    pattern = files.pop(DRIVER_PATTERN_PATH)
    return with_secrets({**files, OLD_DRIVER: pattern}, *SEALED)


def test_an_earlier_repository_retires_its_one_driver_without_pruning(render_input: Any) -> None:
    old = old_repository(render_input())
    files = rendered_on(old, render_input())
    assert set(drivers(files).values()) == {"./edo/secrets/default", "./edo/secrets/line-1"}
    assert all(files[path] == old[path] for path in SEALED)
    assert OLD_DRIVER not in files
    [before], [retired] = documents(old[OLD_DRIVER]), documents(files[RETIRED_DRIVER_PATH])
    assert retired["metadata"]["name"] == before["metadata"]["name"]
    assert retired["metadata"]["namespace"] == before["metadata"]["namespace"]
    assert retired["spec"]["prune"] is False
    assert retired["spec"]["path"] == "./edo/retired"
    assert RETIRED_NOTE_PATH in files
    assert rendered_on(files, render_input()) == files, "it stays: an edge may not have fetched for long"


def test_a_secret_in_an_earlier_repository_waits_for_no_driver(render_input: Any) -> None:
    old = old_repository(render_input())
    files = set_secret(old, "edo/secrets/new/db.yaml", create=True)
    assert set(files) - set(old) == {"edo/secrets/new/db.yaml", "edo/secrets/new/namespace.yml"}
    assert "edge-secrets-new" in drivers(rendered_on(files, render_input()))


def test_a_template_that_drives_no_secrets_leaves_what_there_is(render_input: Any) -> None:
    spec = render_input()
    files = set_secret(rendered_on({}, spec), SEALED[0])
    template = {file: manifests for file, manifests in spec.flux_template.items() if file != "edge-secrets.yaml"}
    assert rendered_on(files, render_input(flux_template=template)) == files


def test_manifests_beside_the_pattern_stay_in_their_file(render_input: Any) -> None:
    spec = render_input()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}}
    template = {**spec.flux_template, "edge-secrets.yaml": [other, *spec.flux_template["edge-secrets.yaml"]]}
    files = rendered_on({}, render_input(flux_template=template))
    assert [one["kind"] for one in documents(files[OLD_DRIVER])] == ["ConfigMap"]


def test_the_removal_takes_secrets_and_leaves_their_drivers_and_folders(render_input: Any) -> None:
    """A Kustomization whose folder is gone prunes nothing."""
    files = rendered_on(old_repository(render_input()), render_input())
    files = set_secret(files, "edo/secrets/new/db.yaml", create=True)
    left = after(files, workload_removal(list(files)))
    assert set(files) - set(left) == {*SEALED, "edo/secrets/new/db.yaml", "edo/secrets/new/namespace.yml"}
    assert drivers(left) == drivers(files)


def test_driver_names_fit_into_a_label_and_are_never_shared() -> None:
    longest = "n" * 63
    shortened = driver_name("edge-secrets", longest)
    assert len(shortened) == 63
    assert shortened != driver_name("edge-secrets", "n" * 62 + "m")
    # A namespace that is made to look like a shortened one gets a name of its own.
    lookalike = shortened.removeprefix("edge-secrets-")
    assert driver_name("edge-secrets", lookalike) != shortened


@pytest.mark.parametrize("path", ["README.md", "a/README.md", "a/namespace.yml", "a.yaml", "a/b/c.yaml"])
def test_notes_and_namespaces_are_no_secrets(path: str) -> None:
    assert sealed_place(f"edo/secrets/{path}") is None


def test_there_is_room_for_so_many_namespaces() -> None:
    full = {f"n{number}" for number in range(MOST_NAMESPACES)}
    check_room(set(), full)
    check_room(full | {"more"}, full | {"more"})
    with pytest.raises(Invalid) as refusal:
        check_room(full, full | {"more"})
    assert refusal.value.code == "too_many_namespaces"
