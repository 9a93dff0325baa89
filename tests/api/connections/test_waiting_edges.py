"""A heartbeat that is held back, on a real connection."""

import json

import pytest
from bounded_gateway import BoundedGateway
from gateway_centre import Edge
from raw_client import RawClient
from supervised import eventually


@pytest.fixture(scope="module")
def edge(live: BoundedGateway) -> Edge:
    return live.run(live.centre.register(live.run(live.centre.create("waiting"))))


def heartbeat(edge: Edge, **wish: object) -> bytes:
    body = json.dumps({"wait": 50, **wish}).encode()
    head = f"POST /v1/agent/heartbeat HTTP/1.1\r\nHost: x\r\nAuthorization: {edge.as_agent['Authorization']}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def test_whoever_goes_away_is_not_waited_for(live: BoundedGateway, edge: Edge) -> None:
    waiting, client = live.centre.app.state.live.held_beats, RawClient(live.url)
    client.send(heartbeat(edge))
    told = json.loads(client.read_answer().partition(b"\r\n\r\n")[2])
    client.send(heartbeat(edge, wants_digest=told["wants_digest"], revisions=told["revisions"]))
    eventually(lambda: len(waiting) == 1, seconds=20)
    client.socket.close()
    eventually(lambda: not len(waiting), seconds=20)
