"""The story of an edge, told by its user: from the pasted line to the day on which it is let go.

Helm's part is played by the test: see ``Site.install_chart``.
"""

from __future__ import annotations

import base64
import os
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from edge_cluster.contents import Contents, contents
from edge_cluster.patience import PATIENCE, eventually
from edge_cluster.release import release
from edge_cluster.site import AGENT, DETACHER, KUSTOMIZE, Site
from edge_cluster.terminal import paste
from flux_file import sha256_of
from go_programs import FLUX_RELEASE
from loopback import PLAIN

if TYPE_CHECKING:
    from pathlib import Path

    from desk import Desk

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

NAME, OTHER = "press-shop", "paint-shop"
LEASE_SECONDS = 15
"""The shortest that heartbeats every 5 s keep: the story waits for its end."""
LATE_SECONDS = 30
"""That a sweep may take to notice, on a machine that has more to do."""
BY_HAND = """\
apiVersion: v1
kind: Namespace
metadata: {name: press}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: recipe, namespace: press}
data: {temperature: "180"}
"""


def test_an_edge_is_attached_used_unplugged_and_let_go(desk: Desk, factory: Site, tmp_path: Path) -> None:
    before = without_the_chart(contents(factory.cluster))  # another story may have brought it
    give_the_centre_flux(desk)
    commission(desk, NAME)

    pressed = time.monotonic()
    paste_the_line(desk, factory, tmp_path)
    see_it_joined_and_available(desk, pressed)
    factory.install_chart()
    push_a_manifest(desk, factory)
    put_a_secret(desk, factory)
    read_what_happened(desk)

    unplug_it_and_plug_it_in_again(desk, factory)
    refuse_the_line_of_another_cluster(desk, factory, tmp_path)

    agent = credential(factory)
    delete_it(desk, factory)
    nothing_is_left(desk, factory, before, agent)

    attach_another_one_and_uninstall_it(desk, factory, tmp_path)
    assert without_the_chart(contents(factory.cluster)) == before


def give_the_centre_flux(desk: Desk) -> None:
    """Once, from the file of a release."""
    file = desk.folder / "install.yaml"
    file.write_bytes(release())
    said = desk.edgewright("flux", "import", str(file), "--sha256", sha256_of(file.read_bytes()))
    assert FLUX_RELEASE in said


def commission(desk: Desk, name: str) -> None:
    """Everything central is there; the edge may come."""
    desk.edgewright("cluster", "create", name, "--wait")
    changed = desk.curl("PATCH", f"/v1/cluster/{desk.uuid_of(name)}", {"lease_seconds": LEASE_SECONDS})
    assert changed.code == 200, changed


def paste_the_line(desk: Desk, factory: Site, folder: Path) -> None:
    """In a terminal whose kubectl points at the Kubernetes cluster. A few plain lines say what it does."""
    line = desk.edgewright("cluster", "bootstrap", NAME).strip()
    assert re.fullmatch(r"curl -sSL 'http://\S+/bootstrap\?token=\S+' \| sh -", line)
    code, shown = paste(line, answer="y", folder=folder, environment=terminal(factory, folder))
    assert code == 0, shown
    assert "1 node) to http://" in shown and f"as '{NAME}'? [y/N] " in shown
    said = [words.partition("edgewright: ")[2] for words in shown.splitlines() if "edgewright: " in words]
    assert f"Registered; the centre has accepted this cluster as '{NAME}'." in said
    assert f"Flux {FLUX_RELEASE} is installed in namespace 'flux-system'." in said
    assert said[-1].startswith(f"Done: '{NAME}' is attached to http://")
    assert len(said) < 15, shown


def see_it_joined_and_available(desk: Desk, pressed: float) -> None:
    """Without another hand, and its hosts are listed."""
    wait_for(desk, "available")
    print(f"{time.monotonic() - pressed:.0f} s from Enter to Available")  # noqa: T201 - a figure
    assert condition(desk, "Joined")["status"] == "True"
    eventually(lambda: "node-1" in page(desk).partition("\nHosts")[2])


