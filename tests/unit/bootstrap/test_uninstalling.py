"""The script that takes Edgewright away: for whatever cluster the edge is attached as, and with its anchor gone."""

import pytest
from bootstrap_edge import KubectlMachine, RegistrationServer

from edgewright.bootstrap import render_uninstall

ANCHOR = "ClusterRole/edgewright-anchor"
OTHER = "6f5c1c1e-0000-4000-8000-3f0f5f5f9a99"


def left(edge: KubectlMachine) -> list[str]:
    return [key for key, held in edge.cluster["objects"].items() if "edgewright.dev/cluster" in held["labels"]]


def without_anchor(edge: KubectlMachine) -> None:
    """As after somebody has deleted it and the garbage collector has missed what owned nothing of it any more."""
    objects = edge.cluster["objects"]
    del objects[ANCHOR]
    for held in objects.values():
        held.pop("owned_by", None)
    edge.set_cluster(objects=objects)


def test_it_needs_no_cluster_and_holds_no_secret(edge: KubectlMachine) -> None:
    script = render_uninstall()
    assert edge.cluster_uuid not in script and edge.token not in script
    edge.run("--yes")
    done = edge.run("--yes", script=script)
    assert (done.returncode, done.stderr) == (0, "")
    assert edge.cluster_uuid in done.stdout
    assert left(edge) == []
    assert list(edge.tmp.iterdir()) == []


