"""No secret of an edge is anywhere but in the Secrets that are made for it: neither there nor at the centre."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import httpx
import pytest
from edge_cluster.patience import eventually
from edge_cluster.stores import kept_in
from loopback import PLAIN
from markers import MarkerSearch, Place, files_below, histories_at, marked_text, stores, token_markers
from process_watch import ProcessWatch, record_program

if TYPE_CHECKING:
    from pathlib import Path

    from edge_cluster.attaching import Attaching
    from edge_cluster.line import BootstrapLine
    from markers import Marker

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

HELD = {
    f"/registry/secrets/{name}" for name in ("edgewright/flux-secrets", "edgewright/edgewright-agent", "default/db")
}


def test_secrets_of_an_attached_edge_are_where_they_belong_and_nowhere_else(
    attaching: Attaching, tmp_path: Path
) -> None:
    value = marked_text("a value")
    with ProcessWatch() as watch:
        uuid, line, heard = attach(attaching, tmp_path)
        markers = [*token_markers("the registration token", line.token), *credentials(attaching, "first"), value]
        put(attaching, uuid, value)
        rotate(attaching, uuid)
        markers += credentials(attaching, "second")
        heard += again_and_looked_at(attaching, uuid, line)
    search = MarkerSearch(markers)

    edge = list(kept_in(attaching.factory.cluster))
    found = search.through(edge)
    assert {each.place for each in found} == HELD, found
    assert {each.marker for each in found} >= {"second flux", "second agent", "a value"}
    assert not [each for each in found if each.marker.startswith("the registration token")]

    everything = [
        *heard,
        *watch.places(),
        *files_below(attaching.factory.cluster.folder / "logs"),
        *files_below(tmp_path),
        *at_the_centre(attaching),
    ]
    names = {name for name, _ in everything}
    assert {"edgewright-agent.log", "kube-apiserver.log", "bin/kubectl.calls", "bin/curl.calls"} <= names
    assert f"workflow cluster-{uuid}" in names
    assert [name for name in names if name.startswith("arguments of kube-apiserver")]
    assert [str(each) for each in search.through(everything)] == []
    plants_are_found(attaching)
    take_back(attaching, uuid)


def attach(attaching: Attaching, folder: Path) -> tuple[str, BootstrapLine, list[Place]]:
    """By the script, which no command line fetched: that one has the token in it, and lives but a moment."""
    cluster = attaching.factory.cluster
    uuid = attaching.commission("discreet")
    line = attaching.line(uuid)
    (folder / "bin" / "kubectl").unlink()
    record_program("kubectl", folder / "bin", real=cluster.kubectl.program)
    record_program("curl", folder / "bin")
    script = httpx.get(line.url, **PLAIN, timeout=60).text
    done = line.type("sh -s -- --yes", given=script)
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(lambda: attaching.is_available(uuid))
    return uuid, line, [("said by the script", (done.stdout + done.stderr).encode())]


def put(attaching: Attaching, uuid: str, value: Marker) -> None:
    attaching.factory.install_chart()
    eventually(lambda: attaching.condition(uuid, "SealingKeyCurrent")[0] == "True")
    path = f"/v1/cluster/{uuid}/secret/default/db/password"
    assert attaching.desk.centre.api("PUT", path, content=value.value).status_code == 204
    attaching.fetch_now()

    def is_opened() -> bool:
        found = attaching.factory.cluster.find("secret", "db")
        return found is not None and base64.b64decode(found["data"]["password"]) == value.value

    eventually(is_opened)


def take_back(attaching: Attaching, uuid: str) -> None:
    """For the next test: what Flux has applied would stay."""
    assert attaching.desk.centre.api("DELETE", f"/v1/cluster/{uuid}/secret/default/db/password").status_code == 204
    attaching.fetch_now()
    eventually(lambda: attaching.factory.cluster.find("secret", "db") is None)


def rotate(attaching: Attaching, uuid: str) -> None:
    """Both credentials, until each successor was used."""
    asked = attaching.desk.centre.api("POST", f"/v1/cluster/{uuid}/credential/rotate")
    assert asked.status_code == 202, asked.text
    eventually(lambda: "agent" in attaching.rotated(uuid))
    attaching.fetch_now()
    eventually(lambda: attaching.rotated(uuid) == ["agent", "flux"])


def credentials(attaching: Attaching, which: str) -> list[Marker]:
    markers = []
    for secret, role in (("flux-secrets", "flux"), ("edgewright-agent", "agent")):
        password = attaching.password(secret)
        assert password
        markers += token_markers(f"{which} {role}", password)
    return markers


def again_and_looked_at(attaching: Attaching, uuid: str, line: BootstrapLine) -> list[Place]:
    """The refusal of a line that was used, and all that people are shown of the cluster."""
    refusal = httpx.get(line.url, **PLAIN)
    assert refusal.status_code == 403
    shown = [attaching.desk.edgewright("cluster", view, "discreet") for view in ("show", "timeline")]
    api = json.dumps(attaching.desk.json(f"/v1/cluster/{uuid}"))
    return [("what people are shown", "\n".join([refusal.text, *shown, api]).encode())]


def at_the_centre(attaching: Attaching) -> list[Place]:
    """What it keeps; it rests meanwhile, so that no file goes while it is looked at."""
    centre = attaching.desk.centre
    histories = histories_at(centre.endpoints()["temporal"])
    centre.interrupt()
    try:
        return [*histories, *stores(centre.home)]
    finally:
        centre.up()


def plants_are_found(attaching: Attaching) -> None:
    """The search finds what lies on an edge: in an object, and in what an agent logs."""
    planted = marked_text("planted")
    cluster, text = attaching.factory.cluster, planted.value.decode()
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "planted"}, "data": {"text": text}}
    cluster.kubectl("create", "--filename", "-", given=json.dumps(manifest))
    try:
        log = cluster.folder / "logs" / "planted.log"
        log.write_text(json.dumps({"event": "planted", "detail": text}))
        places = [*kept_in(cluster), *files_below(cluster.folder / "logs")]
        found = {each.place for each in MarkerSearch([planted]).through(places)}
        assert found == {"/registry/configmaps/default/planted", "planted.log"}
        log.unlink()
    finally:
        cluster.kubectl("delete", "configmap", "planted")
