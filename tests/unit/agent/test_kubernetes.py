"""What the agent makes of an API server that does not answer as one should: it goes on, and says why."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_centre import ReceivedRequest, Reply, ScriptedCentre

from edgewright import __version__
from edgewright.agent.applied import KINDS, METADATA
from edgewright.agent.kubernetes import Kubernetes
from edgewright.agent.opening import Opening, Stage, sealing_digest, template_digest
from edgewright.errors import EdgewrightError, Forbidden, NotFound, Unauthenticated, Waiting

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "dg=="}}


def always(answer: Reply) -> Callable[[ReceivedRequest], Reply]:
    return lambda _request: answer


@pytest.fixture
async def kubernetes(kubeconfig: Path) -> AsyncIterator[Kubernetes]:
    """Asks the scripted server, which stands for the API server here."""
    kubernetes = Kubernetes()
    yield kubernetes
    await kubernetes.close()


async def failure(kubernetes: Kubernetes) -> EdgewrightError:
    with pytest.raises(EdgewrightError) as trouble:
        await kubernetes.secret("edgewright", "s")
    return trouble.value


@pytest.mark.parametrize(
    "reply",
    [
        Reply(503, b""),
        Reply(500, b"<html>", {"Content-Type": "text/html"}),
        Reply(503, b"[]", {"Content-Type": "application/json"}),
        Reply(503, b"no JSON", {"Content-Type": "application/json"}),
        Reply(410, {"code": 410}, {"Content-Type": "application/json"}),
        Reply(302, b"", {"Location": "/elsewhere"}),
        Reply(200, b"<html>Please log in</html>"),
    ],
)
async def test_whatever_answers_in_the_place_of_kubernetes_is_waited_out(
    centre: ScriptedCentre, kubernetes: Kubernetes, reply: Reply
) -> None:
    centre.reply = lambda _request: reply
    trouble = await failure(kubernetes)
    assert isinstance(trouble, Waiting) and trouble.code == "kubernetes_away"
    with pytest.raises(Waiting):
        await kubernetes.hosts()
    with pytest.raises(Waiting):
        await kubernetes.version()
    centre.reply = lambda _request: Reply(200, SECRET)
    assert await kubernetes.secret("edgewright", "s") == {"key": "dg=="}


@pytest.mark.parametrize("body", [[], {"data": 5}, {"data": ["key"]}])
async def test_what_is_no_secret_is_waited_out(centre: ScriptedCentre, kubernetes: Kubernetes, body: object) -> None:
    centre.reply = lambda _request: Reply(200, body)
    assert (await failure(kubernetes)).code == "kubernetes_away"


@pytest.mark.parametrize("body", [b"404 page not found", {"kind": "Status", "code": 404}])
async def test_an_edge_without_flux_has_no_kustomizations(
    centre: ScriptedCentre, kubernetes: Kubernetes, body: object
) -> None:
    kind = "application/json" if isinstance(body, dict) else "text/plain; charset=utf-8"
    centre.reply = lambda _request: Reply(404, body, {"Content-Type": kind})
    assert await kubernetes.kustomizations("edgewright", "cluster") == []
    assert await kubernetes.secret("edgewright", "s") is None


async def test_a_token_that_was_replaced_is_read_again(
    centre: ScriptedCentre, kubernetes: Kubernetes, token: Path
) -> None:
    centre.reply = lambda request: (
        Reply(200, SECRET) if request.headers["Authorization"] == f"Bearer {token.read_text()}" else Reply(401)
    )
    await kubernetes.secret("edgewright", "s")
    token.write_text("second")
    await kubernetes.secret("edgewright", "s")


async def test_a_token_that_is_not_taken_or_gone_ends_nothing(
    centre: ScriptedCentre, kubernetes: Kubernetes, token: Path
) -> None:
    centre.reply = lambda _request: Reply(401)
    assert isinstance(await failure(kubernetes), Unauthenticated)
    token.unlink()
    assert (await failure(kubernetes)).code == "kubernetes_unknown"
    token.write_text("second")
    centre.reply = lambda _request: Reply(200, SECRET)
    await kubernetes.secret("edgewright", "s")


async def test_another_address_and_authority_of_kubernetes_are_found_without_a_new_start(
    centre: ScriptedCentre, kubernetes: Kubernetes, kubeconfig: Path
) -> None:
    right = kubeconfig.read_text()
    kubeconfig.write_text(right.replace(centre.url, "http://127.0.0.1:9"))
    assert (await failure(kubernetes)).code == "kubernetes_away"
    kubeconfig.write_text(right)
    centre.reply = lambda _request: Reply(200, SECRET)
    await kubernetes.secret("edgewright", "s")


@pytest.mark.parametrize(
    ("owners", "anchor"),
    [
        (None, None),
        ([("ClusterRole", "edgewright-anchor", "a")], "a"),
        ([("Namespace", "edgewright-anchor", "n"), ("ClusterRole", "another", "o")], None),
        ([("ClusterRole", "another", "o"), ("ClusterRole", "edgewright-anchor", "a")], "a"),
    ],
)
async def test_a_secret_tells_the_anchor_that_owns_it(
    centre: ScriptedCentre, kubernetes: Kubernetes, owners: list[tuple[str, str, str]] | None, anchor: str | None
) -> None:
    stated = [{"apiVersion": "v1", "kind": kind, "name": name, "uid": uid} for kind, name, uid in owners or ()]
    metadata = {"name": "s"} if owners is None else {"name": "s", "ownerReferences": stated}
    centre.reply = lambda _request: Reply(200, {**SECRET, "metadata": metadata})
    held = await kubernetes.held_secret("edgewright", "s")
    assert held is not None and held.anchor == anchor


async def test_of_a_sealed_secret_only_values_and_scope_are_read(
    centre: ScriptedCentre, kubernetes: Kubernetes
) -> None:
    annotations = {"sealedsecrets.bitnami.com/namespace-wide": "true", "edgewright.dev/sealed-keys": "{}"}
    found = {
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": {"name": "db", "namespace": "default", "annotations": annotations},
        "spec": {"encryptedData": {"k": "AgB="}, "template": {"data": {"k": "{{ .other }}"}}},
    }
    centre.reply = lambda _request: Reply(200, found, {"Content-Type": "application/json"})
    secret = await kubernetes.sealed_secret("default", "db")
    assert secret is not None
    assert (secret.values, secret.scope) == ({"k": "AgB="}, {"sealedsecrets.bitnami.com/namespace-wide": "true"})
    assert "data" not in secret.to_json()["spec"]["template"]
    assert centre.requests[-1].path == "/apis/bitnami.com/v1alpha1/namespaces/default/sealedsecrets/db"
    centre.reply = lambda _request: Reply(404, {"kind": "Status", "code": 404}, {"Content-Type": "application/json"})
    assert await kubernetes.sealed_secret("default", "db") is None


async def test_a_deployment_gets_a_pod_and_one_that_is_missing_is_named(
    centre: ScriptedCentre, kubernetes: Kubernetes
) -> None:
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 1}}
    centre.reply = lambda _request: Reply(200, scale)
    await kubernetes.scale("edgewright", "d", 1)
    [request] = centre.requests
    path = "/apis/apps/v1/namespaces/edgewright/deployments/d/scale"
    assert (request.method, request.path.partition("?")[0], request.body) == (
        "PATCH",
        path,
        {"spec": {"replicas": 1}},
    )
    missing = Reply(404, {"kind": "Status", "code": 404}, {"Content-Type": "application/json"})
    centre.reply = lambda _request: missing
    with pytest.raises(NotFound) as trouble:
        await kubernetes.scale("edgewright", "d", 1)
    assert trouble.value.code == "deployment_missing"


@pytest.mark.parametrize("allowed", [True, False])
async def test_whether_a_secret_may_be_changed_is_asked_for_without_changing_it(
    centre: ScriptedCentre, kubernetes: Kubernetes, *, allowed: bool
) -> None:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}
    centre.reply = lambda _request: Reply(201, {**review, "status": {"allowed": allowed}})
    assert await kubernetes.may_change_secret("edgewright", "flux-secrets") is allowed
    [request] = centre.requests
    asked = {"namespace": "edgewright", "verb": "patch", "resource": "secrets", "name": "flux-secrets"}
    assert (request.method, request.body["spec"]["resourceAttributes"]) == ("POST", asked)
    centre.reply = lambda _request: Reply(403, {"code": 403})
    with pytest.raises(Forbidden):
        await kubernetes.may_change_secret("edgewright", "flux-secrets")


SEALED = {
    "apiVersion": "bitnami.com/v1alpha1",
    "kind": "SealedSecret",
    "metadata": {
        "name": "db",
        "namespace": "default",
        "generation": 1,
        "annotations": {"edgewright.dev/sealed-keys": '{"password":["f1","2026-01-01T00:00:00Z"]}'},
    },
    "spec": {"encryptedData": {"password": "a", "user": "b"}},
    "status": {
        "observedGeneration": 1,
        "conditions": [{"type": "Synced", "status": "False", "message": "no key could decrypt secret"}],
    },
}


def without_annotation(text: str | None = None) -> dict[str, object]:
    annotations = {} if text is None else {"edgewright.dev/sealed-keys": text}
    return {**SEALED, "metadata": {"name": "db", "namespace": "default", "generation": 1, "annotations": annotations}}


async def test_of_sealed_secrets_those_of_the_centre_are_looked_at_without_their_ciphertext(
    centre: ScriptedCentre, kubernetes: Kubernetes
) -> None:
    odd = [without_annotation(text) for text in ("no JSON", "[]", "{}", '{"password": 5}')]
    items = [SEALED, without_annotation(), *odd]
    centre.reply = lambda _request: Reply(200, {"kind": "SealedSecretList", "metadata": {}, "items": items})
    digest = sealing_digest("default", "db", {"user": "b", "password": "a"})
    refused = (digest, Stage.REFUSED, "no key could decrypt secret")
    first, *others = await kubernetes.openings()
    assert first == Opening("default", "db", *refused, frozenset({"f1", ""}), template_digest({}))
    assert [each.certificates for each in others] == [frozenset({""})] * len(odd), "they are tried"
    centre.reply = lambda _request: Reply(404, b"404 page not found", {"Content-Type": "text/plain; charset=utf-8"})
    assert await kubernetes.openings() == []


async def test_a_kustomization_says_which_of_fluxs_objects_it_has_applied(
    centre: ScriptedCentre, kubernetes: Kubernetes
) -> None:
    ids = [
        "edgewright_helm-charts_source.toolkit.fluxcd.io_GitRepository",
        "edgewright_by-hand_kustomize.toolkit.fluxcd.io_Kustomization",
        "elsewhere_theirs_kustomize.toolkit.fluxcd.io_Kustomization",
        "edgewright_release_helm.toolkit.fluxcd.io_HelmRelease",
        "_edgewright__Namespace",
        "edgewright_password__Secret",
        "_a__b_rbac.authorization.k8s.io_ClusterRole",
        "odd",
        "_.._rbac.authorization.k8s.io_ClusterRole",
        "_a/b__ConfigMap",
    ]
    found: dict[str, Any] = {
        "metadata": {"name": "self-link", "namespace": "edgewright"},
        "status": {"inventory": {"entries": [{"id": each, "v": "v1"} for each in ids]}},
    }
    centre.reply = lambda _request: Reply(200, {"metadata": {}, "items": [found]})
    [kustomized] = await kubernetes.kustomizations("edgewright", "cluster")
    assert kustomized.drivers == {"GitRepository helm-charts", "Kustomization by-hand", "HelmRelease release"}
    assert [str(each) for each in kustomized.unlisted] == [
        *("Kustomization theirs in elsewhere", "Namespace edgewright", "ClusterRole a:b"),
    ]
    found["metadata"]["name"] = "by-hand"
    [another] = await kubernetes.kustomizations("edgewright", "cluster")
    assert (another.drivers, another.unlisted) == (frozenset(), ()), (
        "what an operator has applied is not looked after"
    )


async def test_of_an_object_that_is_asked_for_alone_no_content_comes(
    centre: ScriptedCentre, kubernetes: Kubernetes
) -> None:
    asked: list[tuple[str, str]] = []

    def reply(request: ReceivedRequest) -> Reply:
        asked.append((request.path, request.headers["Accept"]))
        return Reply(200, {"kind": "PartialObjectMetadata"})

    centre.reply = reply
    assert await kubernetes.document("/api/v1/namespaces/a/secrets/b", METADATA, where="secrets") is not None
    assert asked == [("/api/v1/namespaces/a/secrets/b", METADATA)]
    centre.reply = lambda _request: Reply(404)
    assert await kubernetes.document("/api/v1/namespaces/a/secrets/b", METADATA, where="secrets") is None
    for answer in (Reply(503), Reply(302, b"", {"Location": "/elsewhere"}), Reply(200, []), Reply(200, b"<html>")):
        centre.reply = always(answer)
        with pytest.raises(Waiting):
            await kubernetes.document("/api/v1", KINDS, where="secrets")
    centre.reply = lambda _request: Reply(403)
    with pytest.raises(Forbidden):
        await kubernetes.document("/api/v1", KINDS, where="secrets")


async def test_the_api_server_sees_who_asks(centre: ScriptedCentre, kubernetes: Kubernetes) -> None:
    seen: list[str] = []

    def reply(request: ReceivedRequest) -> Reply:
        seen.append(request.headers["User-Agent"])
        return Reply(200, SECRET)

    centre.reply = reply
    await kubernetes.secret("edgewright", "s")
    await kubernetes.version()
    assert seen == [f"edgewright-agent/{__version__}"] * 2
