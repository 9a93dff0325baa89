"""How credentials are proven, replaced, and ended."""

import re
from uuid import uuid4

from database_stores import ACTOR, Store, code_of, digest, state_of, states
from shared_statements import statements_of

from edgewright.domain.cluster import (
    AcceptancePolicy,
    ClusterSettings,
    CredentialState,
    Role,
    StepName,
    TokenState,
)

MANUAL = ClusterSettings(accept=AcceptancePolicy.MANUAL)


# --- proof and rotation ------------------------------------------------------------------------------------


async def test_the_first_use_proves_a_credential(timed: Store) -> None:
    cluster = await timed.commissioned()
    await timed.registered(cluster)
    agent = await timed.credential(cluster, Role.AGENT)
    await timed.edge_access.record_use(agent.id)
    assert (await timed.credential(cluster, Role.AGENT)).proven_at == timed.clock.at
    wanted = await timed.steps.read_wanted(cluster)
    assert wanted is not None
    assert wanted.edge_reported_at == timed.clock.at
    before = await timed.row(cluster)
    timed.clock.advance(hours=1)
    await timed.edge_access.record_use(agent.id)
    assert await timed.row(cluster) == before
    assert (await timed.kinds(cluster)).count("credential.proven") == 1
    await timed.edge_access.record_use(uuid4())


async def test_a_successor_counts_from_its_first_use(store: Store) -> None:
    cluster = await store.joined()
    state = await store.edge_access.add_rotated(cluster, Role.AGENT, digest("agent-new"), actor="agent")
    assert state is CredentialState.PENDING
    current = await store.credential(cluster, Role.AGENT, "agent-first")
    assert current.state is CredentialState.ACTIVE
    successor = await store.credential(cluster, Role.AGENT, "agent-new")
    await store.edge_access.record_use(successor.id)
    assert [
        (one.secret_sha256, one.state)
        for one in await store.edge_access.credentials(cluster)
        if one.role is Role.AGENT
    ] == [(digest("agent-new"), CredentialState.ACTIVE)]
    assert (await store.credential(cluster, Role.FLUX)).state is CredentialState.ACTIVE
    assert (await store.kinds(cluster))[-1] == "credential.rotated"


async def test_registering_the_same_successor_again_changes_nothing(store: Store) -> None:
    cluster = await store.joined()
    await store.edge_access.add_rotated(cluster, Role.FLUX, digest("new"), actor="agent")
    held, row = await store.edge_access.credentials(cluster), await store.row(cluster)
    again = await store.edge_access.add_rotated(cluster, Role.FLUX, digest("new"), actor="agent")
    assert again is CredentialState.PENDING
    current = await store.edge_access.add_rotated(cluster, Role.FLUX, digest("flux-first"), actor="agent")
    assert current is CredentialState.ACTIVE
    assert (await store.edge_access.credentials(cluster), await store.row(cluster)) == (held, row)


async def test_a_second_successor_replaces_an_unproven_first(store: Store) -> None:
    cluster = await store.joined()
    for secret in ("one", "two"):
        await store.edge_access.add_rotated(cluster, Role.AGENT, digest(secret), actor="agent")
    held = {one.secret_sha256 for one in await store.edge_access.credentials(cluster) if one.role is Role.AGENT}
    assert held == {digest("agent-first"), digest("two")}


async def test_nothing_follows_a_credential_that_is_not_there_or_was_revoked(store: Store) -> None:
    cluster = await store.commissioned()
    rotation = store.edge_access.add_rotated(cluster, Role.AGENT, digest("x"), actor="agent")
    assert await code_of(rotation) == "nothing_to_rotate"
    await store.registered(cluster)
    await store.edge_access.revoke(cluster, actor=ACTOR)
    revoked = store.edge_access.add_rotated(cluster, Role.AGENT, digest("agent-first"), actor="agent")
    assert await code_of(revoked) == "credential_revoked"


async def test_a_rotation_is_wanted_from_the_question_until_the_successor_is_used(timed: Store) -> None:
    cluster = await timed.joined()
    change = (await timed.row(cluster)).change
    both = await timed.edge_access.ask_rotation(cluster, list(Role), actor=ACTOR, reason="A visitor left.")
    assert both == sorted(Role)
    asked = timed.clock.at
    timed.clock.advance(hours=1)
    assert await timed.edge_access.ask_rotation(cluster, [Role.FLUX], actor=ACTOR, reason="Again.") == []
    held = await timed.edge_access.credentials(cluster)
    assert [one.rotation_asked_at for one in held] == [asked, asked]
    assert (await timed.row(cluster)).change > change
    assert (await timed.kinds(cluster)).count("credential.rotation_asked") == 1

    await timed.edge_access.add_rotated(cluster, Role.AGENT, digest("agent-new"), actor="agent")
    current = await timed.credential(cluster, Role.AGENT, "agent-first")
    assert current.rotation_asked_at == asked, "it is wanted until it is proven: an edge may lose what it registered"
    await timed.edge_access.record_use((await timed.credential(cluster, Role.AGENT, "agent-new")).id)
    assert (await timed.credential(cluster, Role.AGENT)).rotation_asked_at is None
    assert (await timed.credential(cluster, Role.FLUX)).rotation_asked_at == asked