def push_a_manifest(desk: Desk, factory: Site) -> None:
    """What is pushed to ``by-hand/`` is on the edge, and the centre knows."""
    clone = desk.folder / "clone"
    cloned = desk.git(
        "clone", "--quiet", desk.json(f"/v1/cluster/{desk.uuid_of(NAME)}")["links"]["repository"], str(clone)
    )
    assert cloned.code == 0, cloned
    (clone / "by-hand" / "press.yaml").write_text(BY_HAND)
    author = ("-c", "user.name=desk", "-c", "user.email=desk@localhost")
    for words in (("add", "."), (*author, "commit", "--quiet", "--message", "The press"), ("push", "--quiet")):
        done = desk.git("-C", str(clone), *words)
        assert done.code == 0, done
    eventually(lambda: factory.cluster.find("configmap", "recipe", namespace="press"))
    wait_for(desk, "synced")


def put_a_secret(desk: Desk, factory: Site, value: str = "s3cr3t") -> None:
    """It is a Kubernetes Secret in its namespace, opened by the edge's own controller."""
    eventually(lambda: condition(desk, "SealingKeyCurrent")["status"] == "True")
    desk.edgewright("secret", "put", NAME, "press/db", "password", "-", stdin=value)
    eventually(lambda: secret_on(factory) == value)
    wait_for(desk, "synced")


def read_what_happened(desk: Desk) -> None:
    """On the timeline, and in Temporal's own words."""
    told = desk.edgewright("cluster", "timeline", NAME)
    for words in ("was created", "AwaitingBootstrap", "registered", "Active", "press/db"):
        assert words in told, told
    details = desk.temporal("workflow", "metadata", "--workflow-id", f"cluster-{desk.uuid_of(NAME)}")
    assert NAME in details and "Active" in details and "Available" in details, details


def unplug_it_and_plug_it_in_again(desk: Desk, factory: Site) -> None:
    """Available is Unknown within the lease, with since when. What was wanted meanwhile is there afterwards."""
    with factory.kubelet.unplugged():
        at = datetime.now(UTC)
        eventually(lambda: condition(desk, "Available")["status"] == "Unknown")
        told = condition(desk, "Available")
        assert told["reason"] == "LeaseExpired"
        late = (datetime.fromisoformat(told["since"]) - at).total_seconds() - LEASE_SECONDS
        assert -LEASE_SECONDS <= late <= LATE_SECONDS
        shown = page(desk)
        assert re.search(
            r"Available +Unknown +\S+( ago)? +LeaseExpired: No heartbeat since \d{4}-\d\d-\d\d", shown
        ), shown
        desk.edgewright("secret", "put", NAME, "press/db", "password", "-", stdin="changed meanwhile")
    wait_for(desk, "available")
    eventually(lambda: secret_on(factory) == "changed meanwhile")


def refuse_the_line_of_another_cluster(desk: Desk, factory: Site, folder: Path) -> None:
    """In words, and nothing is different afterwards."""
    commission(desk, OTHER)
    line = desk.edgewright("cluster", "bootstrap", OTHER).strip()
    code, shown = paste(line, answer="y", folder=folder, environment=terminal(factory, folder))
    assert code == 6, shown
    assert f"is attached to Edgewright already, as cluster {desk.uuid_of(NAME)}" in " ".join(shown.split())
    assert "Nothing was changed." in shown
    assert condition(desk, "Available")["status"] == "True"
    assert condition(desk, "Joined", of=OTHER)["status"] != "True"


def delete_it(desk: Desk, factory: Site) -> None:
    """At the centre, and nobody has to go to the edge: its workloads go, then all that the line has brought."""
    desk.edgewright("cluster", "delete", NAME, "--yes", "--wait", "--timeout", f"{PATIENCE:.0f}s")
    eventually(lambda: not any(factory.kubelet.runs(each) for each in (AGENT, DETACHER, KUSTOMIZE)))
    assert secret_on(factory) is None


