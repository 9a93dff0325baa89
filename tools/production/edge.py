"""An edge beyond the proxy, which beats once a second whatever it is answered."""

import secrets
import threading
from collections import Counter
from types import TracebackType
from typing import Self
from uuid import uuid4

from tools.production.operator import Operator

BEAT_SECONDS = 1.0


class BeatingEdge:
    """Registers and then beats in a thread of its own, until the end of the context.

    Args:
        operator: gets the line for it; its connection is not used by the thread.
    """

    def __init__(self, operator: Operator, cluster: str) -> None:
        self.answers: Counter[int] = Counter()
        self._topology = operator.topology
        self._auth = (cluster, f"ewa_{secrets.token_hex(32)}")
        self._stop = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)
        line = operator.insist("POST", f"/v1/cluster/{cluster}/registration-token", json={}).json()["url"]
        body = {"kube_system_uid": str(uuid4()), "kubernetes_version": "v1.31.2+k3s1"}
        body |= {"flux_secret": f"ewf_{secrets.token_hex(32)}", "agent_secret": self._auth[1]}
        token = {"Authorization": f"Bearer {line.partition('token=')[2]}"}
        registered = operator.http.post("/v1/register", json=body, headers=token)
        assert registered.is_success, registered.text

    def __enter__(self) -> Self:
        self._beating.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._beating.join(60)

    def _beat(self) -> None:
        with self._topology.client() as http:
            http.headers.pop("Authorization")
            while not self._stop.wait(BEAT_SECONDS):
                self.answers[http.post("/v1/agent/heartbeat", json={}, auth=self._auth).status_code] += 1
