"""Values that no key opens are found unasked, and what is in order costs nobody anything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random

import pytest
from scripted_centre import QuickClock
from sealing_keys import certificate_pem, private_key
from structlog.testing import capture_logs

from edgewright.agent.key_check import KeyCheck
from edgewright.agent.lacks import MOST_NAMED, Unopened
from edgewright.agent.observation import Observation
from edgewright.agent.opening import Opening, Stage, sealing_digest
from edgewright.agent.resealing import fingerprint_of
from edgewright.agent.sealing_controller import SealedSecret
from edgewright.errors import EdgewrightError, Waiting

OLD, NEW = certificate_pem(private_key()), certificate_pem(private_key(3072))


@dataclass
class Edge:
    """Holds SealedSecrets; values that begin with `lost` no key opens."""

    held: dict[str, Mapping[str, str]]
    certificate: str | None = OLD
    sealed_with: str = OLD
    troubles: dict[str, str] = field(default_factory=dict)
    asked: list[SealedSecret] = field(default_factory=list)
    away: EdgewrightError | None = None
    was_seen: bool = True

    def openings(self) -> list[Opening] | None:
        return [self._opening(secret, values) for secret, values in self.held.items()] if self.was_seen else None

    def _opening(self, secret: str, values: Mapping[str, str]) -> Opening:
        namespace, name = secret.split("/")
        sentence = self.troubles.get(secret, "")
        stage = Stage.REFUSED if sentence else Stage.OPENED
        certificates = frozenset({fingerprint_of(self.sealed_with)})
        return Opening(namespace, name, sealing_digest(namespace, name, values), stage, sentence, certificates)

    async def sealed_secret(self, namespace: str, name: str) -> SealedSecret | None:
        values = self.held.get(f"{namespace}/{name}")
        return None if values is None else SealedSecret(namespace, name, {}, values)

    async def opens(self, secret: SealedSecret) -> bool:
        if self.away is not None:
            raise self.away
        self.asked.append(secret)
        return not any(value.startswith("lost") for value in secret.values.values())


@pytest.fixture
def edge() -> Edge:
    return Edge(
        {"default/db": {"user": "u", "password": "lost p"}, "other/c": {"k": "c"}, "other/d": {"k": "lost d"}}
    )


@pytest.fixture
def check(edge: Edge) -> Iterator[KeyCheck]:
    with capture_logs():
        yield KeyCheck(
            edge,
            edge,
            certificate=lambda: edge.certificate,
            openings=edge.openings,
            pause_seconds=60,
            clock=QuickClock(0),
            chance=Random(1),
        )


def unopened(secret: str, key: str, ciphertext: str) -> Unopened:
    return Unopened(secret, key, sha256(ciphertext.encode()).hexdigest())


LOST = (unopened("default/db", "password", "lost p"), unopened("other/d", "k", "lost d"))


async def test_what_the_controllers_own_certificate_has_sealed_is_not_tried(edge: Edge, check: KeyCheck) -> None:
    await check.look()
    assert check.unopened == () and edge.asked == []


async def test_another_certificate_has_every_older_value_tried_once(edge: Edge, check: KeyCheck) -> None:
    await check.look()
    edge.certificate = NEW
    await check.look()
    assert check.unopened == LOST
    assert [sorted(each.values) for each in edge.asked] == [
        ["password", "user"],
        ["password"],
        ["user"],
        ["k"],
        ["k"],
    ], "a value that is lost hides no other, and one that is alone is tried once"
    edge.asked.clear()
    await check.look()
    assert check.unopened == LOST and edge.asked == [], "once"


async def test_what_the_controller_cannot_do_is_tried_whatever_sealed_it(edge: Edge, check: KeyCheck) -> None:
    edge.troubles = {"other/d": "no key could decrypt secret (k)", "other/c": "Resource exists already"}
    await check.look()
    assert check.unopened == LOST[1:], "a refusal of another kind says nothing of keys"
    edge.asked.clear()
    await check.look()
    assert edge.asked == []


async def test_a_value_that_is_entered_again_heals(edge: Edge, check: KeyCheck) -> None:
    edge.certificate = NEW
    await check.look()
    edge.held["default/db"] = {"user": "u", "password": "new"}
    await check.look()
    assert check.unopened == LOST[1:]
    del edge.held["other/d"]
    await check.look()
    assert check.unopened is not None and len(check.unopened) == 0


async def test_what_cannot_be_tried_now_is_tried_later_and_nothing_is_done_twice(edge: Edge, check: KeyCheck) -> None:
    edge.certificate, edge.away = NEW, Waiting("Away.", code="sealing_controller_away")
    await check.look()
    assert check.unopened is None
    edge.away = None
    await check.look()
    assert check.unopened == LOST
    edge.away, edge.certificate = Waiting("Away.", code="sealing_controller_away"), OLD
    edge.troubles = {"other/c": "x"}
    await check.look()
    assert check.unopened == LOST, "what was known stays"


async def test_before_the_sealed_secrets_or_a_certificate_were_seen_nothing_is_known(
    edge: Edge, check: KeyCheck
) -> None:
    edge.was_seen, edge.certificate = False, NEW
    await check.look()
    edge.was_seen, edge.certificate = True, None
    await check.look()
    assert check.unopened is None and edge.asked == []


def test_the_first_of_many_are_named_and_all_are_counted() -> None:
    lost = tuple(unopened("default/db", f"k{number:03}", "x") for number in range(500))
    said = Observation(unopened=lost).to_json()
    assert len(said["unopened"]) == MOST_NAMED and said["unopened_count"] == 500
    assert Observation(unopened=lost[:2]).to_json().keys() == {"unopened"}
    assert Observation(unopened=()).to_json() == {"unopened": []}
    assert Observation().to_json() == {}
