"""Re-sealing: asked for by an operator, answered by the agent, committed value by value where nothing else came."""

import asyncio
from base64 import b64encode
from typing import Any
from uuid import UUID

import httpx
import pytest
from gateway_centre import EdgeCredentials, GatewayCentre
from resealing_edge import ResealingEdge, digest, sealed, status

from api.routes import resealing
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.operators import Permission
from edgewright.sealing.resealed import judge_answers

DB = "default/db"


@pytest.fixture
async def edge(centre: GatewayCentre) -> EdgeCredentials:
    """An edge that has reported its first certificate."""
    edge = await centre.register(await centre.create("press-shop"))
    await report(centre, edge, 1)
    return edge


@pytest.fixture
def controller(centre: GatewayCentre, edge: EdgeCredentials) -> ResealingEdge:
    """What runs on it: a second key has come."""
    return ResealingEdge(centre.git, edge.cluster)


@pytest.fixture
async def operator(centre: GatewayCentre) -> httpx.AsyncClient:
    return await centre.operator(Permission.SECRETS, Permission.READ)


async def report(centre: GatewayCentre, edge: EdgeCredentials, number: int) -> None:
    answer = await centre.client(edge.as_agent).put("/v1/agent/status", json=status(number))
    assert answer.status_code == 204, answer.text


async def put(operator: httpx.AsyncClient, cluster: UUID, secret: str = DB, **values: bytes) -> None:
    namespace, _, name = secret.partition("/")
    changes = [
        {"namespace": namespace, "name": name, "key": key, "value_base64": b64encode(value).decode()}
        for key, value in values.items()
    ]
    answer = await operator.post(f"/v1/cluster/{cluster}/secret", json={"changes": changes})
    assert answer.status_code == 200, answer.text


async def ask(operator: httpx.AsyncClient, cluster: UUID) -> dict[str, Any]:
    answer = await operator.post(f"/v1/cluster/{cluster}/reseal", json={"reason": "a stolen disk"})
    assert answer.status_code == 202, answer.text
    begun: dict[str, Any] = answer.json()
    return begun


async def asked_for(centre: GatewayCentre, edge: EdgeCredentials) -> list[str]:
    """What the next answer to a heartbeat names."""
    answer = await centre.client(edge.as_agent).post("/v1/agent/heartbeat", json={"nonce": "n"})
    named: list[str] = answer.json()["reseal"]
    return named


