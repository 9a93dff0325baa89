"""An edge is left in good order: nothing hangs, nothing of somebody else's goes, whenever the detacher is killed."""

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import pytest
from detachable_edge import (
    ANCHOR_UID,
    CLUSTER,
    FLUX_FINALIZER,
    GENERATION,
    KUSTOMIZATIONS,
    MAPS,
    OF_CLUSTER,
    OURS,
    BootstrappedEdge,
    DetacherKilled,
)
from scripted_centre import QuickClock, ReceivedRequest, Reply, ScriptedCentre, TimeIsUp
from structlog.testing import capture_logs

from edgewright.agent.attachment import Attachment
from edgewright.agent.centre import Centre
from edgewright.agent.cluster_objects import ANCHORS, DEPLOYMENTS, NAMESPACES, SECRETS, Found, Owner
from edgewright.agent.detacher import GOODBYE, Detacher
from edgewright.agent.detaching import UNMARKED, inhabitants

A_WHILE = 300.0
ORDER = {"cluster": CLUSTER, "generation": GENERATION, "workloads": "remove"}
KEEP = {**ORDER, "workloads": "keep"}


def ordering(
    order: object = ORDER, goodbye: Callable[[], Reply] = lambda: Reply(204)
) -> Callable[[ReceivedRequest], Reply]:
    def reply(request: ReceivedRequest) -> Reply:
        return Reply(200, order) if request.path == "/v1/agent/detach-order" else goodbye()

    return reply


def detacher(edge: BootstrappedEdge, centre: ScriptedCentre, lasts: float = A_WHILE) -> Detacher:
    attached = Attachment(CLUSTER, "ewa_secret", centre.url, CLUSTER, GENERATION)

    async def attachment() -> Attachment:
        return attached

    return Detacher(edge, attachment=attachment, connect=Centre, clock=QuickClock(lasts), chance=Random(7))


def left(edge: BootstrappedEdge) -> set[str]:
    """What is there and was not before."""
    return edge.objects.keys() - edge.before


async def test_in_order_and_the_anchor_last(centre: ScriptedCentre) -> None:
    edge, said = BootstrappedEdge(), []

    def goodbye() -> Reply:
        said.append(sorted(edge.names(DEPLOYMENTS)))
        return Reply(204)

    centre.reply = ordering(goodbye=goodbye)
    await detacher(edge, centre).run()
    assert edge.changes == [
        "change Kustomization edgewright/self-link",
        "remove Kustomization edgewright/self-link",
        "remove Kustomization edgewright/by-hand",
        "remove HelmRelease edgewright/edge-cluster",
        "remove GitRepository edgewright/self-link",
        "remove Deployment flux-system/kustomize-controller",
        "remove Deployment flux-system/source-controller",
        "change ClusterRole edgewright-anchor",
        "remove ClusterRole edgewright-anchor",
    ]
    assert said == [["edgewright-agent", "edgewright-detach"]], "the agent is there until it has said goodbye"
    assert (left(edge), edge.workloads) == (set(), {})