async def test_a_rotation_that_nothing_can_follow_is_refused(store: Store) -> None:
    cluster = await store.commissioned()
    assert (
        await code_of(store.edge_access.ask_rotation(cluster, [Role.AGENT], actor=ACTOR, reason=""))
        == "nothing_to_rotate"
    )
    unknown = store.edge_access.ask_rotation(uuid4(), [Role.AGENT], actor=ACTOR, reason="")
    assert await code_of(unknown) == "cluster_unknown"


# --- the end -----------------------------------------------------------------------------------------------


async def test_revocation_ends_all_credentials_and_tokens_at_once(store: Store) -> None:
    cluster = await store.joined()
    await store.token(cluster, "unspent")
    assert await store.edge_access.revoke(cluster, actor=ACTOR) == 2
    assert await store.edge_access.credentials(cluster) == []
    assert await state_of(store, "unspent") is TokenState.REPLACED
    assert await store.edge_access.revoke(cluster, actor=ACTOR) == 0
    assert (await store.kinds(cluster)).count("credential.revoked") == 1


async def test_a_revoked_credential_cannot_be_proven_back(store: Store) -> None:
    cluster = await store.commissioned()
    await store.registered(cluster)
    agent = await store.credential(cluster, Role.AGENT)
    await store.edge_access.revoke(cluster, actor=ACTOR)
    await store.edge_access.record_use(agent.id)
    assert await store.edge_access.credentials(cluster) == []


async def test_a_revoked_credential_is_not_let_in_by_a_fresh_token(store: Store) -> None:
    cluster = await store.joined()
    await store.edge_access.revoke(cluster, actor=ACTOR)
    token = await store.token(cluster, "t2")
    assert await code_of(store.register(token, uid="uid-of-press-shop")) == "credential_revoked"
    assert await state_of(store, "t2") is TokenState.ISSUED
    assert await store.edge_access.credentials(cluster) == []
    await store.register(token, uid="uid-of-press-shop", secrets="second")
    assert {one.state for one in await store.edge_access.credentials(cluster)} == {CredentialState.ACTIVE}


async def test_suspended_credentials_come_back_as_what_they_were(store: Store) -> None:
    accepted = await store.joined("accepted")
    pending = await store.commissioned("pending", settings=MANUAL)
    await store.registered(pending, uid="uid-2", token_id="t2")
    for cluster, back in ((accepted, CredentialState.ACTIVE), (pending, CredentialState.PENDING)):
        fence = await store.fence(cluster)
        await store.edge_access.suspend(fence)
        await store.edge_access.suspend(fence)
        assert set(await states(store, cluster)) == {CredentialState.SUSPENDED}
        await store.edge_access.resume(fence)
        assert set(await states(store, cluster)) == {back}
        kinds = await store.kinds(cluster)
        assert (kinds.count("credential.suspended"), kinds.count("credential.resumed")) == (1, 1)
    assert await state_of(store, "t2") is TokenState.REPLACED


async def test_after_a_silent_end_an_edge_may_only_detach(store: Store) -> None:
    cluster = await store.joined()
    await store.wishes.request_deletion(cluster, actor=ACTOR, force=True)
    fence = await store.fence(cluster)
    await store.edge_access.retire(fence, said_goodbye=False)
    assert set(await states(store, cluster)) == {CredentialState.DETACH_ONLY}
    await store.steps.remove_central_entries(fence, StepName.REMOVE_SETUP_STATUS)
    assert set(await states(store, cluster)) == {CredentialState.DETACH_ONLY}
    await store.edge_reports.goodbye(cluster, 1)
    assert await store.edge_access.credentials(cluster) == []


async def test_after_a_goodbye_nothing_is_let_in(store: Store) -> None:
    cluster = await store.joined()
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    await store.edge_access.retire(await store.fence(cluster), said_goodbye=True)
    assert await store.edge_access.credentials(cluster) == []


def names_a_body_of_entries(text: str) -> bool:
    names = {"entries", *re.findall(r"\bentries AS (\w+)", text)}
    return any(re.search(rf"\b{name}\.(body|\*)", text) for name in names)


async def test_no_status_is_loaded_to_authenticate_an_edge(store: Store) -> None:
    """It may have 64 KiB, which would be read with every heartbeat, poll and fetch."""
    cluster = await store.joined()
    access = store.edge_access
    for read in (access.holder, access.orders, access.with_credentials, access.credentials):
        with statements_of(store.database) as run:
            assert await read(cluster)
        assert run
        assert not [text for text in run if names_a_body_of_entries(text)], read
    with statements_of(store.database) as run:
        await store.directory.get(cluster)
    assert [text for text in run if names_a_body_of_entries(text)], "whoever shows a cluster does read it"


async def test_no_secret_reaches_the_audit_log(store: Store) -> None:
    cluster = await store.joined()
    told = str(await store.audit.timeline(cluster))
    for secret in ("token-of-press-shop", "flux-first", "agent-first"):
        assert digest(secret).hex() not in told
