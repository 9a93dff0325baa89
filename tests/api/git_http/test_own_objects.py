"""A push that would have Flux take over, or delete, what Edgewright has on the edge."""

import json

import pytest
from git_http_centre import GitHttpCentre, Work

from edgewright.bootstrap import installed_objects
from edgewright.domain.own_objects import ObjectKey
from edgewright.ports.git_server import CommitMessage

SPACES = {"edgewright": "Edgewright", "flux-system": "Flux", "kube-system": "Kubernetes"}
FLUX = [ObjectKey("apps", "Deployment", "flux-system", "source-controller")]
BY_CENTRE = CommitMessage("Change", "edgewright")
SPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n"
KEPT = SPACE + "  annotations: {{kustomize.toolkit.fluxcd.io/prune: disabled}}\n"
GENERATED = (
    b"---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
    b"metadata: {name: by-hand, namespace: edgewright}\n"
)


@pytest.fixture(autouse=True)
def own(centre: GitHttpCentre) -> None:
    centre.own = installed_objects("edgewright", SPACES, FLUX)


def manifest(api: str, kind: str, name: str, namespace: str | None = None) -> str:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": metadata})


@pytest.mark.parametrize(("name", "whose"), [(n, f"{w}'" if w[-1] == "s" else f"{w}'s") for n, w in SPACES.items()])
def test_a_namespace_that_is_not_the_operators_is_refused(work: Work, name: str, whose: str) -> None:
    work.commit(**{"by-hand__spaces.yaml": SPACE.format(name="mine") + "---\n" + SPACE.format(name=name)})
    assert work.refusal() == (
        f"by-hand/spaces.yaml holds the Namespace {name}, which is {whose}: Flux would take it over, and delete it "
        "with all that is in it once it leaves the file. Take it out of the file, and push again."
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (manifest("v1", "Secret", "flux-secrets", "edgewright"), "Secret edgewright/flux-secrets"),
        (manifest("v1", "Secret", "edgewright-agent", "edgewright"), "Secret edgewright/edgewright-agent"),
        (manifest("v1", "Secret", "edgewright-proxy", "flux-system"), "Secret flux-system/edgewright-proxy"),
        (
            manifest("apps/v1", "Deployment", "edgewright-agent", "edgewright"),
            "Deployment edgewright/edgewright-agent",
        ),
        (
            manifest("v1", "ServiceAccount", "edgewright-detach", "edgewright"),
            "ServiceAccount edgewright/edgewright-d",
        ),
        (
            manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "edgewright-anchor"),
            "ClusterRole edgewright-anchor",
        ),
        (
            manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "edgewright-agent", "x"),
            "ClusterRole edgewright-ag",
        ),
        (
            manifest("apps/v1", "Deployment", "source-controller", "flux-system"),
            "Deployment flux-system/source-contr",
        ),
    ],
)
def test_an_object_that_bootstrap_has_made_is_refused(work: Work, text: str, what: str) -> None:
    work.commit(**{"by-hand__deep__one.json": text})
    assert work.refusal().startswith(f"by-hand/deep/one.json holds the {what}")


def test_an_object_that_edgewright_generates_is_refused(centre: GitHttpCentre, work: Work) -> None:
    centre.server.commit(work.id, {"edo/cluster/by-hand.yaml": GENERATED}, BY_CENTRE, expected_head=work.head())
    work.git("pull", "-q")
    work.commit(**{"by-hand__again.yaml": GENERATED.decode()})
    assert work.refusal().startswith("by-hand/again.yaml holds the Kustomization edgewright/by-hand, which is Edgewr")


def test_the_driver_of_secrets_is_refused_and_so_many_of_them_can_be_read(centre: GitHttpCentre, work: Work) -> None:
    name = "edo/cluster/secrets/drivers.yaml"
    drivers = b"".join(GENERATED.replace(b"by-hand", b"edge-secrets-n%d" % number) for number in range(250))
    centre.server.commit(work.id, {name: drivers}, BY_CENTRE, expected_head=work.head())
    work.git("pull", "-q")
    new = work.commit(**{"by-hand__mine.yaml": GENERATED.decode().replace("by-hand", "mine")})
    work.git("push", "-q")
    assert work.head() == new
    centre.pushes.clear()
    work.commit(**{"by-hand__again.yaml": GENERATED.decode().replace("by-hand", "edge-secrets-n249")})
    assert work.refusal().startswith("by-hand/again.yaml holds the Kustomization edgewright/edge-secrets-n249, which")


def test_one_that_does_not_say_its_namespace_is_refused_with_a_way_out(work: Work) -> None:
    work.commit(**{"by-hand__one.yaml": manifest("apps/v1", "Deployment", "source-controller")})
    assert work.refusal().endswith(" If yours is in another namespace, say in the file in which.")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.yaml", SPACE.format(name="mine")),
        ("a.yaml", manifest("v1", "Secret", "flux-secrets", "mine")),
        ("a.yaml", manifest("v1", "ConfigMap", "edgewright", "edgewright")),
        ("a.yaml", manifest("apps/v1", "Deployment", "source-controller", "mine")),
        ("a.yaml", manifest("kustomize.config.k8s.io/v1beta1", "Kustomization", "by-hand", "edgewright")),
        ("a.yaml", "kind: Namespace\nmetadata: {name: edgewright\n"),
        ("a.yaml", "- edgewright\n"),
        ("notes.md", SPACE.format(name="edgewright")),
    ],
)
def test_what_is_the_operators_own_or_nothing_is_taken(work: Work, file: str, text: str) -> None:
    new = work.commit(**{f"by-hand__{file}": text})
    work.git("push", "-q")
    assert work.head() == new


def test_one_that_is_there_already_may_stay_and_leaves_in_two_steps(centre: GitHttpCentre, work: Work) -> None:
    """From before the rule: to take it out at once would have Flux delete it."""
    path, name = "by-hand/spaces.yaml", "by-hand__spaces.yaml"
    before = SPACE.format(name="edgewright").encode()
    centre.server.commit(work.id, {path: before}, BY_CENTRE, expected_head=work.head())
    work.git("pull", "-q")
    work.commit(**{name: before.decode() + "---\n" + SPACE.format(name="mine")})
    work.git("push", "-q")
    centre.pushes.clear()

    (work.path / path).unlink()
    work.commit_all()
    assert work.refusal() == (
        "by-hand/spaces.yaml held the Namespace edgewright, which is Edgewright's: Flux would delete it now. "
        "Leave it in the file with the annotation kustomize.toolkit.fluxcd.io/prune: disabled, push that, and take "
        "it out once the edge has it."
    )
    work.git("reset", "-q", "--hard", "HEAD~")
    work.commit(**{name: KEPT.format(name="edgewright")})
    work.git("push", "-q")
    (work.path / path).unlink()
    new = work.commit_all()
    work.git("push", "-q")
    assert work.head() == new


def test_a_file_that_takes_too_long_to_read_is_refused(work: Work) -> None:
    work.commit(**{"by-hand__deep.yaml": "edgewright: " + "{a: " * 200_000})
    assert work.refusal() == "by-hand/deep.yaml takes too long to be read: split it, or push less at a time."


def test_many_files_that_name_nothing_of_edgewrights_take_no_time_to_speak_of(work: Work) -> None:
    for number in range(400):
        (work.path / f"by-hand/{number}.yaml").write_text(manifest("v1", "ConfigMap", f"a{number}", "mine"))
    new = work.commit_all()
    work.git("push", "-q")
    assert work.head() == new
