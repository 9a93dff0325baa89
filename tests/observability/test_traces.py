"""A request can be followed from the gateway into the activities that it caused."""

import re

import pytest
from otlp_collector import SeenSpan
from supervised import eventually
from watched import NAME, SECRET, Watched

pytestmark = pytest.mark.timeout(300)


def until_traced(watched: Watched, what: str, *names: str) -> list[SeenSpan]:
    """The spans of a request's trace, once those with these names are among them."""
    found: list[SeenSpan] = []

    def complete() -> bool:
        found[:] = watched.collector.trace_of_request(watched.requests[what])
        return set(names) <= {span.name for span in found}

    eventually(complete, seconds=60)
    return found


def test_creation_is_one_trace_from_the_request_to_the_last_step(watched: Watched) -> None:
    spans = until_traced(watched, "create", "POST /v1/cluster", "activity read_and_commission")
    first = next(span for span in spans if span.name == "POST /v1/cluster")
    assert (first.service, first.parent) == ("edgewright-gateway", "")
    assert first.attributes["http.response.status_code"] == "201"
    of_worker = [span for span in spans if span.service == "edgewright-worker"]
    activities = [span for span in of_worker if span.name.startswith("activity ")]
    assert {span.parent for span in activities} == {first.id}
    assert {span.attributes["temporal.workflow_id"] for span in activities} == {f"cluster-{watched.cluster}"}
    parents = {span.id for span in activities if span.name == "activity read_and_commission"}
    steps = [span for span in of_worker if span not in activities]
    assert {span.name for span in steps} >= {"step allocate_address", "step publish_status"}
    assert {span.parent for span in steps} <= parents
    assert {span.trace for span in of_worker} == {first.trace}


def test_secret_is_in_the_trace_of_its_own_request_not_of_the_creation(watched: Watched) -> None:
    route = "PUT /v1/cluster/{uuid}/secret/{namespace}/{name}/{key}"
    until_traced(watched, "secret", route, "commit secrets")
    of_creation = {span.name for span in watched.collector.trace_of_request(watched.requests["create"])}
    assert "commit secrets" not in of_creation


def test_spans_hold_no_secret_no_path_and_no_query(watched: Watched) -> None:
    until_traced(watched, "secret", "commit secrets")
    bodies = b"\n".join(watched.collector.bodies)
    token = (watched.centre.home / "admin-token").read_text().strip()
    for text in (SECRET, token, watched.registration_token, NAME, "token=", "default/db"):
        assert text.encode() not in bodies
    keys = {key for span in watched.collector.spans() for key in span.attributes}
    assert {key for key in keys if re.search(r"url|path|query|exception|client|user", key)} == set()


def test_nothing_but_traces_is_sent(watched: Watched) -> None:
    until_traced(watched, "create", "POST /v1/cluster")
    assert watched.collector.paths == {"/v1/traces"}
    assert {span.service for span in watched.collector.spans()} <= {"edgewright-gateway", "edgewright-worker"}