async def hand_in(centre: GatewayCentre, edge: EdgeCredentials, body: dict[str, Any]) -> dict[str, Any]:
    answer = await centre.client(edge.as_agent).post("/v1/agent/resealed", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def commit(centre: GatewayCentre, cluster: UUID) -> None:
    """What the workflow does when it is nudged."""
    await centre.workflow.commit(cluster, [])


async def listed(operator: httpx.AsyncClient, cluster: UUID) -> dict[str, str]:
    document = (await operator.get(f"/v1/cluster/{cluster}/secret")).json()
    return {f"{each['namespace']}/{each['name']}/{each['key']}": each["state"] for each in document["items"]}


async def test_stale_values_are_sealed_anew_in_one_commit(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, controller: ResealingEdge
) -> None:
    await put(operator, edge.cluster, user=b"ann", password=b"s3cr3t")
    await put(operator, edge.cluster, "other/more", token=b"\x00\xff")
    await report(centre, edge, 2)
    await put(operator, edge.cluster, "default/new", key=b"v")
    assert await asked_for(centre, edge) == []
    before = centre.git.head(edge.cluster)
    begun = await ask(operator, edge.cluster)
    assert (begun["secrets"], begun["left"], begun["reason"]) == (2, 2, "a stolen disk")
    assert await asked_for(centre, edge) == [DB, "other/more"]

    told = await hand_in(centre, edge, controller.body([DB]))
    assert told == {"ignored": [], "reseal": ["other/more"]}
    await commit(centre, edge.cluster)
    assert centre.git.head(edge.cluster) == before, "what is gathered waits for the rest"
    assert await hand_in(centre, edge, controller.body(["other/more"])) == {"ignored": [], "reseal": []}
    await commit(centre, edge.cluster)

    [newest, parent] = centre.git.log(edge.cluster, limit=2)
    assert parent.commit == before
    assert newest.message.startswith("Re-seal 3 secret values\n")
    controller.keys = [2]
    assert controller.opened(DB) == {"user": b"ann", "password": b"s3cr3t"}
    assert controller.opened("other/more") == {"token": b"\x00\xff"}
    assert set((await listed(operator, edge.cluster)).values()) == {"current"}
    answer = await operator.post(f"/v1/cluster/{edge.cluster}/reseal")
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_reseal")


async def test_nothing_is_resealed_unasked(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, controller: ResealingEdge
) -> None:
    await put(operator, edge.cluster, password=b"s3cr3t")
    await report(centre, edge, 2)
    answer = await centre.client(edge.as_agent).post("/v1/agent/resealed", json=controller.body([DB]))
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_reseal")


async def test_a_value_that_was_put_meanwhile_wins(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, controller: ResealingEdge
) -> None:
    await put(operator, edge.cluster, before=b"old", between=b"old", after=b"old")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    body = controller.body([DB])
    await put(operator, edge.cluster, before=b"new")
    assert (await hand_in(centre, edge, body))["ignored"] == []
    await put(operator, edge.cluster, between=b"new")
    await commit(centre, edge.cluster)
    await put(operator, edge.cluster, after=b"new")
    assert controller.opened(DB) == {"before": b"new", "between": b"new", "after": b"new"}
    assert set((await listed(operator, edge.cluster)).values()) == {"current"}
    kinds = [line["kind"] for line in (await timeline(operator, edge.cluster))]
    assert kinds.count("secret.resealed") == 1


async def timeline(operator: httpx.AsyncClient, cluster: UUID) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = (await operator.get(f"/v1/cluster/{cluster}/timeline")).json()["items"]
    return lines


async def test_an_edge_that_is_behind_is_asked_again(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, controller: ResealingEdge
) -> None:
    await put(operator, edge.cluster, password=b"old")
    early = controller.body([DB])
    await put(operator, edge.cluster, password=b"newer", user=b"ann")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    absent = controller.body(["default/nowhere"]) | {
        "secrets": [{"namespace": "default", "name": "db", "absent": True}]
    }
    for body, problem in ((early, "another value of password"), (absent, "does not have it yet")):
        told = await hand_in(centre, edge, body)
        [ignored] = told["ignored"]
        assert ignored["secret"] == DB
        assert problem in ignored["problem"]
        assert told["reseal"] == [DB]
    await hand_in(centre, edge, controller.body([DB]))
    await commit(centre, edge.cluster)
    controller.keys = [2]
    assert controller.opened(DB) == {"password": b"newer", "user": b"ann"}


LIES = {
    "no base64": "!" * 500,
    "no envelope": b64encode(b"\x00" * 500).decode(),
    "another length": sealed(b"longer than it was", DB, 2),
    "nothing": "",
    "another key's size": b64encode((512).to_bytes(2, "big") + bytes(512 + 6 + 16)).decode(),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_that_has_not_the_form_of_the_truth_changes_nothing(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, controller: ResealingEdge, lie: str
) -> None:
    await put(operator, edge.cluster, password=b"s3cr3t")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    before = centre.git.head(edge.cluster)
    body = controller.body([DB])
    body["secrets"][0]["values"]["password"]["ciphertext"] = LIES[lie]
    told = await hand_in(centre, edge, body)
    [ignored] = told["ignored"]
    assert "no value that is sealed" in ignored["problem"]
    await commit(centre, edge.cluster)
    assert centre.git.head(edge.cluster) == before


async def test_a_lie_destroys_only_what_its_own_commit_names_and_can_be_reverted(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, controller: ResealingEdge
) -> None:
    neighbour = await centre.register(await centre.create("neighbour"), uid="uid-2")
    await report(centre, neighbour, 1)
    await put(operator, neighbour.cluster, password=b"theirs")
    await put(operator, edge.cluster, password=b"s3cr3t")
    await put(operator, edge.cluster, "other/more", token=b"t")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    before, theirs = centre.git.head(edge.cluster), centre.git.head(neighbour.cluster)
    assert before
    liar = controller.body([DB, "other/more"])
    of_another_secret = sealed(b"s3cr3t", "default/stranger", 2)
    liar["secrets"][0]["values"]["password"]["ciphertext"] = of_another_secret
    liar["secrets"][0]["values"]["invented"] = {"old_sha256": "0" * 64, "ciphertext": of_another_secret}
    liar["secrets"].append({**liar["secrets"][0], "name": "invented"})
    await hand_in(centre, edge, liar)
    await commit(centre, edge.cluster)
    assert controller.opened(DB) == {"password": None}
    assert controller.opened("default/invented") == {}
    assert controller.opened("other/more") == {"token": b"t"}
    assert centre.git.head(neighbour.cluster) == theirs

    head = centre.git.head(edge.cluster)
    files = {
        path: centre.git.read(edge.cluster, path, at=before) for path in centre.git.list(edge.cluster, "", at=before)
    }
    centre.git.commit(edge.cluster, files, CommitMessage("Revert", actor="token:ann"), expected_head=head)
    assert controller.opened(DB) == {"password": b"s3cr3t"}


async def test_what_no_key_opens_is_named_and_blocks_nothing_else(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, controller: ResealingEdge
) -> None:
    await put(operator, edge.cluster, user=b"ann", password=b"s3cr3t")
    await put(operator, edge.cluster, "other/more", token=b"t")
    await report(centre, edge, 3)
    await put(operator, edge.cluster, password=b"sealed with a key that is lost")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    await hand_in(centre, edge, controller.body(await asked_for(centre, edge)))
    await commit(centre, edge.cluster)
    document = (await operator.get(f"/v1/cluster/{edge.cluster}/secret")).json()
    assert document["must_reenter"] == ["default/db/password"]
    states = await listed(operator, edge.cluster)
    assert states == {"default/db/user": "current", "default/db/password": "stale", "other/more/token": "current"}
    [line] = [each for each in await timeline(operator, edge.cluster) if each["kind"] == "reseal.unreadable"]
    assert "default/db/password" in line["message"]
    assert "Enter these values again" in line["message"]
    await put(operator, edge.cluster, password=b"entered again")
    document = (await operator.get(f"/v1/cluster/{edge.cluster}/secret")).json()
    assert document["must_reenter"] == []
    assert controller.opened(DB) == {"user": b"ann", "password": b"entered again"}


async def test_a_value_that_was_never_unreadable_is_not_called_so(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, controller: ResealingEdge
) -> None:
    await put(operator, edge.cluster, password=b"old")
    old = controller.ciphertexts(DB)["password"]
    await put(operator, edge.cluster, password=b"newer")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    body = {
        "fingerprint": controller.fingerprint,
        "secrets": [{"namespace": "default", "name": "db", "unreadable": {"password": digest(old)}}],
    }
    assert (await hand_in(centre, edge, body))["reseal"] == [DB]
    assert (await operator.get(f"/v1/cluster/{edge.cluster}/secret")).json()["must_reenter"] == []


async def test_what_is_entered_while_an_answer_is_judged_is_not_called_unreadable(
    centre: GatewayCentre,
    edge: EdgeCredentials,
    operator: httpx.AsyncClient,
    controller: ResealingEdge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await report(centre, edge, 3)
    await put(operator, edge.cluster, password=b"sealed with a key that is lost")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    loop = asyncio.get_running_loop()

    def entered_meanwhile(*given: Any) -> Any:
        judged = judge_answers(*given)
        asyncio.run_coroutine_threadsafe(put(operator, edge.cluster, password=b"entered"), loop).result(30)
        return judged

    monkeypatch.setattr(resealing, "judge_answers", entered_meanwhile)
    assert (await hand_in(centre, edge, controller.body([DB])))["reseal"] == [DB]
    monkeypatch.undo()
    assert (await hand_in(centre, edge, controller.body([DB])))["reseal"] == []
    assert (await operator.get(f"/v1/cluster/{edge.cluster}/secret")).json()["must_reenter"] == []
    assert controller.opened(DB) == {"password": b"entered"}


async def test_values_for_another_certificate_than_the_one_in_use_are_refused(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, controller: ResealingEdge
) -> None:
    await put(operator, edge.cluster, password=b"s3cr3t")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    controller.keys = [1, 2, 3]
    answer = await centre.client(edge.as_agent).post("/v1/agent/resealed", json=controller.body([DB]))
    assert (answer.status_code, answer.json()["code"]) == (409, "certificate_differs")
    assert await asked_for(centre, edge) == [DB]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"fingerprint": "short", "secrets": []},
        {"fingerprint": "0" * 64, "secrets": [{"namespace": "../..", "name": "db"}]},
        {"fingerprint": "0" * 64, "secrets": [{"namespace": "default", "name": "db", "yaml": "a: b"}]},
        {"fingerprint": "0" * 64, "secrets": [{"namespace": "default", "name": "db"}] * 101},
    ],
)
async def test_a_body_that_is_none_is_refused(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient, body: dict[str, Any]
) -> None:
    await put(operator, edge.cluster, password=b"s3cr3t")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    answer = await centre.client(edge.as_agent).post("/v1/agent/resealed", json=body)
    assert answer.status_code == 422, answer.text
    assert await asked_for(centre, edge) == [DB]


