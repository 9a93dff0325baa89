"""One registration per line, on real Kubernetes clusters: interrupted, too late, doubled, accepted, rejected."""

from __future__ import annotations

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.contents import Comparison, contents
from edge_cluster.patience import eventually
from edge_cluster.site import AGENT, SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from edge_cluster.attaching import Attaching
    from edge_cluster.line import BootstrapLine

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

ANCHOR = "edgewright-anchor"
USED = "This registration token has been used: the cluster is attached."


@pytest.fixture(scope="module")
def second() -> Iterator[Cluster]:
    """Another Kubernetes cluster; nothing runs on it. Each test leaves it so."""
    with edge_cluster() as cluster:
        yield cluster


def test_an_interrupted_line_goes_on_until_its_credential_is_used_and_then_a_fresh_one_does(
    attaching: Attaching,
) -> None:
    """Once Flux has fetched with what a killed script has registered, the token is spent."""
    cluster = attaching.factory.cluster
    uuid = attaching.commission("half-way")
    line = attaching.line(uuid)
    made, killed = set(), 0
    while cluster.find("kustomization", "self-link", namespace="edgewright") is None:
        killed += 1
        done = line.run(interrupted_after=killed)
        assert done.returncode != 0, "it is over before Flux has something to do"
        made |= {attaching.password()} - {None}
    assert len(made) == 1, "the same credential in each run"
    assert len([told for told in attaching.timeline(uuid) if "registered as" in told]) == 1
    eventually(lambda: attaching.factory.kubelet.runs(SOURCE))
    eventually(lambda: line.run("--dry-run").returncode == 1)  # Flux fetches when it is there
    refused = line.run()
    assert USED in refused.stderr and "edgewright cluster bootstrap" in refused.stderr
    assert not attaching.factory.kubelet.runs(AGENT)

    done = attaching.line(uuid).run()
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(lambda: attaching.is_available(uuid))
    assert attaching.password() in made


def test_a_line_that_was_used_is_refused_on_its_own_edge_and_on_any_other(
    attaching: Attaching, second: Cluster, tmp_path: Path
) -> None:
    uuid = attaching.commission("spent")
    line = attaching.line(uuid)
    assert line.run().returncode == 0
    eventually(lambda: attaching.is_available(uuid))
    before, mine = contents(second), attaching.password()
    (tmp_path / "elsewhere").mkdir()
    thief = line.on(second, tmp_path / "elsewhere").run()
    again = line.run()
    for done in (thief, again):
        assert (done.returncode, done.stdout) == (1, "")
        assert USED in done.stderr
    assert contents(second) == before
    assert attaching.password() == mine
    assert attaching.is_available(uuid)


def test_a_line_that_has_expired_changes_nothing_even_if_its_script_was_read_before(
    attaching: Attaching, tmp_path: Path
) -> None:
    before = contents(attaching.factory.cluster)
    uuid = attaching.commission("late")
    line = attaching.line(uuid)
    assert line.type(f"curl -sSf '{line.url}' -o attach.sh").returncode == 0
    expire(attaching, uuid)
    done = line.type("sh attach.sh --yes")
    assert done.returncode == 1
    assert "Refused by the centre: This registration token has expired." in done.stderr
    assert "Nothing was changed." in done.stderr
    done = line.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert "This registration token has expired." in done.stderr
    assert contents(attaching.factory.cluster) == before


def test_of_two_clusters_that_use_one_line_at_once_one_is_attached_and_the_other_as_it_was(
    attaching: Attaching, second: Cluster, tmp_path: Path
) -> None:
    uuid = attaching.commission("raced")
    line = attaching.line(uuid)
    (tmp_path / "elsewhere").mkdir()
    lines = [(attaching.factory.cluster, line), (second, line.on(second, tmp_path / "elsewhere"))]
    before = [contents(cluster) for cluster, _ in lines]
    with ThreadPoolExecutor(2) as people:
        done = list(people.map(lambda each: each[1].run(), lines))
    assert sorted(each.returncode for each in done) == [0, 1], [each.stderr for each in done]
    lost = next(at for at, each in enumerate(done) if each.returncode == 1)
    refusals = ("is bound to another Kubernetes cluster", "was used already", "has been used")
    assert any(words in done[lost].stderr for words in refusals), done[lost].stderr
    eventually(Comparison(lines[lost][0], before[lost]))
    won = lines[1 - lost][0]
    assert won.find("clusterrole", ANCHOR)["metadata"]["labels"]["edgewright.dev/cluster"] == uuid
    if won is second:
        assert attaching.line(uuid, on=second).run("--uninstall").returncode == 0