def test_a_line_with_uninstall_runs_the_script_of_its_centre(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    edge.run("--yes")
    done = edge.run("--yes", "--uninstall")
    assert (done.returncode, done.stderr) == (0, "")
    assert centre.fetched == [("/v1/uninstall.sh", None)]
    assert left(edge) == []


def test_an_edge_without_its_agent_secret_can_be_cleaned(edge: KubectlMachine) -> None:
    edge.run("--yes")
    edge.drop("Secret/edgewright/edgewright-agent")
    assert edge.run("--yes", script=render_uninstall()).returncode == 0
    assert left(edge) == []


def test_without_its_anchor_what_bears_the_mark_goes(edge: KubectlMachine) -> None:
    edge.run("--yes")
    without_anchor(edge)
    for script in (render_uninstall(), render_uninstall(edge.wanted)):
        dry = edge.run("--dry-run", script=script)
        assert "all that it owned" in dry.stdout and "edgewright-agent" in dry.stdout
    done = edge.run("--yes", script=render_uninstall())
    assert done.returncode == 0, done.stderr
    assert left(edge) == []
    assert "Nothing was installed here" in edge.run("--yes", script=render_uninstall()).stdout


def test_marks_of_several_clusters_are_told_apart(edge: KubectlMachine) -> None:
    edge.run("--yes")
    without_anchor(edge)
    edge.put("ConfigMap/other/marked", {"cluster": OTHER, "part-of": "bootstrap"})
    done = edge.run("--yes", script=render_uninstall())
    assert done.returncode == 2
    assert OTHER in done.stderr and edge.cluster_uuid in done.stderr
    assert edge.run("--yes", "--cluster", edge.cluster_uuid, script=render_uninstall()).returncode == 0
    assert left(edge) == ["ConfigMap/other/marked"]


def test_an_anchor_that_edgewright_did_not_make_stays(edge: KubectlMachine) -> None:
    edge.put(ANCHOR)
    done = edge.run("--yes", script=render_uninstall())
    assert (done.returncode, "did not make" in done.stderr) == (6, True)
    assert ANCHOR in edge.cluster["objects"]


def test_another_clusters_line_names_the_script(edge: KubectlMachine) -> None:
    edge.put(ANCHOR, {"cluster": OTHER, "generation": "1"})
    for options in (["--yes"], ["--yes", "--uninstall"]):
        done = edge.run(*options)
        assert done.returncode == 6
        assert "edgewright cluster uninstall-script" in done.stderr


def test_wrong_options_are_refused(edge: KubectlMachine) -> None:
    for options in (["--frobnicate"], ["--cluster"], ["--cluster", "a b"], ["--keep-releases", "--purge"]):
        assert edge.run(*options, script=render_uninstall()).returncode == 2
    shown = edge.run("--help", script=render_uninstall())
    assert shown.returncode == 0
    for told in ("--keep-releases", "--purge", "--cluster UUID", "--dry-run", "--context", "--yes"):
        assert told in shown.stdout


def test_help_says_what_keeping_and_purging_mean(edge: KubectlMachine) -> None:
    shown = " ".join(edge.run("--help", script=render_uninstall()).stdout.split())
    _, keeping = shown.split(" --keep-releases ")
    keeping, purging = keeping.split(" --purge ")
    for stays in ("its sealed-secrets runs on", "its ConfigMap edgewright-cluster stays", "its namespace with both"):
        assert stays in keeping
    assert "Nothing upgrades it" in keeping
    purging, _ = purging.split(" --cluster ")
    for goes in ("the kind SealedSecret", "the sealing keys", "every Secret that was opened"):
        assert goes in purging
    assert "can be opened ever again" in purging and "Refused while somebody else uses them" in purging


def test_a_release_of_an_earlier_life_goes_before_anything_is_applied(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    old = f"edge-cluster-{OTHER}"
    edge.set_cluster(releases=["somebody-elses", f"edge-cluster-{edge.cluster_uuid}", old])
    assert f"Helm release {old}" in edge.run("--dry-run").stdout
    assert centre.fetched == [] and edge.changes == []
    done = edge.run("--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"The Helm release {old} is gone" in done.stdout
    assert "somebody-elses" not in done.stdout
    assert "Kustomization/edgewright/self-link" in edge.cluster["objects"]
    assert edge.cluster["releases"] == ["somebody-elses", f"edge-cluster-{edge.cluster_uuid}"]


def test_a_release_of_an_earlier_life_needs_an_administrator(
    edge: KubectlMachine, centre: RegistrationServer
) -> None:
    edge.set_cluster(releases=[f"edge-cluster-{OTHER}"], forbidden=["delete pods"])
    done = edge.run("--yes")
    assert (done.returncode, "all rights" in done.stderr) == (4, True)
    assert edge.changes == [] and centre.requests == []


def test_releases_go_with_an_uninstallation_unless_they_are_kept(edge: KubectlMachine) -> None:
    own = f"edge-cluster-{edge.cluster_uuid}"
    for options, there in (["--keep-releases"], [own, "theirs"]), ([], ["theirs"]):
        edge.run("--yes")
        edge.set_cluster(releases=[own, "theirs"])
        done = edge.run("--yes", *options, script=render_uninstall())
        assert (done.returncode, done.stderr) == (0, "")
        assert edge.cluster["releases"] == there
        assert left(edge) == []


@pytest.mark.parametrize("marked", [True, False], ids=["by the line", "by hand"])
def test_what_brings_back_the_others_goes_first_and_all_rest_before_they_go(
    edge: KubectlMachine, marked: bool
) -> None:
    """Somebody else's Flux is at work meanwhile; an edge that was attached by hand has no mark on ``self-link``."""
    edge.run("--yes")
    ours = {"cluster": edge.cluster_uuid}
    self_link, driven = "Kustomization/edgewright/self-link", "Kustomization/edgewright/by-hand"
    if not marked:
        edge.put(self_link, labels=ours)
    edge.put(driven, labels=ours)
    agent = "Deployment/edgewright/edgewright-agent"
    edge.put(agent, labels={**ours, "part-of": "bootstrap"})
    before = len(edge.calls)
    assert edge.run("--yes", script=render_uninstall()).returncode == 0
    gone = [key for verb, key in edge.changes if verb == "delete"]
    assert gone.index(self_link) < min(gone.index(driven), gone.index(agent))
    calls = [" ".join(call["args"]) for call in edge.calls[before:]]
    rested = [at for at, call in enumerate(calls) if "patch kustomizations" in call and "by-hand" in call]
    deleted = [at for at, call in enumerate(calls) if "delete kustomizations" in call and "--dry-run" not in call]
    assert rested[0] < deleted[0] < rested[1] < deleted[1], (
        "at rest before, and once more when nothing frees it again"
    )
    assert all("--field-manager=edgewright" in calls[at] for at in rested), "Flux takes back what is kubectl's own"


@pytest.mark.parametrize(
    ("said", "code", "released"),
    [
        ("error: timed out waiting for the condition on kustomizations/self-link", 0, True),
        ("Unable to connect to the server: net/http: TLS handshake error", 3, False),
    ],
)
def test_only_what_flux_has_had_its_time_for_loses_its_finalizers(
    edge: KubectlMachine, said: str, code: int, released: bool
) -> None:
    """An API server that is away for a moment says nothing of a Flux that is at work."""
    edge.run("--yes")
    edge.set_cluster(once_undeleted={"kustomizations.kustomize.toolkit.fluxcd.io": said})
    done = edge.run("--yes", script=render_uninstall())
    calls = [" ".join(call["args"]) for call in edge.calls]
    assert (done.returncode, any('"finalizers":null' in call for call in calls)) == (code, released), done.stderr
    if code:
        assert "run this again" in done.stderr
        assert edge.run("--yes", script=render_uninstall()).returncode == 0
    assert left(edge) == []


def test_whoever_may_delete_what_was_installed_needs_no_other_rights(edge: KubectlMachine) -> None:
    edge.run("--yes")
    edge.set_cluster(forbidden=["delete pods"])
    done = edge.run("--yes", script=render_uninstall())
    assert (done.returncode, done.stderr) == (0, "")
    assert left(edge) == []


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
@pytest.mark.parametrize(
    ("right", "named"),
    [
        ("list *", "list *"),
        ("patch namespaces", "patch namespaces"),
        ("delete Secret", "cannot delete resource"),
        ("patch kustomizations.kustomize.toolkit.fluxcd.io", "patch kustomizations"),
    ],
)
def test_a_missing_right_is_named_before_anything_is_taken_away(
    edge: KubectlMachine, right: str, named: str, option: str
) -> None:
    edge.run("--yes")
    changes, marked = edge.changes, left(edge)
    edge.set_cluster(forbidden=["delete pods", right])
    done = edge.run(option, script=render_uninstall())
    assert (done.returncode, named in done.stderr, "Nothing was changed" in done.stderr) == (4, True, True)
    assert (edge.changes, left(edge)) == (changes, marked)


def test_helm_releases_and_a_purge_need_all_rights(edge: KubectlMachine) -> None:
    edge.run("--yes")
    own = f"edge-cluster-{edge.cluster_uuid}"
    edge.set_cluster(forbidden=["delete pods"], releases=[own])
    for options in ([], ["--purge"]):
        done = edge.run("--yes", *options, script=render_uninstall())
        assert (done.returncode, "all rights" in done.stderr) == (4, True)
        assert left(edge) != []
    done = edge.run("--yes", "--keep-releases", script=render_uninstall())
    assert (done.returncode, done.stderr, left(edge)) == (0, "", [])
    assert edge.cluster["releases"] == [own]
