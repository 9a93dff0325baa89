"""ACS's own service client, as npm has it, against a gateway: right answers or refusals, never a wrong one."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from gateway_centre import STATUS_APP
from live_gateway import STATUS, LiveGateway, Population, populate
from npm_packages import NODE

from edgewright.ports.operators import Permission

CONFIGURATION = "bdb13634-0b3d-4e38-a065-9d88c12ee78d"
INFO = "64a8bfa9-7772-45c4-9d1a-9e6290690957"
REGISTRATION = "cb40bed5-49ad-4443-a7f5-08c75009da8f"
EDGE_CLUSTER = "f24d354d-abc1-4e32-98e1-0667b3e40b61"
ACS_CLASS = "04a1c90d-2295-4cbe-b33a-74eded62cbf1"
ACS_APPLICATION = "d319bd87-f42b-4b66-be4f-f82ff48b93f0"
HELM_CHART = "eb2eb6d7-8bd8-44f0-94f3-b1adc8491837"
GIT_SERVICE = "7adf4db0-2e7b-4a68-ab9d-376f4c5ce14b"

Call = tuple[Any, ...]
"""Method of the Config Store's interface, and its arguments."""
Asks = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def population(live: LiveGateway) -> Population:
    return populate(live)


@pytest.fixture(scope="module")
def ask(live: LiveGateway, workshop: Path) -> Iterator[Asks]:
    """Has the client make calls with a user and password; one answer for each, in order."""
    with ExitStack() as running:

        @cache
        def program(user: str, password: str) -> "subprocess.Popen[str]":
            command: list[str | Path] = [NODE, workshop / "acs_client.mjs", live.url, user, password]
            started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            running.enter_context(started)
            running.callback(started.kill)
            return started

        def asked(user: str, password: str, *calls: Call, interface: str = "ConfigDB") -> list[dict[str, Any]]:
            client, answers = program(user, password), []
            assert client.stdin is not None and client.stdout is not None
            for method, *arguments in calls:
                client.stdin.write(json.dumps({"of": interface, "call": method, "with": arguments}) + "\n")
                client.stdin.flush()
                answers.append(json.loads(client.stdout.readline()))
            return answers

        yield asked


@pytest.fixture(scope="module")
def admin(live: LiveGateway, population: Population, ask: Asks) -> Asks:
    token = live.run(live.centre.token(Permission.ADMIN)).text

    def asked(*calls: Call, **more: Any) -> list[dict[str, Any]]:
        return ask("anybody", token, *calls, **more)

    return asked


def returned(answers: list[dict[str, Any]]) -> list[Any]:
    assert all("threw" not in answer for answer in answers), answers
    return [answer.get("returned") for answer in answers]


def refused(answers: list[dict[str, Any]]) -> list[int | None]:
    assert all("threw" in answer for answer in answers), answers
    return [answer["threw"].get("status") for answer in answers]


def test_an_edges_own_credential_reads_and_writes_its_status_and_nothing_else(
    population: Population, ask: Asks
) -> None:
    own, other = str(population.active), str(population.other)
    agent = (own, population.edge.agent)
    hosts = [{**STATUS["hosts"][0], "hostname": "by-edge-sync"}]
    written = ask(
        *agent,
        ("put_config", STATUS_APP, own, STATUS),
        ("patch_config", STATUS_APP, own, "merge", {"hosts": hosts}),
        ("get_config", STATUS_APP, own),
        ("get_config_etag", STATUS_APP, own),
    )
    *_, status, etag = returned(written)
    assert (status["hosts"], status["kubeseal_cert"]) == (hosts, STATUS["kubeseal_cert"])
    assert len(etag) == len(str(uuid4()))
    foreign = ask(
        *agent,
        ("put_config", STATUS_APP, other, STATUS),
        ("get_config", STATUS_APP, other),
        ("get_config", CONFIGURATION, own),
        ("list_configs", CONFIGURATION),
        ("create_object", EDGE_CLUSTER),
        ("search", {"app": CONFIGURATION, "query": {"name": "active"}}),
        ("class_has_member", EDGE_CLUSTER, own),
    )
    assert refused(foreign) == [403] * len(foreign)


def test_services_are_found_with_nothing_but_the_directory(
    population: Population, live: LiveGateway, ask: Asks
) -> None:
    agent = (str(population.active), population.edge.agent)
    found = ask(*agent, ("service_url", GIT_SERVICE), ("service_url", str(uuid4())), interface="Discovery")
    assert returned(found) == [live.centre.gateway.offer.external_url, None]


def test_flux_credentials_open_no_session(population: Population, ask: Asks) -> None:
    calls = ask(str(population.active), population.edge.flux, ("get_config", STATUS_APP, str(population.active)))
    assert "threw" in calls[0]


