"""What the siege takes for a loss, although something is there that looks like what it should be."""

from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from sealing_keys import NOW, private_key, sealing_certificate

from bench.agent_load import Write
from bench.siege.losses import (
    DELETION_SECONDS,
    changed_certificates,
    degraded,
    lost_values,
    may_be_there,
    trouble_of,
    undeleted,
    untold_drops,
    value_on_edge,
)
from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.ports.git_server import CommitMessage
from edgewright.sealing import Plaintext, Scope, SealedValue, put_values, seal

ONE, OTHER = "a" * 64, "b" * 64
PATH = f"/v1/cluster/{uuid4()}/secret/team/secret-0/password"


def test_certificates_that_all_changed_to_the_same_foreign_one_are_a_loss() -> None:
    before = {"one": ONE, "two": ONE}
    assert changed_certificates(before, before) == []
    assert len(changed_certificates(before, {"one": OTHER, "two": OTHER})) == 2
    assert len(changed_certificates(before, {"one": ONE, "two": None})) == 1


@pytest.mark.parametrize(
    ("phase", "conditions", "trouble"),
    [
        ("Active", {"Available": "True"}, []),
        ("Active", {"Available": "False"}, ["Available is False"]),
        ("Active", {"Available": "Unknown"}, ["Available is Unknown"]),
        ("Active", {}, ["Available is None"]),
        ("Deleting", {"Available": "True"}, ["is Deleting"]),
    ],
)
def test_an_edge_that_counts_as_silent_is_a_loss(phase: str, conditions: dict[str, str], trouble: list[str]) -> None:
    shown = {
        "name": "one",
        "phase": phase,
        "conditions": [{"type": kind, "status": status} for kind, status in conditions.items()],
    }
    found = trouble_of(shown)
    assert len(found) == len(trouble)
    assert all(word in sentence for word, sentence in zip(trouble, found, strict=True))


def test_an_older_value_under_the_same_certificate_is_a_loss() -> None:
    expected = may_be_there([Write(PATH, "older", answered=True), Write(PATH, "newer", answered=True)])
    states = {PATH: "current"}
    assert lost_values(expected, states, {PATH: "newer"}) == []
    assert len(lost_values(expected, states, {PATH: "older"})) == 1
    assert len(lost_values(expected, states, {PATH: None})) == 1
    assert len(lost_values(expected, {PATH: "stale"}, {PATH: "newer"})) == 1
    assert len(lost_values(expected, {}, {})) == 2


def test_a_value_without_an_answer_may_be_there_until_another_one_is_answered() -> None:
    writes = [Write(PATH, "one", answered=True), Write(PATH, "two", answered=False)]
    assert may_be_there(writes) == {PATH: ["one", "two"]}
    assert may_be_there([*writes, Write(PATH, "three", answered=True)]) == {PATH: ["three"]}
    assert may_be_there(writes[1:]) == {}


def test_a_value_is_read_as_the_edge_reads_it(tmp_path: Path) -> None:
    git, cluster = BareGitServer(tmp_path), uuid4()
    git.create_repository(cluster)
    write(git, cluster, "secret-0", "something")
    path = f"/v1/cluster/{cluster}/secret/team/secret-0/password"
    assert value_on_edge(git, path, private_key()) == "something"
    assert value_on_edge(git, path, generate_private_key(65537, 2048)) is None
    assert value_on_edge(git, path.replace("password", "user"), private_key()) is None
    assert value_on_edge(git, path.replace("secret-0", "secret-1"), private_key()) is None


def gateway(*answers: httpx.Response) -> httpx.AsyncClient:
    """One that gives these answers, the last of them for ever."""
    left = list(answers)
    transport = httpx.MockTransport(lambda _: left.pop(0) if len(left) > 1 else left[0])
    return httpx.AsyncClient(base_url="http://centre", transport=transport)


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (httpx.Response(200, json={"status": "ok", "degraded": []}), []),
        (httpx.Response(200, json={"status": "ok", "degraded": ["sweep"]}), ["/readyz says that sweep is degraded"]),
        (httpx.Response(503, text="Out of reach."), ["/readyz answers 503: Out of reach."]),
    ],
)
async def test_a_centre_that_is_degraded_after_a_siege_is_a_loss(answer: httpx.Response, trouble: list[str]) -> None:
    async with gateway(answer) as http:
        assert await degraded(http, patience=0.3) == trouble


