"""Upgrades that somebody calls off, and releases of Flux that nobody may drop while a cluster wants them."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from database_stores import ACTOR, Store
from flux_file import labelled_flux
from upgraded_store import (
    FLUX,
    NEW,
    OLD,
    RELEASE,
    agents,
    committed,
    flux_target,
    heard,
    imported,
    judged,
    only,
    pass_minutes,
    report,
)

from edgewright.application.flux_releases import keep, release
from edgewright.domain.upgrades import Component, UpgradeState
from edgewright.errors import Conflict, Gone, NotFound, Superseded
from edgewright.ports.upgrades import UpgradeWish

OLDER = labelled_flux("v2.7.0")
OLDER_FLUX = flux_target(OLDER)
ANN, BOB = "token:ann", "token:bob"


async def test_an_agent_goes_back_to_its_image_before_with_one_event_that_names_who_wanted_it(store: Store) -> None:
    cluster = await heard(store)
    await store.upgrades.admit(agents(cluster), actor=ACTOR)
    fence = await store.fence(cluster)
    told = len(await store.audit.timeline(cluster))
    ended = await store.upgrades.cancel(cluster, actor=ANN)
    row = await store.row(cluster)
    assert (row.wanted.agent, row.wanted.flux, row.upgrading, row.change) == (OLD, None, None, fence.change + 1)
    assert (ended.state, ended.version, ended.before) == (UpgradeState.CANCELLED, "0.4", OLD.version)
    assert ended.reason == f"Called off by {ANN}; the edge goes back to {OLD.version}."
    assert ended == await only(store, cluster) and ended.ended_at is not None
    [event] = (await store.audit.timeline(cluster))[told:]
    assert (event.kind, event.actor) == ("upgrade.cancelled", ANN)
    assert event.message == f"The agent of press-shop is no longer upgraded to 0.4. {ended.reason}"
    with pytest.raises(Superseded):  # a worker that is about to commit what was called off
        await store.steps.record_rendering(fence, "digest", (), commit="d" * 40)
    assert cluster in await store.directory.unfinished()


async def test_the_second_call_says_that_it_was_called_off_and_changes_nothing(store: Store) -> None:
    cluster = await heard(store)
    await store.upgrades.admit(agents(cluster), actor=ACTOR)
    await store.upgrades.cancel(cluster, actor=ANN)
    before, told = await store.row(cluster), await store.kinds(cluster)
    with pytest.raises(Conflict) as refused:
        await store.upgrades.cancel(cluster, actor=BOB)
    assert refused.value.code == "upgrade_not_under_way"
    assert refused.value.detail == "The upgrade of press-shop to agent 0.4 was called off already."
    assert ((await store.row(cluster)).change, await store.kinds(cluster)) == (before.change, told)
    _, is_new = await store.upgrades.admit(agents(cluster), actor=ACTOR)  # a change of mind is allowed
    assert is_new


async def test_what_was_called_off_leaves_its_place_to_others_and_is_judged_no_more(timed: Store) -> None:
    first, second = await heard(timed, "first"), await heard(timed, "second")
    await timed.upgrades.admit(agents(first, at_once=1), actor=ACTOR)
    await timed.upgrades.cancel(first, actor=ANN)
    await timed.upgrades.admit(agents(second, at_once=1), actor=ACTOR)
    assert await timed.upgrades.under_way() == [second]
    await committed(timed, first)
    await pass_minutes(timed, 40, beating=first)
    assert await judged(timed) == []
    assert (await only(timed, first)).state is UpgradeState.CANCELLED


async def test_an_agent_whose_image_before_is_not_known_is_wanted_no_more(store: Store) -> None:
    cluster = await heard(store)
    await store.upgrades.admit(UpgradeWish(cluster=cluster, target=NEW), actor=ACTOR)
    ended = await store.upgrades.cancel(cluster, actor=ANN)
    row = await store.row(cluster)
    assert (row.wanted.agent, row.wanted.flux) == (None, None)
    assert ended.reason == f"Called off by {ANN}; what the edge has taken of it stays."


async def test_what_the_edge_has_proven_stays(store: Store) -> None:
    cluster = await heard(store)
    with pytest.raises(Conflict) as refused:
        await store.upgrades.cancel(cluster, actor=ANN)
    assert refused.value.detail == "press-shop is not being upgraded."
    await store.upgrades.admit(agents(cluster), actor=ACTOR)
    await report(store, cluster, versions={"agent": "0.4.0", "agent-image": NEW.image})
    with pytest.raises(Conflict) as refused:
        await store.upgrades.cancel(cluster, actor=ANN)
    assert refused.value.code == "upgrade_not_under_way"
    assert refused.value.detail == "press-shop has agent 0.4 already: its edge has proven it."
    assert (await store.row(cluster)).wanted.agent == NEW


async def test_a_proof_that_was_there_before_the_wish_counts_and_is_noted(store: Store) -> None:
    cluster = await heard(store)
    await report(store, cluster, versions={"agent": "0.4.0", "agent-image": NEW.image})
    await store.upgrades.admit(agents(cluster), actor=ACTOR)
    with pytest.raises(Conflict) as refused:
        await store.upgrades.cancel(cluster, actor=ANN)
    assert refused.value.detail == "press-shop has agent 0.4 already: its edge has proven it."
    assert (await only(store, cluster)).state is UpgradeState.DONE
    assert (await store.row(cluster)).upgrading is None


async def test_a_proof_and_a_call_off_have_one_outcome(store: Store, open_store: Callable[..., Store]) -> None:
    other = open_store()
    clusters = [await heard(store, f"press-{number}") for number in range(8)]
    for cluster in clusters:
        await store.upgrades.admit(agents(cluster), actor=ACTOR)
    proofs = [report(store, cluster, versions={"agent": "0.4.0", "agent-image": NEW.image}) for cluster in clusters]
    calls = [other.upgrades.cancel(cluster, actor=ANN) for cluster in clusters]
    _, called = await asyncio.gather(asyncio.gather(*proofs), asyncio.gather(*calls, return_exceptions=True))
    for cluster, answer in zip(clusters, called, strict=True):
        row, upgrade, kinds = await store.row(cluster), await only(store, cluster), await store.kinds(cluster)
        if isinstance(answer, BaseException):
            assert isinstance(answer, Conflict) and answer.code == "upgrade_not_under_way"
            assert (upgrade.state, row.wanted.agent) == (UpgradeState.DONE, NEW)
        else:
            assert (upgrade.state, row.wanted.agent) == (UpgradeState.CANCELLED, OLD)
        assert row.upgrading is None
        assert kinds.count("upgrade.done") + kinds.count("upgrade.cancelled") == 1


async def test_two_people_call_off_once(two: tuple[Store, Store]) -> None:
    store, other = two
    cluster = await heard(store)
    await store.upgrades.admit(agents(cluster), actor=ACTOR)
    answers = await asyncio.gather(
        *(each.upgrades.cancel(cluster, actor=who) for each, who in ((store, ANN), (other, BOB), (store, BOB))),
        return_exceptions=True,
    )
    assert sum(not isinstance(each, BaseException) for each in answers) == 1
    assert (await store.kinds(cluster)).count("upgrade.cancelled") == 1


async def test_only_the_component_that_is_meant_is_called_off(store: Store) -> None:
    cluster = await heard(store)
    await store.upgrades.admit(agents(cluster), actor=ACTOR)
    with pytest.raises(Conflict) as refused:
        await store.upgrades.cancel(cluster, Component.FLUX, actor=ANN)
    assert refused.value.detail == "The agent of press-shop is what is being upgraded."
    assert (await store.upgrades.cancel(cluster, Component.AGENT, actor=ANN)).state is UpgradeState.CANCELLED


async def test_what_cannot_be_called_off_says_why(store: Store) -> None:
    with pytest.raises(NotFound) as unknown:
        await store.upgrades.cancel(UUID(int=7), actor=ANN)
    assert (unknown.value.code, isinstance(unknown.value, Gone)) == ("cluster_unknown", False)
    cluster = await heard(store)
    await store.upgrades.admit(agents(cluster), actor=ACTOR)
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    with pytest.raises(Conflict) as refused:
        await store.upgrades.cancel(cluster, actor=ANN)
    assert refused.value.code == "deleting"


# --- Flux ----------------------------------------------------------------------------------------------------------


async def upgraded_to_older(store: Store) -> UpgradeWish:
    """A cluster that was to have the older release; the wish for the newer one."""
    cluster = await heard(store)
    await imported(store, OLDER, RELEASE)
    await store.upgrades.admit(UpgradeWish(cluster=cluster, target=OLDER_FLUX), actor=ACTOR)
    await applying(store, UpgradeWish(cluster=cluster, target=OLDER_FLUX), ready="True")
    return UpgradeWish(cluster=cluster, target=FLUX, before="v2.7.0")


async def applying(store: Store, wish: UpgradeWish, *, ready: str) -> None:
    """The edge says that it applies a release."""
    said = {"name": f"edgewright-flux-{wish.target.version}", "conditions": [{"type": "Ready", "status": ready}]}
    await report(store, wish.cluster, flux={"kustomizations": [said]})


async def test_flux_is_to_be_again_what_it_was_to_be_while_the_edge_has_not_begun(store: Store) -> None:
    wish = await upgraded_to_older(store)
    await store.upgrades.admit(wish, actor=ACTOR)
    ended = await store.upgrades.cancel(wish.cluster, actor=ANN)
    assert (await store.row(wish.cluster)).wanted.flux == OLDER_FLUX
    assert ended.reason == f"Called off by {ANN}; the cluster is to have v2.7.0 again."


async def test_flux_that_the_edge_has_begun_to_apply_does_not_go_back(store: Store) -> None:
    wish = await upgraded_to_older(store)
    await store.upgrades.admit(agents(wish.cluster), actor=ACTOR)
    await store.upgrades.cancel(wish.cluster, actor=ANN)
    await store.upgrades.admit(wish, actor=ACTOR)
    await applying(store, wish, ready="False")
    ended = await store.upgrades.cancel(wish.cluster, actor=ANN)
    assert ended.reason == f"Called off by {ANN}; what the edge has taken of it stays."
    wanted = (await store.row(wish.cluster)).wanted
    assert (wanted.flux, wanted.agent) == (None, OLD), "the other component is not touched"


async def test_flux_that_is_tried_again_and_called_off_goes_back_to_before_the_first_try(timed: Store) -> None:
    wish = await upgraded_to_older(timed)
    await committed(timed, wish.cluster)
    await pass_minutes(timed, 16, beating=wish.cluster)
    await timed.upgrades.admit(wish, actor=ACTOR)
    await committed(timed, wish.cluster)
    await pass_minutes(timed, 16, beating=wish.cluster)
    assert await judged(timed) == []
    assert (await timed.row(wish.cluster)).wanted.flux == FLUX, "it has failed"
    await timed.upgrades.admit(wish, actor=ACTOR)
    await timed.upgrades.cancel(wish.cluster, actor=ANN)
    assert (await timed.row(wish.cluster)).wanted.flux == OLDER_FLUX


async def test_a_release_that_is_wanted_or_may_be_again_is_not_dropped(store: Store) -> None:
    wish = await upgraded_to_older(store)
    await store.upgrades.admit(wish, actor=ACTOR)
    for each in (OLDER, RELEASE):
        assert await store.upgrades.drop_flux(each.sha256, actor=ACTOR) is False
        assert await release(store.config, each.sha256) == each
    await store.upgrades.cancel(wish.cluster, actor=ANN)
    assert await store.upgrades.drop_flux(OLDER.sha256, actor=ACTOR) is False
    other = labelled_flux("v2.7.9")
    await keep(store.config, store.upgrades, other, ACTOR)  # edges get this one: the other has its own entry only
    assert await store.upgrades.drop_flux(RELEASE.sha256, actor=ACTOR) is True
    assert await store.upgrades.drop_flux(RELEASE.sha256, actor=ACTOR) is False
    assert await release(store.config, RELEASE.sha256) is None
    with pytest.raises(NotFound) as gone:
        await store.upgrades.admit(wish, actor=ACTOR)
    assert gone.value.code == "flux_release_unknown"
    assert (await store.row(wish.cluster)).upgrading is None


async def test_a_release_is_dropped_or_wanted_and_never_both(store: Store, open_store: Callable[..., Store]) -> None:
    other = open_store()
    for number in range(6):
        cluster = await heard(store, f"press-{number}")
        each = labelled_flux(f"v2.8.{number}")
        await imported(store, each, labelled_flux("v2.9.0", built=str(number)))
        wish = UpgradeWish(cluster=cluster, target=flux_target(each))
        calls: list[Any] = [
            store.upgrades.admit(wish, actor=ACTOR),
            other.upgrades.drop_flux(each.sha256, actor=ACTOR),
        ]
        admits_first = number % 2 == 0
        answers = await asyncio.gather(*(calls if admits_first else reversed(calls)), return_exceptions=True)
        admitted, dropped = answers if admits_first else reversed(answers)
        is_there = await release(store.config, each.sha256) is not None
        is_wanted = (await store.row(cluster)).wanted.flux is not None
        assert is_there == is_wanted == (dropped is False)
        assert is_wanted != isinstance(admitted, NotFound)
