"""What brings Flux and the agent to the version that is wanted."""

from dataclasses import replace

import pytest
import yaml
from rendering_stage import render_input

from edgewright.domain.rendering import (
    OwnComponents,
    WantedComponent,
    render_changes,
    render_digest,
    render_repository,
)
from edgewright.domain.rendering.removal import workload_removal
from edgewright.domain.upgrades import AgentTarget, Component, FluxTarget, WantedComponents
from edgewright.domain.versions import is_older

AGENT = WantedComponent(Component.AGENT, "edgewright-agent", b"---\nkind: Deployment\n", waits=False)
FLUX = WantedComponent(Component.FLUX, "edgewright-flux-v2.7.3", b"---\nkind: Flux\n", waits=True)
ANCHOR = "0f9a4c1e-3b67-4b9e-9c2f-2f1d1f0e9a11"
PLAIN = render_input()
WANTED = replace(PLAIN, components=OwnComponents((AGENT, FLUX), 3, ANCHOR))
DRIVERS = ("edo/cluster/components/agent.yaml", "edo/cluster/components/flux.yaml")
MANIFESTS = ("edo/agent/agent.yaml", "edo/flux/flux.yaml")


def test_a_cluster_of_which_nobody_wants_a_version_is_rendered_as_before() -> None:
    assert not {*DRIVERS, *MANIFESTS} & render_repository(PLAIN).keys()
    assert render_digest(PLAIN) == render_digest(replace(PLAIN, components=None))
    assert render_digest(PLAIN) != render_digest(WANTED)


def test_each_component_has_its_manifests_and_a_driver_that_never_removes_anything() -> None:
    files = render_repository(WANTED)
    assert [files[path] for path in MANIFESTS] == [AGENT.manifests, FLUX.manifests]
    for path, one in zip(DRIVERS, (AGENT, FLUX), strict=True):
        driver = yaml.safe_load(files[path])
        spec = driver["spec"]
        assert (driver["kind"], driver["metadata"]) == (
            "Kustomization",
            {"name": one.driver, "namespace": PLAIN.namespace},
        )
        assert (spec["prune"], spec["wait"], spec["path"]) == (False, one.waits, f"./edo/{one.component}")
        assert spec["sourceRef"] == {"kind": "GitRepository", "name": "self-link"}
        assert spec["commonMetadata"]["labels"] == {
            "edgewright.dev/cluster": str(PLAIN.uuid),
            "edgewright.dev/generation": "3",
            "edgewright.dev/part-of": "bootstrap",
        }
        assert spec["commonMetadata"]["annotations"] == {"kustomize.toolkit.fluxcd.io/ssa": "Merge"}
        [patch] = spec["patches"]
        [operation] = yaml.safe_load(patch["patch"])
        assert operation["value"][0]["uid"] == ANCHOR


@pytest.mark.parametrize("anchor", [None, "", "x\n- op: remove", ANCHOR.upper()])
def test_an_owner_that_is_no_uid_is_left_out(anchor: str | None) -> None:
    files = render_repository(replace(WANTED, components=OwnComponents((AGENT,), 1, anchor)))
    assert "patches" not in yaml.safe_load(files[DRIVERS[0]])["spec"]


@pytest.mark.parametrize(
    "changed",
    [
        OwnComponents((AGENT,), 3, ANCHOR),
        OwnComponents((AGENT, FLUX), 4, ANCHOR),
        OwnComponents((AGENT, FLUX), 3, None),
        OwnComponents((AGENT, replace(FLUX, manifests=b"---\n")), 3, ANCHOR),
        OwnComponents((AGENT, replace(FLUX, driver="edgewright-flux-v2.7.4")), 3, ANCHOR),
    ],
)
def test_whatever_changes_a_file_changes_the_digest(changed: OwnComponents) -> None:
    assert render_digest(replace(PLAIN, components=changed)) != render_digest(WANTED)


def test_what_nobody_wants_any_more_leaves_the_repository_and_so_does_a_deleted_cluster() -> None:
    paths = sorted(render_repository(WANTED))
    gone = {path for path, content in render_changes(render_repository(PLAIN), paths).items() if content is None}
    assert gone == {*DRIVERS, *MANIFESTS}
    removed = workload_removal(paths)
    assert all(removed[path] is None for path in (*DRIVERS, *MANIFESTS))
    assert "edo/cluster/self-link.yaml" not in removed


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("centre.example:8443/edgewright/agent:0.4.0-1f2e3d4c5b6a", "0.4.0-1f2e3d4c5b6a"),
        ("centre.example:8443/agent@sha256:" + "ab" * 32, "abababababab"),
        ("centre.example/agent:0.4@sha256:" + "ab" * 32, "0.4"),
    ],
)
def test_an_image_is_named_by_its_tag(image: str, version: str) -> None:
    assert AgentTarget(image=image).version == version


@pytest.mark.parametrize(
    ("target", "driver"),
    [
        (FluxTarget(sha256="a" * 64, labelled="v2.7.3"), "edgewright-flux-v2.7.3"),
        (FluxTarget(sha256="a" * 64, labelled="v2.7.3+Build_1"), "edgewright-flux-v2.7.3-build-1"),
        (FluxTarget(sha256="a" * 64), "edgewright-flux-aaaaaaaaaaaa"),
    ],
)
def test_each_version_of_flux_has_a_driver_of_its_own(target: FluxTarget, driver: str) -> None:
    assert target.driver == driver


def test_one_component_is_wanted_beside_the_other() -> None:
    agent, flux = AgentTarget(image="a:1"), FluxTarget(sha256="a" * 64)
    assert WantedComponents().with_target(agent).with_target(flux) == WantedComponents(agent=agent, flux=flux)


@pytest.mark.parametrize(
    ("present", "wanted", "backwards"),
    [
        ("v2.7.3", "v2.7.2", True),
        ("v2.10.0", "v2.9.9", True),
        ("v2.7.3", "v2.7.3", False),
        ("v2.7.3", "v2.8.0", False),
        (None, "v2.8.0", False),
        ("main", "v2.8.0", False),
        ("v2.7.3", "", False),
    ],
)
def test_older_is_backwards(present: str | None, wanted: str, backwards: bool) -> None:
    assert bool(is_older(wanted, present)) is backwards
