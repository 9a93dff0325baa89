"""Type, labels and annotations of Secrets on the real API server, through real Flux and the real controller."""

from __future__ import annotations

import base64
import json
import os
import signal
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from edge_cluster.site import KUSTOMIZE
from supervised import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess

    from edge.conftest import Edge
    from edge_cluster.kubelet import Kubelet

pytestmark = [pytest.mark.real, pytest.mark.timeout(900), pytest.mark.usefixtures("flux")]

TLS = "kubernetes.io/tls"
MANAGED = "sealedsecrets.bitnami.com/managed"
"""Annotation that each Secret of the centre's bears."""


def put(edge: Edge, name: str, values: dict[str, str | None], **template: Any) -> None:
    secret = {"namespace": "default", "name": name}
    changes = [
        {**secret, "key": key, **({"delete": True} if value is None else {"value_base64": encoded(value)})}
        for key, value in values.items()
    ]
    body = {"changes": changes, "secrets": [{**secret, **template}] if template else []}
    answer = edge.centre.api("POST", f"/v1/cluster/{edge.uuid}/secret", json=body)
    assert answer.status_code == 200, answer.text
    edge.cluster.fetch_now()


def encoded(value: str) -> str:
    return b64encode(value.encode()).decode()


def found(edge: Edge, name: str) -> dict[str, Any]:
    """Type, labels, annotations and values of a Secret on the edge; empty if it is not there."""
    secret = edge.cluster.find("secret", name)
    if secret is None:
        return {}
    annotations = secret["metadata"].get("annotations", {})
    return {
        "type": secret["type"],
        "labels": secret["metadata"].get("labels", {}),
        "annotations": {each: value for each, value in annotations.items() if each != MANAGED},
        "values": {key: base64.b64decode(value).decode() for key, value in secret["data"].items()},
    }


def test_a_tls_secret_arrives_with_type_and_label_and_keeps_them(edge: Edge) -> None:
    pair: dict[str, str | None] = {"tls.crt": "certificate", "tls.key": "key"}
    put(edge, "web", pair, type=TLS, labels={"app": "web"}, annotations={"example.com/note": "first: a"})
    expected = {"type": TLS, "labels": {"app": "web"}, "annotations": {"example.com/note": "first: a"}}
    eventually(lambda: found(edge, "web") == {**expected, "values": pair})
    put(edge, "web", {"ca.crt": "authority"})
    eventually(lambda: found(edge, "web") == {**expected, "values": {**pair, "ca.crt": "authority"}})
    put(edge, "web", {"tls.crt": "renewed"}, labels={"site": "sheffield", "app": None})
    changed = {**expected, "labels": {"site": "sheffield"}}
    eventually(
        lambda: found(edge, "web") == {**changed, "values": {**pair, "tls.crt": "renewed", "ca.crt": "authority"}}
    )
    put(edge, "web", {"ca.crt": None})
    eventually(lambda: found(edge, "web") == {**changed, "values": {**pair, "tls.crt": "renewed"}})
    eventually(lambda: edge.condition("Synced") == ("True", "UpToDate"))


def test_a_label_arrives_on_the_living_secret_without_its_value(edge: Edge) -> None:
    put(edge, "labelled", {"k": "v", "second": "w"}, labels={"app": "press", "old": "1"}, annotations={"note": "n"})
    eventually(lambda: found(edge, "labelled").get("labels") == {"app": "press", "old": "1"})
    before = edge.cluster.find("secret", "labelled")
    body = {"labels": {"old": None, "site": "leeds"}, "annotations": {"note": None, "example.com/owner": "Line 3"}}
    answer = edge.centre.api("PATCH", f"/v1/cluster/{edge.uuid}/secret/default/labelled", json=body)
    assert answer.status_code == 204, answer.text
    edge.cluster.fetch_now()
    changed = {"type": "Opaque", "labels": {"app": "press", "site": "leeds"}}
    expected = {**changed, "annotations": {"example.com/owner": "Line 3"}, "values": {"k": "v", "second": "w"}}
    eventually(lambda: found(edge, "labelled") == expected)
    after = edge.cluster.find("secret", "labelled")
    assert before is not None
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    eventually(lambda: edge.condition("Synced") == ("True", "UpToDate"))


def test_an_annotation_has_the_controller_open_what_it_refused(edge: Edge) -> None:
    """What stood in the way is gone, and nobody needs to know the value any more."""
    edge.cluster.kubectl("create", "secret", "generic", "taken", "--from-literal=k=theirs")
    put(edge, "taken", {"k": "ours"})
    eventually(lambda: state(edge, "taken") == "refused")
    edge.cluster.kubectl("delete", "secret", "taken")
    annotated = change(edge, "annotate", "taken", "example.com/again=1")
    assert annotated.returncode == 0, annotated.stderr
    assert found(edge, "taken")["values"] == {"k": "ours"}
    assert state(edge, "taken") == "opened"


def test_label_and_annotate_wait_until_the_living_secret_has_changed(edge: Edge, flux: Kubelet) -> None:
    put(edge, "waited", {"k": "v"}, labels={"old": "1"})
    eventually(lambda: state(edge, "waited") == "opened")
    labelled = change(edge, "label", "waited", "app=press", "old-")
    assert labelled.returncode == 0, labelled.stderr
    assert "press-shop has changed default/waited after " in labelled.stdout
    assert found(edge, "waited")["labels"] == {"app": "press"}, "it is there when the command has ended"
    annotated = change(edge, "annotate", "waited", "example.com/owner=Line 3")
    assert annotated.returncode == 0, annotated.stderr
    assert found(edge, "waited")["annotations"] == {"example.com/owner": "Line 3"}
    with flux.paused(KUSTOMIZE):
        late = change(edge, "label", "waited", "app=mill", seconds=8)
    assert late.returncode == 5, late.stdout + late.stderr
    assert "press-shop has not changed default/waited after 8 s: committed, and not on the edge yet" in late.stderr
    eventually(lambda: found(edge, "waited")["labels"] == {"app": "mill"})
    eventually(lambda: state(edge, "waited") == "opened")