def nothing_is_left(desk: Desk, factory: Site, before: Contents, agent: Credential) -> None:
    """The edge is as it was, the centre knows the cluster no more, its credential opens nothing; the story stays."""
    eventually(lambda: without_the_chart(contents(factory.cluster)) == before)
    assert desk.is_gone(agent.uuid)
    assert NAME not in desk.names()
    for method, path in (
        ("PUT", "/v1/agent/status"),
        ("POST", "/v1/agent/heartbeat"),
        ("GET", f"/uuid/{agent.uuid}/info/refs?service=git-upload-pack"),
    ):
        assert agent.ask(desk, method, path).status_code == 401
    told = desk.edgewright("cluster", "timeline", agent.uuid)
    for words in ("was created", "registered", "No heartbeat from", "have resumed", "was deleted"):
        assert words in told, told


def attach_another_one_and_uninstall_it(desk: Desk, factory: Site, folder: Path) -> None:
    """Where one was let go another may come, and whoever is there can take it off: what Flux has applied stays."""
    line = desk.edgewright("cluster", "bootstrap", OTHER).strip()
    code, shown = paste(line, answer="y", folder=folder, environment=terminal(factory, folder))
    assert code == 0, shown
    eventually(lambda: condition(desk, "Available", of=OTHER)["status"] == "True")
    fresh = desk.edgewright("cluster", "bootstrap", OTHER).strip().removesuffix("-") + "-s -- --uninstall"
    code, shown = paste(fresh, answer="y", folder=folder, environment=terminal(factory, folder))
    assert code == 0, shown
    assert "What Flux has applied stays and runs on." in shown
    eventually(lambda: not factory.kubelet.runs(AGENT))


@dataclass(frozen=True)
class Credential:
    """The agent's, as it lies on the edge."""

    uuid: str
    password: str

    def ask(self, desk: Desk, method: str, path: str) -> httpx.Response:
        url = f"{desk.gateway}{path}"
        return httpx.request(method, url, auth=(self.uuid, self.password), json={}, **PLAIN)


def credential(factory: Site) -> Credential:
    data = factory.cluster.find("secret", "edgewright-agent", namespace="edgewright")["data"]
    return Credential(*(base64.b64decode(data[key]).decode() for key in ("uuid", "password")))


def secret_on(factory: Site) -> str | None:
    """What the controller has made of the sealed value."""
    found = factory.cluster.find("secret", "db", namespace="press")
    return base64.b64decode(found["data"]["password"]).decode() if found else None


def condition(desk: Desk, name: str, *, of: str = NAME) -> dict[str, Any]:
    shown = desk.json(f"/v1/cluster/{desk.uuid_of(of)}")
    [found] = [each for each in shown["conditions"] if each["type"] == name]
    return dict(found)


def wait_for(desk: Desk, what: str) -> None:
    desk.edgewright("cluster", "wait", NAME, "--for", what, "--timeout", f"{PATIENCE:.0f}s")


def page(desk: Desk) -> str:
    return desk.edgewright("cluster", "show", NAME)


def without_the_chart(found: Contents) -> Contents:
    """Helm would take it away; see ``Site.install_chart``."""
    marks = ("sealed-secrets", "sealedsecrets", "secrets-unsealer")
    return {key: one for key, one in found.items() if not any(mark in key for mark in marks)}


def terminal(factory: Site, folder: Path) -> dict[str, str]:
    """Variables of a shell whose kubectl points at the Kubernetes cluster."""
    tools = folder / "bin"
    if not tools.is_dir():
        tools.mkdir()
        (tools / "kubectl").symlink_to(factory.cluster.kubectl.program)
    return {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "KUBECONFIG": str(factory.cluster.kubectl.config),
        "NO_PROXY": "127.0.0.1",
    }