def test_members_of_classes_are_told_truly(population: Population, admin: Asks) -> None:
    cluster = str(population.active)
    [made, klass] = returned(admin(("create_object", EDGE_CLUSTER), ("create_object", ACS_CLASS)))
    told = admin(
        ("class_has_member", EDGE_CLUSTER, cluster),
        ("class_has_direct_member", EDGE_CLUSTER, cluster),
        ("class_has_member", HELM_CHART, cluster),
        ("class_add_member", klass, made),
        ("class_members", klass),
        ("class_direct_members", klass),
        ("class_subclasses", klass),
        ("class_direct_subclasses", klass),
        ("class_has_subclass", klass, EDGE_CLUSTER),
    )
    assert returned(told) == [True, True, False, None, [made], [made], [], [], False]
    [clusters, classes, applications] = returned(
        admin(("class_members", EDGE_CLUSTER), ("class_members", ACS_CLASS), ("class_members", ACS_APPLICATION))
    )
    assert {cluster, str(population.other), made} <= set(clusters)
    assert {klass, EDGE_CLUSTER} <= set(classes)
    assert {INFO, CONFIGURATION} <= set(applications)
    left_out = admin(
        ("class_remove_member", klass, made), ("class_members", klass), ("class_has_member", klass, made)
    )
    assert returned(left_out)[1:] == [[], False]


def test_what_this_store_cannot_do_is_refused(population: Population, admin: Asks) -> None:
    cluster = str(population.active)
    nothing = str(uuid4())
    answers = admin(
        ("class_add_subclass", EDGE_CLUSTER, HELM_CHART),
        ("class_remove_subclass", EDGE_CLUSTER, HELM_CHART),
        ("class_remove_member", EDGE_CLUSTER, cluster),
        ("mark_object_deleted", cluster),
        ("delete_object", cluster),
        ("class_members", nothing),
        ("class_subclasses", nothing),
        ("create_object", nothing),
        ("put_config", nothing, cluster, {}),
        ("search", {"app": nothing, "query": {"a": 1}}),
        ("search", {"app": INFO, "klass": nothing, "query": {"a": 1}}),
        ("search", {"app": INFO, "query": {"$..name": "x"}}),
    )
    assert refused(answers) == [409, 409, 409, 404, 404, 404, 404, 404, 404, 404, 404, 422]
    assert returned(admin(("get_config", nothing, cluster), ("list_configs", nothing))) == [None, None]


def test_searches_find_what_is_there_and_nothing_else(population: Population, admin: Asks) -> None:
    active, other = str(population.active), str(population.other)
    query = {"name": "active"}
    answers = admin(
        ("resolve", {"app": CONFIGURATION, "query": query}),
        ("resolve", {"app": CONFIGURATION, "klass": EDGE_CLUSTER, "query": query}),
        ("resolve", {"app": CONFIGURATION, "klass": HELM_CHART, "query": query}),
        ("search", {"app": CONFIGURATION, "query": {"name": "nobody"}}),
        ("search", CONFIGURATION, query, {"called": "name", "inside": "values.x"}),
    )
    assert returned(answers) == [active, active, None, [], [{"uuid": active, "called": "active", "inside": None}]]
    [everywhere] = returned(admin(("search", {"app": CONFIGURATION, "query": {"namespace": "edgewright"}})))
    assert {active, other} <= set(everywhere)
    assert everywhere == sorted(everywhere)
    assert (
        "More than one"
        in admin(("resolve", {"app": CONFIGURATION, "query": {"namespace": "edgewright"}}))[0]["threw"]["message"]
    )


def test_revisions_are_told_without_the_entry(population: Population, admin: Asks) -> None:
    cluster = str(population.active)
    [[_, etag], alone, none] = returned(
        admin(
            ("get_config_with_etag", CONFIGURATION, cluster),
            ("get_config_etag", CONFIGURATION, cluster),
            ("get_config_etag", CONFIGURATION, str(uuid4())),
        )
    )
    assert etag == alone
    assert none is None


def test_a_name_is_kept_for_an_object_from_making_to_deleting(admin: Asks) -> None:
    [made] = returned(admin(("create_object", HELM_CHART)))
    answers = admin(
        ("put_config", INFO, made, {"name": "pump"}),
        ("patch_config", INFO, made, "merge", {"name": "press"}),
        ("get_config", INFO, made),
        ("delete_config", INFO, made),
        ("get_config", INFO, made),
    )
    assert returned(answers) == [None, None, {"name": "press"}, None, None]
    assert REGISTRATION not in returned(admin(("class_members", ACS_APPLICATION)))[0]


@pytest.mark.timeout(30)
def test_changes_over_a_websocket_are_refused_at_once(live: LiveGateway, population: Population, ask: Asks) -> None:
    """ACS Edge Sync asks for them, and works without."""
    edge = population.edge
    [answer] = ask(str(edge.cluster), edge.agent, ("websocket", "notify/v2"))
    assert "404" in answer["threw"]["message"]
    with live.client(edge.as_agent) as client:
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        refusal = client.get("/notify/v2", headers={**upgrade, "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="})
        assert (refusal.status_code, refusal.json()["code"]) == (404, "route_unknown")