def change(edge: Edge, command: str, name: str, *changes: str, seconds: int = 60) -> CompletedProcess[str]:
    """Changes labels or annotations, and waits; Flux is asked to fetch meanwhile."""
    with ThreadPoolExecutor(1) as desk:
        words = ("secret", command, "press-shop", f"default/{name}", *changes, "--wait", "--timeout", f"{seconds}s")
        typed = desk.submit(edge.centre.command, *words)
        while not wait([typed], timeout=1).done:
            edge.cluster.fetch_now()
        return typed.result()


def state(edge: Edge, name: str) -> str:
    """How far a Secret is on the edge, as the centre tells."""
    listed = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/secret", params={"name": name}).json()
    [said] = {each["edge_state"] for each in listed["items"]}
    return str(said)


def refusal(edge: Edge, name: str) -> str:
    """Why the edge's controller refuses it; empty: it does not."""
    listed = edge.centre.api("GET", f"/v1/cluster/{edge.uuid}/secret", params={"name": name}).json()
    return listed["items"][0]["refusal"] or ""


def test_a_docker_config_arrives_with_its_type(edge: Edge) -> None:
    config = json.dumps({"auths": {"registry.example.com": {"auth": encoded("edge:password")}}})
    path = f"/v1/cluster/{edge.uuid}/secret/default/pull/.dockerconfigjson"
    query = {"type": "kubernetes.io/dockerconfigjson", "label": "app=press"}
    answer = edge.centre.api("PUT", path, params=query, content=config)
    assert answer.status_code == 204, answer.text
    edge.cluster.fetch_now()
    eventually(lambda: found(edge, "pull").get("values") == {".dockerconfigjson": config})
    assert found(edge, "pull")["type"] == "kubernetes.io/dockerconfigjson"
    assert found(edge, "pull")["labels"] == {"app": "press"}


def test_another_type_waits_until_the_edge_has_applied_the_deletion(edge: Edge) -> None:
    """Else the controller fails to change it: the edge would keep the old value, and nobody would see."""
    put(edge, "moved", {"ssh-privatekey": "one"})
    eventually(lambda: found(edge, "moved").get("type") == "Opaque")
    eventually(lambda: edge.condition("Synced") == ("True", "UpToDate"))
    secret = {"namespace": "default", "name": "moved"}
    body = {
        "changes": [{**secret, "key": "ssh-privatekey", "value_base64": encoded("two")}],
        "secrets": [{**secret, "type": "kubernetes.io/ssh-auth"}],
    }

    def outcome() -> tuple[int, str]:
        answer = edge.centre.api("POST", f"/v1/cluster/{edge.uuid}/secret", json=body)
        return answer.status_code, answer.json().get("code", "")

    assert outcome() == (409, "secret_type_immutable")
    gone = {"changes": [{**secret, "key": "ssh-privatekey", "delete": True}]}
    assert edge.centre.api("POST", f"/v1/cluster/{edge.uuid}/secret", json=gone).status_code == 200
    assert outcome() == (409, "secret_type_immutable"), "the edge has it still"
    with garbage_left(edge):
        edge.cluster.fetch_now()
        eventually(lambda: outcome() == (200, ""))
        edge.cluster.fetch_now()
        eventually(lambda: "immutable" in refusal(edge, "moved"))
    eventually(lambda: found(edge, "moved").get("values") == {"ssh-privatekey": "two"})
    assert found(edge, "moved")["type"] == "kubernetes.io/ssh-auth"
    eventually(lambda: state(edge, "moved") == "opened")


def test_a_secret_that_is_deleted_and_set_again_at_once_takes_over_what_is_left_of_it(edge: Edge) -> None:
    """Whether Kubernetes has collected the old Secret by then or not, nobody has to touch it again."""
    for name in ("again", "gone"):
        put(edge, name, {"k": "one"})
    eventually(lambda: state(edge, "again") == state(edge, "gone") == "opened")
    with garbage_left(edge):
        for name in ("again", "gone"):
            put(edge, name, {"k": None})
        eventually(lambda: edge.cluster.find("sealedsecret", "again") is None)
        put(edge, "again", {"k": "two"}, labels={"app": "press"})
        eventually(lambda: state(edge, "again") in {"opened", "refused"})
        assert (state(edge, "again"), refusal(edge, "again")) == ("opened", "")
        assert found(edge, "again")["values"] == {"k": "two"}
        assert found(edge, "gone")["values"] == {"k": "one"}, "nothing is collected yet"
    eventually(lambda: found(edge, "gone") == {})
    expected = {"type": "Opaque", "labels": {"app": "press"}, "annotations": {}, "values": {"k": "two"}}
    eventually(lambda: (found(edge, "again"), state(edge, "again")) == (expected, "opened"))


@contextmanager
def garbage_left(edge: Edge) -> Iterator[None]:
    """The garbage collector stands still until the end of the context."""
    collector = edge.cluster.supervisor.pid_of("kube-controller-manager")
    assert collector is not None
    os.kill(collector, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(collector, signal.SIGCONT)
