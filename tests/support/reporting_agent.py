"""What the agent of an edge reports to a gateway."""

from datetime import UTC, datetime, timedelta
from typing import Any

from gateway_centre import EdgeCredentials, GatewayCentre
from sealing_keys import certificate_pem, private_key

NOW = datetime.now(UTC)


def certificate(bits: int = 2048, *, days: int = 100) -> str:
    """A sealing certificate as PEM, the same each time; it expires in so many days."""
    begin, end = NOW - timedelta(days=200), NOW + timedelta(days=days)
    return certificate_pem(private_key(bits), not_before=begin, not_after=end)


async def beat(centre: GatewayCentre, edge: EdgeCredentials, **body: Any) -> dict[str, Any]:
    """One heartbeat; returns what the agent is told."""
    answer = await centre.client(edge.as_agent).post("/v1/agent/heartbeat", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told
