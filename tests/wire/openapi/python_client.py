"""Does an operator's work through a generated package: python python_client.py URL TOKEN CERTIFICATE.

CERTIFICATE: PEM to seal secrets with. Writes what it was answered as one JSON object.
"""

import json
import sys
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from uuid import UUID

from gateway_client import AuthenticatedClient
from gateway_client.api.clusters import create_cluster, get_cluster
from gateway_client.api.config_store import create_object, get_entry, put_entry
from gateway_client.api.progress import timeline
from gateway_client.api.secrets import put_secret
from gateway_client.models import (
    ClusterBody,
    EdgeStatus,
    EventKind,
    NewCluster,
    NewClusterLabels,
    NewObject,
    ObjectBody,
    Problem,
    Timeline,
)
from gateway_client.types import UNSET, File

INFO = "64a8bfa9-7772-45c4-9d1a-9e6290690957"
EDGE_STATUS = "edge-cluster-status"
HELM_CHART = UUID("eb2eb6d7-8bd8-44f0-94f3-b1adc8491837")
NOBODY = UUID("00000000-0000-4000-8000-000000000000")
VALUE = bytes([0, 10, 13, 127, 128, 255])


def commission(gateway: AuthenticatedClient) -> ClusterBody:
    wish = NewCluster(name="python", labels=NewClusterLabels.from_dict({"language": "python"}))
    cluster = create_cluster.sync(client=gateway, body=wish, idempotency_key="python-1")
    assert isinstance(cluster, ClusterBody), cluster
    return cluster


def seal(gateway: AuthenticatedClient, cluster: UUID, certificate: str) -> dict[str, Any]:
    status = EdgeStatus(kubeseal_cert=certificate).to_dict()
    reported = put_entry.sync_detailed(EDGE_STATUS, str(cluster), client=gateway, body=status)
    assert reported.status_code == 201, reported
    answer = put_secret.sync_detailed(
        str(cluster),
        "default",
        "python",
        "bytes",
        client=gateway,
        body=File(BytesIO(VALUE)),
        idempotency_key="python-2",
    )
    return {"status": answer.status_code, "commit": answer.headers["Edgewright-Commit"]}


def write_conditionally(gateway: AuthenticatedClient) -> dict[str, Any]:
    made = create_object.sync(client=gateway, body=NewObject(class_=HELM_CHART))
    assert isinstance(made, ObjectBody), made
    place = (INFO, str(made.uuid))
    first = put_entry.sync_detailed(*place, client=gateway, body={"name": "press"}, if_none_match="*")
    known = first.headers["ETag"]
    second = put_entry.sync_detailed(*place, client=gateway, body={"name": "pump"}, if_match=known)
    late = put_entry.sync_detailed(*place, client=gateway, body={"name": "late"}, if_match=known)
    assert isinstance(late.parsed, Problem), late
    return {
        "statuses": [answer.status_code for answer in (first, second, late)],
        "late": late.parsed.code,
        "entry": get_entry.sync(*place, client=gateway),
    }


def read_problem(gateway: AuthenticatedClient) -> dict[str, Any]:
    answer = get_cluster.sync_detailed(str(NOBODY), client=gateway)
    problem = answer.parsed
    assert isinstance(problem, Problem), answer
    named = problem.request_id == answer.headers["X-Request-Id"]
    return {"status": problem.status, "code": problem.code, "named": named}


def kinds(gateway: AuthenticatedClient, cluster: str) -> Iterator[EventKind]:
    after: int | None = 0
    while after is not None:
        page = timeline.sync(cluster, client=gateway, limit=1, after=after or UNSET)
        assert isinstance(page, Timeline), page
        yield from (event.kind for event in page.items)
        after = page.next_


def main(url: str, token: str, certificate: str) -> None:
    gateway = AuthenticatedClient(url, token, httpx_args={"trust_env": False})
    made = commission(gateway)
    answers = {
        "created": {"uuid": made.uuid, "name": made.name, "labels": made.labels.to_dict(), "chart": made.chart},
        "secret": seal(gateway, made.uuid, certificate),
        "conditional": write_conditionally(gateway),
        "problem": read_problem(gateway),
        "timeline": list(kinds(gateway, made.name)),
    }
    json.dump(answers, sys.stdout, default=str)


if __name__ == "__main__":
    main(*sys.argv[1:])
