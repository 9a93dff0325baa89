"""The removal commit of a deletion."""

from typing import Any

from edgewright.domain.rendering import render_repository, workload_removal


def after(paths: list[str]) -> set[str]:
    left = set(paths)
    for path, content in workload_removal(paths).items():
        (left.discard if content is None else left.add)(path)
    return left


def test_workloads_go_and_what_drives_the_edge_stays(render_input: Any) -> None:
    generated = list(render_repository(render_input()))
    workloads = [
        "by-hand/app.yaml",
        "by-hand/deep/er/kustomization.yaml",
        "by-hand/deep/README.md",
        "edo/secrets/default/db.yaml",
        "edo/cluster/broker.yaml",
    ]
    assert after([*generated, *workloads]) == set(generated)


def test_the_emptied_folders_stay_so_that_flux_prunes_them(render_input: Any) -> None:
    assert after(["by-hand/app.yaml", "edo/secrets/a/b.yaml"]) == {"by-hand/README.md", "edo/secrets/README.md"}


def test_a_second_removal_changes_nothing(render_input: Any) -> None:
    paths = [*render_repository(render_input()), "by-hand/app.yaml"]
    assert workload_removal(sorted(after(paths))) == {}


def test_a_bare_clusters_own_flux_is_not_touched(render_input: Any) -> None:
    generated = list(render_repository(render_input(bare=True)))
    assert workload_removal(generated) == {}