async def test_kept_workloads_stay_and_all_that_applied_them_goes(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge()
    centre.reply = ordering(KEEP)
    await detacher(edge, centre).run()
    assert edge.workloads.keys() == {"press", "chart"}
    assert left(edge) == set()


@pytest.mark.parametrize("order", [ORDER, KEEP])
async def test_what_flux_has_made_anew_while_it_was_leaving_keeps_what_it_applied_or_goes_with_it(
    centre: ScriptedCentre, order: dict[str, Any]
) -> None:
    edge = BootstrappedEdge(brings_flux=False, is_busy=True)
    centre.reply = ordering(order)
    await detacher(edge, centre).run()
    assert not edge.is_busy and left(edge) == set()
    assert edge.workloads.keys() == (set() if order is ORDER else {"press", "chart", "by-hand", "late"})


@pytest.mark.parametrize("order", [ORDER, KEEP])
@pytest.mark.parametrize("brings_flux", [True, False])
async def test_killed_after_each_change_it_goes_on(
    centre: ScriptedCentre, order: dict[str, Any], brings_flux: bool
) -> None:
    edge = BootstrappedEdge(brings_flux=brings_flux)
    centre.reply = ordering(order)
    for changes in count(1):
        edge.kill_after(changes)
        try:
            await detacher(edge, centre).run()
        except DetacherKilled:
            continue
        break
    assert changes > 3
    assert left(edge) == set() and edge.before - edge.objects.keys() <= {
        "uid-kustomizations-edgewright-by-hand",
        "uid-helmreleases-edgewright-edge-cluster",
    }
    assert edge.workloads.keys() == (set() if order is ORDER else {"press", "chart"})


async def test_a_flux_that_was_there_before_stays_with_all_that_is_not_ours(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge(brings_flux=False)
    centre.reply = ordering()
    await detacher(edge, centre).run()
    assert {"kustomize-controller", "source-controller"} <= edge.names(DEPLOYMENTS)
    assert edge.names(KUSTOMIZATIONS) == {"theirs"}
    assert edge.names(NAMESPACES) == {"flux-system"}
    assert not [change for change in edge.changes if "theirs" in change or "flux-system" in change]


@pytest.mark.parametrize("brings_flux", [True, False])
async def test_nothing_hangs_where_flux_does_not_run(centre: ScriptedCentre, brings_flux: bool) -> None:
    edge = BootstrappedEdge(brings_flux=brings_flux, flux_runs=False)
    centre.reply = ordering()
    with capture_logs() as logged:
        await detacher(edge, centre, lasts=3600.0).run()
    assert left(edge) == set()
    assert not [each for each in edge.objects.values() if each.deleting]
    assert edge.workloads.keys() == {"press", "chart"}, "nobody could remove them"
    assert "released" in [line["state"] for line in logged]


async def test_what_somebody_else_made_with_our_flux_is_not_pruned(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge()
    other = edge.add(KUSTOMIZATIONS, "other", "elsewhere", finalizers=FLUX_FINALIZER)
    edge.workloads["theirs"] = other.uid
    centre.reply = ordering()
    await detacher(edge, centre).run()
    assert edge.workloads.keys() == {"theirs"}
    assert not [each for each in edge.objects.values() if each.deleting]


async def test_a_namespace_in_which_somebody_lives_stays_without_our_mark(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge()
    edge.add(MAPS, "notes", "edgewright")
    centre.reply = ordering()
    await detacher(edge, centre).run()
    assert edge.names(NAMESPACES) == {"edgewright"} and edge.names(MAPS) == {"notes"}
    assert [each.labels for each in edge.objects.values() if each.kind == NAMESPACES] == [{}]
    assert edge.names(SECRETS) == set()


async def test_what_lacks_its_owner_is_not_left_behind_in_silence(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge()
    edge.add(SECRETS, "flux-secrets", "edgewright", labels=OURS)
    centre.reply = ordering()
    with capture_logs() as logged, pytest.raises(TimeIsUp):
        await detacher(edge, centre).run()
    assert {line.get("code") for line in logged} >= {"not_owned"}
    assert not centre.of("/v1/agent/detached") and ANCHOR_UID in edge.objects


NO_BODIES: list[Any] = [b"<html>Sign in</html>", b"", {}, [], True, {"detach": True}, {"detach_order": ORDER}]
NO_ORDERS: list[Reply] = [
    *[Reply(status, {"code": "x"}) for status in (400, 401, 403, 404, 409, 410, 429, 500, 502, 503, 504)],
    *[Reply(200, body) for body in NO_BODIES],
    Reply(302, ORDER, {"Location": "/v1/agent/detach-order"}),
    Reply(200, {**ORDER, "cluster": "another"}),
    Reply(200, {**ORDER, "generation": 2}),
    Reply(200, {**ORDER, "generation": "1"}),
    Reply(200, {**ORDER, "generation": True}),
    Reply(200, {**ORDER, "workloads": "all"}),
    Reply(200, {"cluster": CLUSTER, "generation": GENERATION}),
    Reply(204),
]


@pytest.mark.parametrize("reply", NO_ORDERS, ids=lambda reply: f"{reply.status}-{str(reply.body)[:40]}")
async def test_an_answer_that_is_not_an_order_changes_nothing(centre: ScriptedCentre, reply: Reply) -> None:
    edge = BootstrappedEdge()
    centre.reply = lambda _request: reply
    with pytest.raises(TimeIsUp):
        await detacher(edge, centre).run()
    assert edge.changes == []
    assert {request.path for request in centre.requests} == {"/v1/agent/detach-order"}
    assert len(centre.requests) < 30


async def test_silence_changes_nothing(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge()
    beyond = detacher(edge, ScriptedCentre("http://127.0.0.1:9", lambda _request: Reply(200, ORDER)))
    with pytest.raises(TimeIsUp):
        await beyond.run()
    assert edge.changes == []


@pytest.mark.parametrize("label", ["edgewright.dev/cluster", "edgewright.dev/generation"])
async def test_what_another_identity_has_installed_is_not_touched(centre: ScriptedCentre, label: str) -> None:
    edge = BootstrappedEdge()
    anchor = edge.objects[ANCHOR_UID]
    edge.objects[ANCHOR_UID] = Found(ANCHORS, anchor.name, ANCHOR_UID, labels={**anchor.labels, label: "2"})
    centre.reply = ordering()
    with pytest.raises(TimeIsUp):
        await detacher(edge, centre).run()
    assert edge.changes == [] and centre.requests == []


async def test_without_an_anchor_there_is_nothing_to_do(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge()
    del edge.objects[ANCHOR_UID]
    await detacher(edge, centre).run()
    assert (edge.changes, centre.requests) == ([], [])


@pytest.mark.parametrize("status", [401, 403, 404, 409, 500, 503])
async def test_the_anchor_stays_until_the_centre_has_heard_the_goodbye(centre: ScriptedCentre, status: int) -> None:
    edge = BootstrappedEdge()
    centre.reply = ordering(goodbye=lambda: Reply(status))
    with pytest.raises(TimeIsUp):
        await detacher(edge, centre).run()
    assert ANCHOR_UID in edge.objects and edge.objects[ANCHOR_UID].annotations[GOODBYE] == "1"
    assert {"edgewright-agent", "edgewright-detach"} <= edge.names(DEPLOYMENTS)
    centre.reply = ordering(goodbye=lambda: Reply(204))
    await detacher(edge, centre).run()
    assert left(edge) == set()


async def test_a_goodbye_that_was_heard_and_not_answered_is_enough(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge()
    answers = [Reply(502), Reply(401)]
    centre.reply = ordering(goodbye=lambda: answers.pop(0))
    await detacher(edge, centre).run()
    assert (left(edge), answers) == (set(), [])


def test_unmarking_takes_what_bootstrap_has_put_on_a_namespace_and_nothing_else() -> None:
    assert {
        "metadata": {
            "ownerReferences": None,
            "labels": dict.fromkeys(OURS),
            "annotations": {"kustomize.toolkit.fluxcd.io/prune": None},
        }
    } == UNMARKED


def test_who_lives_in_a_namespace() -> None:
    anchored = (Owner(ANCHORS.group, "ClusterRole", ANCHOR_UID),)
    of = {"set": (Owner("apps", "Deployment", "d"),), "lost": (Owner("", "Secret", "gone"),)}
    found = [
        Found(DEPLOYMENTS, "agent", "d", "n", owners=anchored),
        Found(SECRETS, "of-agent", "p", "n", owners=of["set"]),
        Found(SECRETS, "garbage", "g", "n", owners=of["lost"]),
        Found(SECRETS, "of-a-node", "m", "n", owners=(Owner("", "Node", "node"),)),
        Found(SECRETS, "shared", "s", "n", owners=(*anchored, Owner("", "Node", "node"))),
        Found(MAPS, "kube-root-ca.crt", "r", "n"),
        Found(MAPS, "theirs", "t", "n", labels=OF_CLUSTER),
        Found(MAPS, "going", "e", "n", deleting=True),
    ]
    staying = inhabitants(found, [DEPLOYMENTS, SECRETS, MAPS], anchor=ANCHOR_UID)
    assert {each.name for each in staying} == {"of-a-node", "shared", "theirs"}