async def test_each_answer_names_a_bounded_number(
    centre: GatewayCentre,
    edge: EdgeCredentials,
    operator: httpx.AsyncClient,
    controller: ResealingEdge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resealing, "MOST_WANTED", 2)
    monkeypatch.setattr("api.orders.MOST_WANTED", 2)
    await asyncio.gather(*(put(operator, edge.cluster, f"default/s{n}", k=b"v") for n in range(5)))
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    named, rounds = await asked_for(centre, edge), 0
    while named:
        assert len(named) <= 2
        rounds += 1
        named = (await hand_in(centre, edge, controller.body(named)))["reseal"]
    assert rounds == 3
    await commit(centre, edge.cluster)
    assert set((await listed(operator, edge.cluster)).values()) == {"current"}


async def test_who_may_ask_and_when(
    centre: GatewayCentre, edge: EdgeCredentials, operator: httpx.AsyncClient
) -> None:
    path = f"/v1/cluster/{edge.cluster}/reseal"
    assert (await (await centre.operator(Permission.CLUSTERS)).post(path)).status_code == 403
    young = await centre.create("young")
    answer = await operator.post(f"/v1/cluster/{young}/reseal")
    assert (answer.status_code, answer.json()["code"]) == (404, "no_edge_status")
    await put(operator, edge.cluster, password=b"s3cr3t")
    await report(centre, edge, 2)
    await ask(operator, edge.cluster)
    admin = await centre.operator(Permission.ADMIN)
    assert (await admin.delete(f"/v1/cluster/{edge.cluster}")).status_code == 202
    assert (await operator.post(path)).json()["code"] == "deleting"
    assert await asked_for(centre, edge) == []
