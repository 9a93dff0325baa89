"""A heartbeat that is held back, on a real connection."""

import json
from contextlib import closing

import pytest
from bounded_gateway import BoundedGateway
from gateway_centre import EdgeCredentials
from lone_gateway import LoneGateway
from raw_client import RawClient
from supervised import eventually


@pytest.fixture(scope="module")
def waiting(live: BoundedGateway) -> EdgeCredentials:
    return live.run(live.centre.register(live.run(live.centre.create("waiting"))))


def heartbeat(edge: EdgeCredentials, **wish: object) -> bytes:
    body = json.dumps({"wait": 50, **wish}).encode()
    head = "POST /v1/agent/heartbeat HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.0.0.1\r\n"
    head += f"Authorization: {edge.as_agent['Authorization']}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def begin_to_wait(client: RawClient, edge: EdgeCredentials) -> None:
    """Sends a heartbeat whose answer is held back."""
    client.send(heartbeat(edge))
    told = json.loads(client.read_answer().partition(b"\r\n\r\n")[2])
    client.send(heartbeat(edge, wants_digest=told["wants_digest"], revisions=told["revisions"]))


def test_whoever_goes_away_is_not_waited_for(live: BoundedGateway, waiting: EdgeCredentials) -> None:
    held_beats, client = live.centre.app.state.live.held_beats, RawClient(live.url)
    begin_to_wait(client, waiting)
    eventually(lambda: len(held_beats) == 1, seconds=20)
    client.socket.close()
    eventually(lambda: not len(held_beats), seconds=20)


def test_a_connection_of_a_proxy_is_the_edge_s_as_long_as_that_waits(
    lone: LoneGateway, edge: EdgeCredentials
) -> None:
    with closing(RawClient(lone.url, source="127.0.0.9")) as client:
        begin_to_wait(client, edge)
        eventually(lambda: counted(lone, "edgewright_heartbeats_held") == 1, seconds=20)
        eventually(lambda: counted(lone, 'edgewright_connections{caller="edge"}') == 1, seconds=20)
    eventually(lambda: counted(lone, "edgewright_heartbeats_held") == 0, seconds=20)


def counted(lone: LoneGateway, metric: str) -> float:
    shown = lone.api("GET", "/metrics").text.splitlines()
    return next(float(line.rsplit(" ", 1)[1]) for line in shown if line.startswith(f"{metric} "))