def test_an_operator_compares_the_code_and_accepts(attaching: Attaching) -> None:
    """Until then nothing of the credentials is let in; afterwards it goes on without a hand at the edge."""
    uuid = attaching.commission("by-hand", accept="manual")
    code = short_code_of(attaching.line(uuid))
    shown = attaching.desk.json(f"/v1/cluster/{uuid}")
    assert (shown["acceptance"], shown["short_code"], shown["phase"]) == ("pending", code, "PendingAcceptance")
    eventually(lambda: "pending" in attaching.agent_said())
    eventually(lambda: "authorization failed" in attaching.source_said())
    assert not attaching.is_available(uuid)
    assert "accepted" in attaching.desk.edgewright("cluster", "accept", "by-hand", "--yes")
    eventually(lambda: attaching.is_available(uuid))
    attaching.fetch_now()
    assert attaching.has_fetched()


def test_an_edge_that_was_rejected_is_out_and_comes_in_with_a_fresh_line_and_new_credentials(
    attaching: Attaching,
) -> None:
    uuid = attaching.commission("turned-down", accept="manual")
    first = short_code_of(attaching.line(uuid))
    rejected = attaching.password()
    attaching.desk.edgewright("cluster", "reject", "turned-down")
    eventually(lambda: "refused" in attaching.agent_said())
    assert attaching.password() == rejected, "a refusal changes nothing on the edge"
    assert attaching.desk.json(f"/v1/cluster/{uuid}")["acceptance"] == "rejected"

    line = attaching.line(uuid)
    done = line.run()
    assert "The centre has revoked the credentials that were here; making new ones." in done.stdout, done.stderr
    assert attaching.password() != rejected
    shown = attaching.desk.json(f"/v1/cluster/{uuid}")
    assert shown["acceptance"] == "pending" and shown["short_code"] != first
    attaching.desk.edgewright("cluster", "accept", "turned-down", "--yes")
    eventually(lambda: attaching.is_available(uuid))


def test_an_edge_that_is_somebody_already_is_refused_and_what_an_interrupted_line_left_can_be_taken_away(
    attaching: Attaching,
) -> None:
    """It was let go without a word to the centre, so for the centre it is still the first cluster."""
    cluster, before = attaching.factory.cluster, contents(attaching.factory.cluster)
    attached = attaching.commission("first")
    assert attaching.line(attached).run().returncode == 0
    assert attaching.line(attached).run("--uninstall").returncode == 0
    assert contents(cluster) == before

    wrong = attaching.line(attaching.commission("second"))
    done = wrong.run()
    assert done.returncode == 1
    assert "That Kubernetes cluster is registered as first." in done.stderr
    assert "Delete or reject first" in done.stderr
    assert "--uninstall" not in done.stderr, "there is nothing to take away"
    eventually(Comparison(cluster, before))

    assert wrong.run(interrupted_after=1).returncode != 0
    assert cluster.find("clusterrole", ANCHOR) is not None
    done = wrong.run()
    assert done.returncode == 1
    assert "this line, or a fresh one, takes it away with --uninstall." in done.stderr
    assert cluster.find("clusterrole", ANCHOR) is not None
    assert wrong.run("--uninstall").returncode == 0
    eventually(Comparison(cluster, before))


def short_code_of(line: BootstrapLine) -> str:
    """What the script prints for the person who compares."""
    done = line.run()
    assert done.returncode == 0, done.stdout + done.stderr
    [code] = re.findall(r"must accept this cluster now\. Its short code is (\w{4}-\w{4})\.", done.stdout)
    return str(code)


def expire(attaching: Attaching, uuid: str) -> None:
    """Its hour passes."""
    with closing(sqlite3.connect(attaching.desk.centre.home / "edgewright.db", timeout=30)) as database, database:
        changed = database.execute(
            "UPDATE registration_tokens SET expires_at = '2020-01-01 00:00:00.000000' WHERE cluster = ?",
            [uuid.replace("-", "")],
        )
        assert changed.rowcount >= 1
