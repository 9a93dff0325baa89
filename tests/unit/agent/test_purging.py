"""A purge takes the kind SealedSecret and the sealing keys, unless somebody else would pay for it."""

from collections.abc import Callable
from itertools import count
from random import Random

import pytest
import yaml
from detachable_edge import (
    CLUSTER,
    GENERATION,
    KUSTOMIZATIONS,
    OF_CLUSTER,
    BootstrappedEdge,
    DetacherKilled,
)
from scripted_centre import QuickClock, ReceivedRequest, Reply, ScriptedCentre
from sealing_workloads import CONTROLLERS, NO_CONTROLLERS

from edgewright.agent.attachment import Attachment
from edgewright.agent.centre import Centre
from edgewright.agent.cluster_objects import DEFINITIONS, DEPLOYMENTS, GRANTS, SECRETS, Owner, containers_in
from edgewright.agent.detach_order import read_order
from edgewright.agent.detacher import Detacher
from edgewright.agent.purging import DEFINITION, SEALED

ORDER = {"cluster": CLUSTER, "generation": GENERATION, "workloads": "remove", "purge": True}
A_WHILE = 3600.0


def ordering(said: list[object], order: object = ORDER) -> Callable[[ReceivedRequest], Reply]:
    def reply(request: ReceivedRequest) -> Reply:
        if request.path == "/v1/agent/detach-order":
            return Reply(200, order)
        said.append(request.body or None)
        return Reply(204)

    return reply


def detacher(edge: BootstrappedEdge, centre: ScriptedCentre) -> Detacher:
    attached = Attachment(CLUSTER, "ewa_secret", centre.url, CLUSTER, GENERATION)

    async def attachment() -> Attachment:
        return attached

    return Detacher(edge, attachment=attachment, connect=Centre, clock=QuickClock(A_WHILE), chance=Random(7))


@pytest.fixture
def edge() -> BootstrappedEdge:
    """With what seals, and the rights to purge."""
    edge = BootstrappedEdge()
    edge.add_sealing()
    edge.grant_purge()
    return edge


def has_sealing(edge: BootstrappedEdge) -> bool:
    kind, key = DEFINITION in edge.names(DEFINITIONS), "sealed-secrets-key1" in edge.names(SECRETS)
    assert kind is key, "nothing is taken by halves"
    return kind


def rights(edge: BootstrappedEdge) -> list[str]:
    return [name for kind in GRANTS for name in edge.names(kind) if name == "edgewright-purge"]


async def test_kind_and_keys_go_and_the_rights_after_them(edge: BootstrappedEdge, centre: ScriptedCentre) -> None:
    said: list[object] = []
    centre.reply = ordering(said)
    await detacher(edge, centre).run()
    assert said == [{"purged": True, "purge_problem": None}]
    assert not has_sealing(edge) and not rights(edge)
    taken = [f"remove CustomResourceDefinition {DEFINITION}", "remove Secret kube-system/sealed-secrets-key1"]
    rest = ["remove HelmRelease edgewright/edge-cluster", *taken, "remove Kustomization edgewright/edge-purge"]
    assert [change for change in edge.changes if change in rest] == rest
    assert edge.objects.keys() <= edge.before


async def test_an_order_without_a_purge_takes_neither(edge: BootstrappedEdge, centre: ScriptedCentre) -> None:
    said: list[object] = []
    centre.reply = ordering(said, {**ORDER, "purge": False})
    await detacher(edge, centre).run()
    assert said == [None] and has_sealing(edge) and not rights(edge)


def test_kept_workloads_are_never_purged() -> None:
    kept, removed = read_order({**ORDER, "workloads": "keep"}), read_order(ORDER)
    assert kept is not None and not kept.purge
    assert removed is not None and removed.purge


def deploy(edge: BootstrappedEdge, described: str) -> None:
    theirs = yaml.safe_load(described)
    metadata = theirs["metadata"]
    found = edge.add(DEPLOYMENTS, metadata["name"], metadata["namespace"], labels=metadata["labels"])
    [edge.containers_of[found.uid]] = containers_in(theirs)


@pytest.mark.parametrize("what", CONTROLLERS)
async def test_another_controller_keeps_kind_and_keys(
    edge: BootstrappedEdge, centre: ScriptedCentre, what: str
) -> None:
    deploy(edge, CONTROLLERS[what])
    said: list[object] = []
    centre.reply = ordering(said)
    await detacher(edge, centre).run()
    problem = "A controller of sealed-secrets still runs here: tools/theirs."
    assert said == [{"purged": False, "purge_problem": problem}]
    assert has_sealing(edge) and not rights(edge)


