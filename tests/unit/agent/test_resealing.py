"""Re-sealing on the edge: paced, one value that is lost blocks no other, and the centre alone keeps anything."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from scripted_centre import QuickClock, ReceivedRequest, Reply, ScriptedCentre, scripted_centre
from sealing_keys import certificate_pem, private_key
from structlog.testing import capture_logs

from edgewright.agent.attachment import Attachment
from edgewright.agent.centre import Centre
from edgewright.agent.resealing import LARGEST_BODY, MOST_SECRETS, Resealer, fingerprint_of
from edgewright.agent.sealing_controller import APART, MOST_TURNS, SealedSecret, SealingController, Unreadable
from edgewright.errors import EdgewrightError, Waiting

PEM = certificate_pem(private_key())
OTHER = certificate_pem(private_key(3072))
SCOPE = {"sealedsecrets.bitnami.com/cluster-wide": "true"}


def digest(ciphertext: str) -> str:
    return sha256(ciphertext.encode()).hexdigest()


class Edge:
    """Holds SealedSecrets, by ``namespace/name``."""

    def __init__(self, held: Mapping[str, Mapping[str, str]]) -> None:
        self.held = dict(held)
        self.fails: EdgewrightError | None = None
        self.certificates = iter([PEM] * 1000)

    async def sealed_secret(self, namespace: str, name: str) -> SealedSecret | None:
        if self.fails is not None:
            raise self.fails
        values = self.held.get(f"{namespace}/{name}")
        return None if values is None else SealedSecret(namespace, name, SCOPE, values)

    async def certificate(self) -> str:
        return next(self.certificates)


def sealed_secrets(request: ReceivedRequest) -> Reply:
    """A controller that says `new` in front of what it can open; what is called `lost` it cannot."""
    values: dict[str, str] = request.body["spec"]["encryptedData"]
    lost = any(value.startswith("lost") for value in values.values())
    if request.path == "/v1/verify":
        return Reply(409 if lost else 200)
    if lost:
        return Reply(500)
    return Reply(200, {"spec": {"encryptedData": {key: f"new {value}" for key, value in values.items()}}})


@pytest.fixture
def controller() -> Iterator[ScriptedCentre]:
    with scripted_centre(sealed_secrets) as served:
        yield served


class Wants:
    """A centre that wants Secrets until they are handed in."""

    def __init__(self, *secrets: str) -> None:
        self.wanted = list(secrets)
        self.taken: list[tuple[str, Sequence[Mapping[str, Any]]]] = []
        self.never_takes: set[str] = set()

    async def resealed(self, fingerprint: str, secrets: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        self.taken.append((fingerprint, secrets))
        named = {f"{each['namespace']}/{each['name']}" for each in secrets}
        self.wanted = [each for each in self.wanted if each not in named or each in self.never_takes]
        return self.wanted


async def reseal(edge: Edge, controller: ScriptedCentre, centre: Any, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """One round; returns what was logged."""
    clock = QuickClock(lasts=10_000)
    served = SealingController(controller.url, clock)
    resealing = Resealer(edge, served, edge.certificate)
    with capture_logs() as logged:
        running = asyncio.create_task(resealing.run())
        resealing.want(wanted, centre)
        async with asyncio.timeout(60):
            while not any(line.get("state") in {"done", "interrupted"} for line in logged):
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await served.close()
    return [dict(line) for line in logged]


async def test_each_value_goes_with_the_digest_of_what_it_replaces(controller: ScriptedCentre) -> None:
    edge, centre = Edge({"default/db": {"user": "a", "password": "b"}}), Wants("default/db")
    await reseal(edge, controller, centre, ["default/db"])
    [(fingerprint, [secret])] = centre.taken
    assert fingerprint == fingerprint_of(PEM)
    assert secret == {
        "namespace": "default",
        "name": "db",
        "values": {
            "user": {"old_sha256": digest("a"), "ciphertext": "new a"},
            "password": {"old_sha256": digest("b"), "ciphertext": "new b"},
        },
        "unreadable": {},
        "absent": False,
    }
    [request] = controller.requests
    assert request.path == "/v1/rotate"
    assert request.body["metadata"]["annotations"] == SCOPE
    assert request.body["spec"]["template"]["metadata"]["annotations"] == SCOPE


async def test_a_value_that_is_lost_is_told_and_blocks_no_other(controller: ScriptedCentre) -> None:
    edge = Edge(
        {"default/db": {"user": "a", "password": "lost"}, "default/gone": {"k": "lost"}, "other/c": {"k": "c"}}
    )
    centre = Wants("default/db", "default/gone", "other/c", "other/absent")
    await reseal(edge, controller, centre, list(centre.wanted))
    [(_, [first, gone, third, absent])] = centre.taken
    assert first["values"] == {"user": {"old_sha256": digest("a"), "ciphertext": "new a"}}
    assert first["unreadable"] == {"password": digest("lost")}
    assert (gone["values"], gone["unreadable"]) == ({}, {"k": digest("lost")})
    assert list(third["values"]) == ["k"]
    assert (absent["absent"], absent["values"], absent["unreadable"]) == (True, {}, {})


async def test_the_controller_is_asked_twice_a_second_at_most(controller: ScriptedCentre) -> None:
    clock, asked = QuickClock(lasts=10_000), list[float]()
    refusals = iter([False, True, False, True, True])

    def busy(request: ReceivedRequest) -> Reply:
        asked.append(clock.monotonic())
        return Reply(429, headers={"Retry-After": "3"}) if next(refusals, False) else sealed_secrets(request)

    controller.reply = busy
    served = SealingController(controller.url, clock)
    for _ in range(6):
        assert await served.reseal(SealedSecret("default", "db", {}, {"k": "v"})) == {"k": "new v"}
    await served.close()
    apart = [later - earlier for earlier, later in pairwise(asked)]
    assert len(asked) == 9
    assert min(apart) >= 0.5 < APART
    assert [round(pause) for pause in apart if pause > 1] == [3, 3, 3]


async def test_a_controller_that_is_always_busy_is_left_alone(controller: ScriptedCentre) -> None:
    controller.reply = lambda _request: Reply(429)
    served = SealingController(controller.url, QuickClock(lasts=10_000))
    with pytest.raises(Waiting, match="too often"):
        await served.reseal(SealedSecret("default", "db", {}, {"k": "v"}))
    await served.close()
    assert len(controller.requests) == MOST_TURNS


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, b"<html>"),
        Reply(200, {"spec": {}}),
        Reply(200, {"spec": {"encryptedData": {"another": "x"}}}),
        Reply(500),  # and it can be verified
        Reply(404),
    ],
)
async def test_what_is_no_answer_is_no_verdict(controller: ScriptedCentre, reply: Reply) -> None:
    controller.reply = lambda request: Reply(200) if request.path == "/v1/verify" else reply
    served = SealingController(controller.url, QuickClock(lasts=10_000))
    with pytest.raises(Waiting) as trouble:
        await served.reseal(SealedSecret("default", "db", {}, {"k": "v"}))
    await served.close()
    assert not isinstance(trouble.value, Unreadable)


async def test_what_was_done_before_a_failure_is_handed_in(controller: ScriptedCentre) -> None:
    edge, centre = Edge({"default/a": {"k": "a"}, "default/b": {"k": "b"}}), Wants("default/a", "default/b")
    answers = iter([Reply(200, {"spec": {"encryptedData": {"k": "new a"}}})])
    controller.reply = lambda _request: next(answers, Reply(503))
    logged = await reseal(edge, controller, centre, list(centre.wanted))
    [(_, [only])] = centre.taken
    assert only["name"] == "a"
    assert logged[-1]["state"] == "interrupted"
    assert centre.wanted == ["default/b"]


async def test_it_goes_on_with_what_the_centre_wants_next_and_tries_nothing_twice(controller: ScriptedCentre) -> None:
    names = [f"default/s{number:02}" for number in range(MOST_SECRETS + 5)]
    edge, centre = Edge({name: {"k": name} for name in names}), Wants(*names)
    centre.never_takes = {"default/s03"}
    await reseal(edge, controller, centre, names[:2])
    sizes = [len(secrets) for _, secrets in centre.taken]
    assert sizes == [2, MOST_SECRETS, 3]
    assert centre.wanted == ["default/s03"]


async def test_bodies_stay_small(controller: ScriptedCentre) -> None:
    names = ["default/a", "default/b", "default/c"]
    edge, centre = Edge({name: {"k": "x" * LARGEST_BODY} for name in names}), Wants(*names)
    await reseal(edge, controller, centre, names)
    assert [len(secrets) for _, secrets in centre.taken] == [1, 1, 1]


async def test_what_was_sealed_while_the_key_changed_is_sealed_once_more(controller: ScriptedCentre) -> None:
    edge, centre = Edge({"default/db": {"k": "v"}}), Wants("default/db")
    edge.certificates = iter([PEM, OTHER, OTHER, OTHER])
    await reseal(edge, controller, centre, ["default/db"])
    assert [fingerprint for fingerprint, _ in centre.taken] == [fingerprint_of(OTHER)]
    assert len(controller.requests) == 2


async def test_the_api_server_away_interrupts_it(controller: ScriptedCentre) -> None:
    edge, centre = Edge({}), Wants("default/db")
    edge.fails = Waiting("Kubernetes cannot be reached.", code="kubernetes_away")
    logged = await reseal(edge, controller, centre, ["default/db"])
    assert (logged[-1]["state"], logged[-1]["code"]) == ("interrupted", "kubernetes_away")
    assert centre.taken == []


def test_what_is_no_certificate_has_no_fingerprint() -> None:
    with pytest.raises(Waiting):
        fingerprint_of("<html>Please log in</html>")


async def test_over_http_the_centre_is_told_and_says_what_is_next() -> None:
    with scripted_centre(lambda _request: Reply(200, {"ignored": [], "reseal": ["other/more"]})) as served:
        centre = Centre(Attachment("u", "ewa_secret", served.url, "cluster", 1))
        body = [{"namespace": "default", "name": "db"}]
        assert await centre.resealed("f" * 64, body) == ("other/more",)
        [request] = served.of("/v1/agent/resealed")
        assert request.body == {"fingerprint": "f" * 64, "secrets": body}
        served.reply = lambda _request: Reply(200, b"<html>")
        with pytest.raises(Waiting):
            await centre.resealed("f" * 64, body)
        await centre.close()
        with pytest.raises(Waiting):
            await centre.resealed("f" * 64, body)


async def test_whoever_hands_in_while_the_agent_turns_to_another_centre_is_told_to_wait() -> None:
    arrived, let_go = threading.Event(), threading.Event()

    def slow(_request: ReceivedRequest) -> Reply:
        arrived.set()
        let_go.wait(30)
        return Reply(200, {"ignored": [], "reseal": []})

    with scripted_centre(slow) as served:
        centre = Centre(Attachment("u", "ewa_secret", served.url, "cluster", 1))
        handing_in = asyncio.create_task(centre.resealed("f" * 64, [{"namespace": "default", "name": "db"}]))
        assert await asyncio.to_thread(arrived.wait, 30)
        await centre.close()
        let_go.set()
        with pytest.raises(Waiting):
            await handing_in


async def test_the_controller_is_asked_whether_it_opens_a_value_without_changing_it(
    controller: ScriptedCentre,
) -> None:
    served = SealingController(controller.url, QuickClock(lasts=10_000))
    assert await served.opens(SealedSecret("default", "db", SCOPE, {"k": "a"}))
    assert not await served.opens(SealedSecret("default", "db", SCOPE, {"k": "lost"}))
    assert {request.path for request in controller.requests} == {"/v1/verify"}
    controller.reply = lambda _request: Reply(500)
    with pytest.raises(Waiting) as trouble:
        await served.opens(SealedSecret("default", "db", SCOPE, {"k": "a"}))
    assert trouble.value.code == "sealing_controller_away"
    await served.close()
