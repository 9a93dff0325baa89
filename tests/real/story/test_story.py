"""The story of a cluster, told by its user: real server, real git, real kubeseal, real Temporal CLI."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from desk import CONFIGURATION, EDGE_CLUSTER, EDGE_STATUS, SETUP_STATUS, Desk
from edge_machine import EdgeMachine
from sealing_keys import certificate_pem, private_key
from supervised import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(1900)]  # the first test may build kubeseal

FRESH_LINE = (
    "Get a fresh line: edgewright cluster bootstrap NAME."
    " To take Edgewright off an edge: edgewright cluster uninstall-script."
)


def test_a_cluster_is_taken_through_its_whole_life(desk: Desk, tmp_path: Path) -> None:
    assert desk.centre.is_ready("demo")
    said = desk.edgewright("cluster", "create", "press-shop", "--wait")
    assert re.search(r"press-shop is ready after \d", said)
    desk.edgewright("cluster", "create", "line-2", "--wait")
    uuid, other = desk.uuid_of("press-shop"), desk.uuid_of("line-2")

    line = printed_line(desk, "press-shop")
    read_the_script(desk, line)
    refuse_lines_that_must_not_work(desk, line, uuid, other, tmp_path)
    clone = clone_the_driving_repository(desk, "press-shop")
    report_by_hand(desk, uuid)
    put_a_secret(desk, clone)

    edge = attach(desk, uuid, tmp_path)
    let_the_edge_read(desk, uuid, edge)
    refuse_a_spent_line(desk, edge, tmp_path)
    recreate(desk, uuid, clone)
    look_at_the_timeline(desk, "press-shop", ["was created", "AwaitingBootstrap", "registered", "Active"])

    delete_with_goodbye(desk, "press-shop", uuid, edge)
    desk.temporal("workflow", "signal", "--workflow-id", f"cluster-{other}", "--name", "delete")
    eventually(lambda: desk.is_gone(other), seconds=60)
    stay_gone(desk, {"press-shop", "line-2"}, {uuid, other})
    look_at_the_timeline(desk, uuid, ["was created", "registered", "Detaching", "deleted"])
    look_at_the_timeline(desk, other, ["was created", "temporal", "deleted"])


def test_config_store_entries_alone_drive_a_cluster(desk: Desk) -> None:
    uuid, name = str(uuid4()), "entry-only"
    entry, status = f"/v1/app/{CONFIGURATION}/object/{uuid}", f"/v1/app/{SETUP_STATUS}/object/{uuid}"
    assert desk.curl("POST", "/v1/object", {"class": EDGE_CLUSTER, "uuid": uuid}).code == 201
    assert desk.curl("PUT", entry, {"name": name, "namespace": "edgewright"}).code == 201
    eventually(lambda: is_ready_entry(desk, status), seconds=60)
    before = desk.git("ls-remote", f"{desk.gateway}/git/cluster/{name}", "main")
    assert before.code == 0, before

    assert desk.curl("DELETE", entry).code == 204
    eventually(lambda: desk.curl("GET", status).code == 404, seconds=60)
    assert desk.curl("GET", f"/v1/cluster/{uuid}/status").code == 404
    desk.await_sweeps(2)
    assert desk.curl("GET", status).code == 404
    assert desk.git("ls-remote", f"{desk.gateway}/git/cluster/{name}", "main").out == before.out

    other_name = desk.curl("PUT", entry, {"name": "entry-other", "namespace": "edgewright"})
    assert (other_name.code, json.loads(other_name.out)["code"]) == (409, "name_immutable")
    assert desk.curl("PUT", entry, {"name": name, "namespace": "edgewright"}).code in {201, 204}
    eventually(lambda: is_ready_entry(desk, status), seconds=60)
    assert desk.curl("DELETE", f"/v1/cluster/{uuid}").code == 202
    eventually(lambda: desk.is_gone(uuid), seconds=60)


def test_nothing_is_lost_when_everything_is_killed_half_way(desk: Desk) -> None:
    desk.edgewright("cluster", "create", "before-the-kill", "--wait")
    before = desk.stored()
    doomed = desk.uuid_of("before-the-kill")
    created = desk.curl("POST", "/v1/cluster", {"name": "half-way"})
    assert created.code == 201, created
    assert desk.curl("DELETE", f"/v1/cluster/{doomed}").code == 202
    desk.centre.kill_everything()

    desk.centre.up()
    eventually(lambda: desk.centre.is_ready("half-way"), seconds=60)
    eventually(lambda: desk.is_gone(doomed), seconds=60)
    after = desk.stored()
    untouched = {name: refs for name, refs in before["heads"].items() if not name.startswith(doomed)}
    assert {name: after["heads"][name] for name in untouched} == untouched
    assert [name for name in after["heads"] if name.startswith(doomed)], "the repository is in the archive"
    assert after["token"] == before["token"]
    assert desk.centre.is_ready("demo")


def test_lost_file_of_temporal_changes_nothing_else(desk: Desk) -> None:
    desk.edgewright("cluster", "create", "kept", "--wait")
    uuid = desk.uuid_of("kept")
    report_by_hand(desk, uuid)
    desk.edgewright("secret", "put", "kept", "default/db", "password", "-", stdin="s3cr3t")
    desk.await_sweeps(1)
    running, before = desk.running_workflows(), desk.stored()
    shown = {name: desk.json(f"/v1/cluster/{desk.uuid_of(name)}") for name in desk.names()}
    assert desk.centre.interrupt() == 0
    for path in desk.centre.home.glob("temporal.db*"):
        path.unlink()

    desk.centre.up()
    eventually(lambda: desk.running_workflows() == running, seconds=60)
    desk.await_sweeps(2)
    assert desk.stored() == before
    for name, document in shown.items():
        again = desk.json(f"/v1/cluster/{document['uuid']}")
        kept = ("phase", "ready", "generation", "desired", "revisions", "certificate", "hosts", "values")
        assert {field: again[field] for field in kept} == {field: document[field] for field in kept}, name
    desk.edgewright("secret", "put", "kept", "default/db", "password", "-", stdin="newer")


def printed_line(desk: Desk, name: str) -> str:
    """The bootstrap line, exactly as it is printed; its expiry and a warning stand beside it."""
    done = desk.run(str(Path(__file__).parents[3] / "bin" / "edgewright"), "cluster", "bootstrap", name)
    assert done.code == 0, done
    assert re.fullmatch(r"curl -sSL 'http://127\.0\.0\.1:\d+/v1/cluster/[^']+' \| sh -\n", done.out), done.out
    assert "Treat it like a password" in done.err
    assert "is only reachable from this machine" in " ".join(done.err.split())
    return done.out.strip()


def read_the_script(desk: Desk, line: str) -> None:
    """Reading it again and again spends nothing."""
    [url] = re.findall("'(.*)'", line)
    first, second = (desk.run("curl", "-sSL", url).out for _ in range(2))
    assert first == second
    assert first.startswith("#!/bin/sh\n")
    assert first.rstrip().endswith('{ main "$@"; }')


def refuse_lines_that_must_not_work(desk: Desk, line: str, uuid: str, other: str, folder: Path) -> None:
    """Wrong, foreign, expired and replaced ones."""
    edge = EdgeMachine(folder / "refused", uid=str(uuid4()))
    expired = printed_line(desk, "line-2")
    expire_tokens(desk, other)
    end = "' | sh -"
    wrong = line.removesuffix(end)[:-1] + ("B" if line.removesuffix(end).endswith("A") else "A") + end
    for said, typed in (
        ("This registration token is not valid.", wrong),
        ("This registration token belongs to another cluster.", line.replace(uuid, other)),
        ("This registration token has expired.", expired),
    ):
        refused(edge, typed, said)
    replaced = line
    assert printed_line(desk, "press-shop") != replaced
    refused(edge, replaced, "This registration token was replaced by a newer one.")


def refused(edge: EdgeMachine, line: str, sentence: str) -> None:
    """The line ends with exit code 1 and one sentence on stderr, and leaves the cluster alone."""
    before = edge.objects
    done = edge.type(line, EDGEWRIGHT_YES="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"edgewright: {sentence} {FRESH_LINE}\n"
    assert edge.objects == before


def expire_tokens(desk: Desk, uuid: str) -> None:
    """An hour passes for the tokens of one cluster."""
    with closing(sqlite3.connect(desk.centre.home / "edgewright.db", timeout=30)) as database, database:
        changed = database.execute(
            "UPDATE registration_tokens SET expires_at = '2020-01-01 00:00:00.000000' WHERE cluster = ?",
            [uuid.replace("-", "")],
        )
        assert changed.rowcount >= 1


def clone_the_driving_repository(desk: Desk, name: str) -> Path:
    done = desk.git("clone", "--quiet", f"{desk.gateway}/git/cluster/{name}")
    assert done.code == 0, done
    clone = desk.folder / name
    assert (clone / "edo" / "cluster" / "self-link.yaml").is_file()
    return clone


def edge_status() -> dict[str, Any]:
    """As ACS Edge Sync sends it."""
    now = datetime.now(UTC)
    certificate = certificate_pem(
        private_key(), not_before=now - timedelta(days=1), not_after=now + timedelta(days=3650)
    )
    host = {"hostname": "press-1", "arch": "amd64", "k8s_version": "v1.31.2+k3s1", "control_plane": True}
    return {"hosts": [host], "kubeseal_cert": certificate}


def report_by_hand(desk: Desk, uuid: str) -> None:
    assert desk.curl("PUT", f"/v1/app/{EDGE_STATUS}/object/{uuid}", edge_status()).code in {201, 204}
    shown = desk.json(f"/v1/cluster/{uuid}")
    assert [host["hostname"] for host in shown["hosts"]] == ["press-1"]
    assert shown["certificate"]["fingerprint"]


def put_a_secret(desk: Desk, clone: Path) -> None:
    """204 means that it is in the repository: no waiting here."""
    said = desk.edgewright("secret", "put", "press-shop", "default/db", "password", "-", stdin="s3cr3t")
    [commit] = re.findall(r"\b[0-9a-f]{40}\b", said)
    assert desk.git("-C", str(clone), "pull", "--quiet").code == 0
    assert desk.git("-C", str(clone), "rev-parse", "HEAD").out.strip() == commit
    document = (clone / "edo" / "secrets" / "default" / "db.yaml").read_text()
    assert "kind: SealedSecret" in document
    assert "s3cr3t" not in desk.git("-C", str(clone), "log", "-p").out
    assert desk.unsealed(document) == {"password": b"s3cr3t"}


def attach(desk: Desk, uuid: str, folder: Path) -> EdgeMachine:
    """The printed line on an edge; its agent is heard."""
    edge = EdgeMachine(folder / "edge", uid=str(uuid4()))
    line = printed_line(desk, "press-shop")
    (folder / "line").write_text(line)
    done = edge.type(line, EDGEWRIGHT_YES="1")
    assert done.returncode == 0, done.stderr
    assert "the centre has accepted this cluster as 'press-shop'" in done.stdout
    assert "GitRepository/edgewright/self-link" in edge.objects
    beat = desk.curl("POST", "/v1/agent/heartbeat", {}, user=(uuid, edge.password("edgewright-agent")))
    assert (beat.code, json.loads(beat.out)["state"]) == (200, "active"), beat
    status = desk.curl("PUT", "/v1/agent/status", edge_status(), user=(uuid, edge.password("edgewright-agent")))
    assert status.code == 204, status
    desk.edgewright("cluster", "wait", "press-shop", "--for", "available", "--timeout", "60s")
    return edge


def let_the_edge_read(desk: Desk, uuid: str, edge: EdgeMachine) -> None:
    """Flux reads its own repository and the shared charts, and is refused any other."""
    flux = edge.password("flux-secrets")
    for number, path in enumerate((f"uuid/{uuid}", "git/cluster/press-shop", "git/shared/helm-charts")):
        clone = desk.git("clone", "--quiet", f"{desk.gateway}/{path}", f"flux-{number}", user=uuid, password=flux)
        assert clone.code == 0, clone
    assert (desk.folder / "flux-2" / "edge-cluster" / "Chart.yaml").is_file()
    foreign = desk.git("ls-remote", f"{desk.gateway}/git/cluster/line-2", user=uuid, password=flux)
    assert foreign.code != 0
    assert "403" in foreign.err
    pushed = desk.curl("GET", "/v1/cluster", user=(uuid, flux))
    assert pushed.code == 403


def refuse_a_spent_line(desk: Desk, edge: EdgeMachine, folder: Path) -> None:
    """The first use of the credential has spent the token, for this edge and for any other."""
    line = (folder / "line").read_text()
    for machine in (edge, EdgeMachine(folder / "latecomer", uid=str(uuid4()))):
        refused(machine, line, "This registration token has been used: the cluster is attached.")


def recreate(desk: Desk, uuid: str, clone: Path) -> None:
    """On the same repository; the secrets stay."""
    before = desk.git("-C", str(clone), "rev-parse", "HEAD").out.strip()
    desk.edgewright("cluster", "recreate", "press-shop", "--yes", "--wait")
    assert desk.uuid_of("press-shop") == uuid
    assert desk.git("-C", str(clone), "pull", "--quiet").code == 0
    assert desk.git("-C", str(clone), "merge-base", "--is-ancestor", before, "HEAD").code == 0
    document = (clone / "edo" / "secrets" / "default" / "db.yaml").read_text()
    assert desk.unsealed(document) == {"password": b"s3cr3t"}


def look_at_the_timeline(desk: Desk, cluster: str, words: list[str]) -> None:
    said = desk.edgewright("cluster", "timeline", cluster)
    assert [word for word in words if word not in said] == []


def delete_with_goodbye(desk: Desk, name: str, uuid: str, edge: EdgeMachine) -> None:
    """The agent says that nothing is left, is told to detach, and says goodbye."""
    agent = (uuid, edge.password("edgewright-agent"))
    desk.edgewright("cluster", "delete", name, "--yes")
    assert desk.curl("PUT", f"/v1/cluster/{uuid}/secret/default/db/late", "x").code == 409

    def told_to_detach() -> bool:
        beat = desk.curl("POST", "/v1/agent/heartbeat", {"inventory_empty": True}, user=agent)
        return bool(json.loads(beat.out).get("detach"))

    eventually(told_to_detach, seconds=60)
    assert desk.curl("POST", "/v1/agent/detached", user=agent).code == 204
    eventually(lambda: desk.is_gone(uuid), seconds=60)
    assert desk.curl("POST", "/v1/agent/heartbeat", {}, user=agent).code == 401


def stay_gone(desk: Desk, names: set[str], uuids: set[str]) -> None:
    """Two sweeps, another start and two more sweeps bring nothing back."""
    for start_again in (False, True):
        if start_again:
            assert desk.centre.interrupt() == 0
            desk.centre.up()
        desk.await_sweeps(2)
        assert desk.names() & names == set()
        assert [uuid for uuid in uuids if not desk.is_gone(uuid)] == []
        assert {f"cluster-{uuid}" for uuid in uuids} & desk.running_workflows() == set()
        for uuid in uuids:
            assert desk.curl("GET", f"/v1/app/{CONFIGURATION}/object/{uuid}").code == 404
            assert desk.curl("GET", f"/v1/app/{SETUP_STATUS}/object/{uuid}").code == 404


def is_ready_entry(desk: Desk, path: str) -> bool:
    answer = desk.curl("GET", path)
    return answer.code == 200 and json.loads(answer.out)["ready"] is True