async def test_a_centre_may_be_degraded_right_after_a_flood() -> None:
    late = httpx.Response(200, json={"status": "ok", "degraded": ["sweep"]})
    async with gateway(late, httpx.Response(503), httpx.Response(200, json={"degraded": []})) as http:
        assert await degraded(http) == []


@pytest.mark.parametrize(
    "error", [httpx.ReadTimeout("slow"), httpx.ConnectError("away"), httpx.RemoteProtocolError("")]
)
async def test_a_gateway_that_gives_no_answer_is_told_in_a_sentence(error: httpx.HTTPError) -> None:
    def fails(_: httpx.Request) -> httpx.Response:
        raise error

    async with httpx.AsyncClient(base_url="http://centre", transport=httpx.MockTransport(fails)) as http:
        said = f"no answer: {type(error).__name__} {error}".strip()
        assert await degraded(http, patience=0.3) == [f"/readyz answers 503: {said}"]
        assert await undeleted(http, uuid4(), patience=0.3) == [
            f"the hostile cluster cannot be deleted by force: 503: {said}"
        ]
        assert len(await untold_drops(http, uuid4(), patience=0.3)) == 1


async def test_nobody_waits_longer_for_one_answer_than_for_the_deletion() -> None:
    waits: list[float] = []

    def note(request: httpx.Request) -> httpx.Response:
        waits.append(request.extensions["timeout"]["read"])
        return GONE

    async with httpx.AsyncClient(base_url="http://centre", transport=httpx.MockTransport(note)) as http:
        assert await undeleted(http, uuid4()) == []
    assert max(waits) <= DELETION_SECONDS


TAKEN, THERE, GONE = httpx.Response(202), httpx.Response(200), httpx.Response(410)


@pytest.mark.parametrize(
    ("answers", "trouble"),
    [
        ([TAKEN, THERE, GONE], []),
        ([httpx.Response(503, text="busy"), GONE], []),
        ([TAKEN, THERE], ["the hostile cluster, deleted by force, answers 200 after 1 s"]),
        ([httpx.Response(503, text="busy"), TAKEN, GONE], []),
        ([httpx.Response(503, text="busy")], ["the hostile cluster cannot be deleted by force: 503: busy"]),
    ],
)
async def test_an_attacked_cluster_that_cannot_be_deleted_by_force_is_a_loss(
    answers: list[httpx.Response], trouble: list[str]
) -> None:
    async with gateway(*answers) as http:
        assert await undeleted(http, uuid4(), patience=1) == trouble


def page(kind: EventKind, following: int | None) -> httpx.Response:
    return httpx.Response(200, json={"items": [{"kind": kind}], "next": following})


@pytest.mark.parametrize(("kind", "sentences"), [(EventKind.SIGNALS_DROPPED, 0), (EventKind.EDGE_STATUS, 1)])
async def test_a_flood_of_which_nothing_was_dropped_shows_nothing(kind: EventKind, sentences: int) -> None:
    async with gateway(page(EventKind.EDGE_STATUS, 7), page(kind, None)) as http:
        assert len(await untold_drops(http, uuid4(), patience=0.3)) == sentences


async def test_drops_may_be_told_a_moment_after_the_deletion() -> None:
    async with gateway(page(EventKind.EDGE_STATUS, None), page(EventKind.SIGNALS_DROPPED, None)) as http:
        assert await untold_drops(http, uuid4()) == []


async def test_a_long_timeline_is_read_to_its_end() -> None:
    pages = [page(EventKind.EDGE_STATUS, number) for number in range(1, 30)]
    async with gateway(*pages, page(EventKind.SIGNALS_DROPPED, None)) as http:
        assert await untold_drops(http, uuid4(), patience=0) == []


def write(git: BareGitServer, cluster: UUID, name: str, value: str) -> None:
    certificate = sealing_certificate()
    secret = SecretReference("team", name)
    text = seal(Plaintext(value.encode()), certificate, scope=Scope.STRICT, secret=secret)
    document = put_values(
        None, SecretReference("team", name), {"password": SealedValue(text, certificate.fingerprint, NOW)}
    )
    git.commit(cluster, {f"edo/secrets/team/{name}.yaml": document}, CommitMessage("x", "x"), expected_head=None)