@pytest.mark.parametrize("what", NO_CONTROLLERS)
async def test_what_only_has_the_name_of_a_controller_keeps_nothing(
    edge: BootstrappedEdge, centre: ScriptedCentre, what: str
) -> None:
    deploy(edge, NO_CONTROLLERS[what])
    said: list[object] = []
    centre.reply = ordering(said)
    await detacher(edge, centre).run()
    assert said == [{"purged": True, "purge_problem": None}]
    assert not has_sealing(edge)


async def test_somebody_elses_sealed_secrets_keep_kind_and_keys(
    edge: BootstrappedEdge, centre: ScriptedCentre
) -> None:
    for name in ("a", "b", "c", "d"):
        edge.add(SEALED, name, "shop")
    said: list[object] = []
    centre.reply = ordering(said)
    await detacher(edge, centre).run()
    problem = "There are SealedSecrets left: shop/a, shop/b, shop/c and 1 more."
    assert said == [{"purged": False, "purge_problem": problem}]
    assert has_sealing(edge) and not rights(edge)


async def test_secrets_that_lose_their_owner_keep_kind_and_keys(
    edge: BootstrappedEdge, centre: ScriptedCentre
) -> None:
    """The garbage collector no longer finds them once the kind is gone."""
    edge.add(SECRETS, "opened", "shop", owners=(Owner("bitnami.com", "SealedSecret", "gone"),))
    said: list[object] = []
    centre.reply = ordering(said)
    await detacher(edge, centre).run()
    problem = "There are Secrets left that were opened from SealedSecrets: shop/opened."
    assert said == [{"purged": False, "purge_problem": problem}]
    assert has_sealing(edge)


async def test_without_the_rights_the_edge_leaves_all_the_same(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge()
    edge.add_sealing()
    said: list[object] = []
    centre.reply = ordering(said)
    await detacher(edge, centre).run()
    problem = "Flux has not brought the right to delete customresourcedefinitions."
    assert said == [{"purged": False, "purge_problem": problem}]
    assert has_sealing(edge) and edge.objects.keys() <= edge.before


async def test_where_nothing_seals_nothing_is_missing(centre: ScriptedCentre) -> None:
    edge, said = BootstrappedEdge(), list[object]()
    centre.reply = ordering(said)
    await detacher(edge, centre).run()
    assert said == [{"purged": True, "purge_problem": None}]


async def test_without_flux_the_detacher_gives_up_the_rights_itself(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge(flux_runs=False)
    edge.add_sealing()
    edge.grant_purge()
    said: list[object] = []
    centre.reply = ordering(said)
    await detacher(edge, centre).run()
    assert said == [{"purged": True, "purge_problem": None}]
    assert not has_sealing(edge) and not rights(edge)


@pytest.mark.parametrize("pays", [False, True])
async def test_killed_after_each_change_it_goes_on_and_says_the_same(centre: ScriptedCentre, pays: bool) -> None:
    edge = BootstrappedEdge()
    edge.add_sealing()
    edge.grant_purge()
    if pays:
        edge.add(SEALED, "a", "shop")
    said: list[object] = []
    centre.reply = ordering(said)
    for changes in count(1):
        edge.kill_after(changes)
        try:
            await detacher(edge, centre).run()
        except DetacherKilled:
            continue
        break
    assert changes > 3
    assert {str(one) for one in said} == {str(said[0])} and isinstance(said[0], dict)
    assert said[0]["purged"] is not pays
    assert (DEFINITION in edge.names(DEFINITIONS)) is pays and not rights(edge)


async def test_a_part_of_the_same_name_that_is_not_ours_is_left(centre: ScriptedCentre) -> None:
    edge = BootstrappedEdge(brings_flux=False)
    edge.add(KUSTOMIZATIONS, "edge-purge", "elsewhere")
    edge.add(GRANTS[-1], "edgewright-purge", labels={**OF_CLUSTER, "edgewright.dev/cluster": "another"})
    centre.reply = ordering([])
    await detacher(edge, centre).run()
    assert "edge-purge" in edge.names(KUSTOMIZATIONS) and rights(edge)
