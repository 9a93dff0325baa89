"""How two edge statuses differ, as the timeline tells it."""

from typing import Any

import pytest

from edgewright.domain import status_news as told
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.status_news import FLUX, READINESS, REST, StatusNews

ONE = {"hostname": "n1", "k8s_version": "v1", "ready": True}

RIGHT = {"what": "nodes", "right": "list on nodes"}
LOST = {"secret": "default/db", "key": "password", "sha256": "0" * 64}


def status_news(before: dict[str, Any] | None, now: dict[str, Any]) -> StatusNews:
    """Compares two documents, as an edge sends them."""
    return told.status_news(None if before is None else read_edge_status(before), read_edge_status(now))


def flux(*names: str, status: str = "True", message: str = "stored") -> dict[str, Any]:
    ready = {"type": "Ready", "status": status, "message": message}
    return {"flux": {"sources": [{"name": name, "conditions": [ready]} for name in names]}}


def hosts(*names: str) -> dict[str, Any]:
    return {"hosts": [{"hostname": name} for name in names]}


@pytest.mark.parametrize(
    ("before", "now", "facts"),
    [
        (None, hosts("n1", "n2"), ("reported for the first time, with 2 hosts",)),
        (None, {"kubeseal_cert": "PEM"}, ("reported for the first time, with 0 hosts",)),
        (hosts("n1"), hosts("n2", "n3"), ("hosts n2, n3 are new", "host n1 is gone")),
        (hosts(), hosts(*"abcd"), ("4 hosts are new",)),
        ({"hosts": [ONE]}, {"hosts": [{**ONE, "k8s_version": "v2"}]}, ("host n1 is changed",)),
        ({"versions": {"flux": "v1"}}, {"versions": {"flux": "v2"}}, ("program flux v2 is new",)),
        ({"versions": {"flux": "v1"}}, {"versions": {}}, ("program flux is gone",)),
        (
            {"versions": {"agent": "1", "agent-image": "r.example/edgewright:1"}},
            {"versions": {"agent": "2", "agent-image": "r.example/edgewright:2", "flux": "v2.7.3"}},
            ("programs agent 2, flux v2.7.3 are new", "its agent runs the image r.example/edgewright:2"),
        ),
        ({"versions": {"agent-image": "a"}}, {"versions": {}}, ()),
        ({}, {"anchor": "uid", "flux_is_ours": True}, ()),
        ({}, {"observed_revision": "main@sha1:a"}, ("main@sha1:a is applied",)),
        ({}, {"missing": ["Secret a", "Secret b"]}, ("Secret a, Secret b are missing",)),
        ({"missing": ["Secret a"]}, {}, ("Secret a is back",)),
        ({}, {"unknown": [RIGHT]}, ("its agent lacks a right: list on nodes",)),
        ({"unknown": [RIGHT]}, {}, ("its agent has a right again: list on nodes",)),
        ({}, {"silent": ["source-controller"]}, ("Flux does not answer: source-controller",)),
        ({"silent": ["source-controller"]}, {}, ("Flux answers again: source-controller",)),
        ({}, {"unopened": [LOST]}, ("no key of the edge opens default/db/password",)),
        ({"unopened": [LOST]}, {"unopened": []}, ("the edge no longer lacks a key for default/db/password",)),
    ],
)
def test_what_lasts_is_a_fact(before: dict[str, Any] | None, now: dict[str, Any], facts: tuple[str, ...]) -> None:
    assert status_news(before, now) == StatusNews(facts)


@pytest.mark.parametrize(
    ("before", "now", "passing"),
    [
        ({"hosts": [ONE]}, {"hosts": [{**ONE, "ready": False}]}, (READINESS,)),
        ({}, {"flux": {"sources": []}}, (FLUX,)),
        (flux("self-link"), flux("self-link", message="fetched another"), (FLUX,)),
        ({"observed_revision": "main@sha1:a"}, {}, (REST,)),
        ({}, {"versions": {"flux": "v1"}}, (REST,)),
        ({"versions": {"flux": "v1"}}, {}, (REST,)),
        ({"version": "1"}, {"version": "2"}, (REST,)),
    ],
)
def test_what_comes_and_goes_is_told_by_what_it_is_about(
    before: dict[str, Any], now: dict[str, Any], passing: tuple[str, ...]
) -> None:
    news = status_news(before, now)
    assert (news.facts, news.matters) == ((), passing)


@pytest.mark.parametrize(
    ("before", "now"),
    [(hosts("n1", "n2"), hosts("n2", "n1")), ({"kubeseal_cert": "A"}, {"kubeseal_cert": "B"})],
)
def test_another_order_and_another_certificate_are_no_news(before: dict[str, Any], now: dict[str, Any]) -> None:
    assert status_news(before, now) == StatusNews()


def test_a_sentence_names_all_of_it() -> None:
    before = {"hosts": [ONE], **flux("self-link", "by-hand")}
    now = {"hosts": [{**ONE, "ready": False}, {"hostname": "n2"}], **flux("by-hand")}
    assert status_news(before, now).sentence("press-shop") == (
        "The edge status of press-shop: host n2 is new; hosts have become ready or not ready; Flux no longer "
        "has self-link."
    )


def test_what_flux_says_is_said() -> None:
    assert status_news(flux("self-link"), flux("self-link", message="stored main@sha1:b")).sentence("x") == (
        "The edge status of x: Flux says of self-link: stored main@sha1:b."
    )
    failing = flux("self-link", status="False", message="no route.")
    assert status_news(flux("self-link"), failing).sentence("x") == (
        "The edge status of x: Flux cannot fetch self-link: no route."
    )
    assert (
        status_news(failing, flux("self-link")).sentence("x")
        == "The edge status of x: source self-link no longer fails."
    )
    assert status_news(failing, failing) == StatusNews()


def test_each_object_that_fails_is_a_matter_of_its_own_and_their_number_is_bounded() -> None:
    many = [f"k-{number:03}" for number in range(200)]
    begun = status_news(flux(), flux(*many, status="False", message="m" * 2000))
    assert begun.matters == ("fails:source/k-000", "fails:source/k-001", "fails:source/k-002", FLUX)
    assert "Flux objects that now fail: 200" in begun.sentence("x") and len(begun.sentence("x")) < 1200
    ended = status_news(flux("a", "b,c", status="False"), flux("a", "b,c"))
    assert ended.matters == ("mended:source/a", "mended:source/b c")


@pytest.mark.parametrize("said", [7, "n1", [7, None, {"hostname": 7}], {"hostname": "n1"}])
def test_nothing_that_an_edge_says_has_to_have_a_shape(said: object) -> None:
    wild = {"hosts": said, "versions": said, "observed_revision": said, "flux": said}
    for before in (None, {}, wild, hosts("n1")):
        assert status_news(before, wild).sentence("x").startswith("The edge status of x: ")


def test_what_an_edge_says_fits_in_a_line() -> None:
    [fact] = status_news({}, hosts("n\n\x1b[31m" + "x" * 1000)).facts
    assert fact.isprintable()
    assert len(fact) < 130
