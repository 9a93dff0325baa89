"""What a client of the chaos runs writes down of an answer."""

from pathlib import Path

import httpx
import pytest
from sealing_keys import certificate_pem, private_key

from tools.chaos import requests
from tools.chaos.centre import Address
from tools.chaos.journal import Journal, read_lines
from tools.chaos.journaling_client import JournalingClient, SentRequest
from tools.chaos.wishes import Step

CLUSTER = "0b5ff2b0-6f0c-4b7d-8a53-3fd0cd0f0fa5"
WRITE = requests.write_entry(
    Step("change", asked={"name": "press", "fields": {"namespace": "edge", "chart": None, "stamp": "1"}}),
    CLUSTER,
    etag="1",
)


class Refusing(JournalingClient):
    """A gateway, or its successor, says no."""

    def __init__(self, address: Address, journal: Journal, status: int, *, killing: bool) -> None:
        super().__init__(address, journal)
        self._status, self._killing = status, killing

    async def _send(self, request: SentRequest) -> httpx.Response:
        if self._killing:
            self.journal.killed("kill", ["gateway-1"])
        return httpx.Response(self._status, json={"code": "refused"})


@pytest.mark.parametrize(
    ("request_", "status", "behind_proxy", "killing", "outcomes"),
    [
        (requests.remove(CLUSTER), 404, True, True, ["maybe", "no"]),
        (WRITE, 412, True, True, ["maybe", "no"]),
        (requests.remove(CLUSTER), 404, True, False, ["no"]),
        (requests.remove(CLUSTER), 404, False, True, ["no"]),
        (requests.remove(CLUSTER), 409, True, True, ["no"]),
        (WRITE, 429, True, True, ["maybe", "no"]),
        (requests.resume(CLUSTER), 404, True, True, ["no"]),
    ],
)
async def test_a_refusal_may_follow_on_an_answer_that_died_with_its_gateway_behind_a_proxy(
    tmp_path: Path, request_: SentRequest, status: int, behind_proxy: bool, killing: bool, outcomes: list[str]
) -> None:
    """nginx sends a DELETE or a PUT once more to the next gateway, a POST never."""
    authority = tmp_path / "authority.pem"
    authority.write_text(certificate_pem(private_key()))
    journal = Journal(tmp_path / "journal")
    journal.killed("kill", ["long before"])
    client = Refusing(
        Address("http://centre", "token", "temporal", authority if behind_proxy else None),
        journal,
        status,
        killing=killing,
    )
    try:
        line = await client.ask("wish", "remove", CLUSTER, {}, request_)
    finally:
        await client.close()
    assert line is not None and line.outcome == "no"
    assert [each.outcome for each in read_lines(journal.path)] == outcomes


class Busy(JournalingClient):
    """A gateway that has no time for this token at first."""

    def __init__(self, address: Address, journal: Journal, code: str) -> None:
        super().__init__(address, journal)
        self._code, self.asked = code, 0

    async def _send(self, request: SentRequest) -> httpx.Response:
        self.asked += 1
        return httpx.Response(204) if self.asked > 2 else httpx.Response(429, json={"code": self._code})


@pytest.mark.parametrize(
    ("code", "asked", "outcomes"), [("too_many_requests", 3, ["yes"]), ("edge_changes_too_often", 1, ["no"])]
)
async def test_whoever_is_told_to_wait_comes_back_and_claims_nothing_meanwhile(
    tmp_path: Path, code: str, asked: int, outcomes: list[str]
) -> None:
    journal = Journal(tmp_path / "journal")
    client = Busy(Address("http://centre", "token", "temporal"), journal, code)
    try:
        await client.insist("w", "secrets", CLUSTER, {}, SentRequest("PUT", "/secret"), patience=60)
    finally:
        await client.close()
        journal.close()
    assert (client.asked, [line.outcome for line in journal.lines]) == (asked, outcomes)
