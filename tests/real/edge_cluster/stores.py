"""Everything that a Kubernetes cluster keeps, as it lies in etcd."""

import base64
from collections.abc import Iterator

import httpx
from loopback import PLAIN

from edge_cluster.cluster import Cluster

EVERYTHING = base64.b64encode(b"\0").decode()
"""From the first key, to the last one."""


def kept_in(cluster: Cluster) -> Iterator[tuple[str, bytes]]:
    """Each key, such as ``/registry/secrets/default/db``, and what is kept there; nothing is encrypted."""
    answer = httpx.post(
        f"http://127.0.0.1:{cluster.etcd_port}/v3/kv/range",
        json={"key": EVERYTHING, "range_end": EVERYTHING},
        **PLAIN,
        timeout=60,
    )
    for each in answer.raise_for_status().json()["kvs"]:
        yield base64.b64decode(each["key"]).decode(), base64.b64decode(each["value"])
