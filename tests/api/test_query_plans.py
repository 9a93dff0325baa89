"""What one caller asks the database costs no more the more clusters there are."""

from pathlib import Path

import httpx
from gateway_centre import GatewayCentre
from query_plans import recorded_statements, whole_tables
from reporting_agent import beat
from sealed_values import STATUS

_ABOUT_ONE = (
    ("GET", "/v1/cluster/{cluster}"),
    ("GET", "/v1/cluster/press-shop"),
    ("GET", "/v1/cluster/{cluster}/timeline"),
    ("PUT", "/v1/cluster/{cluster}/secret/default/db/password"),
    ("PUT", "/v1/cluster/{cluster}/secret/default/db/password"),
    ("GET", "/v1/cluster/{cluster}/secret"),
    ("DELETE", "/v1/cluster/{cluster}/secret/default/db/password"),
    ("POST", "/v1/cluster/{cluster}/pause"),
    ("POST", "/v1/cluster/{cluster}/resume"),
    ("POST", "/v1/cluster/{cluster}/bootstrap-url"),
    ("DELETE", "/v1/cluster/{cluster}/credential"),
)


async def test_no_request_about_one_cluster_reads_a_whole_table(
    centre: GatewayCentre, admin: httpx.AsyncClient, tmp_path: Path
) -> None:
    with recorded_statements() as texts:
        cluster = await centre.create("press-shop", labels={"site": "leeds"})
        edge = await centre.register(cluster)
        await beat(centre, edge)
        agent, flux = centre.client(edge.as_agent), centre.client(edge.as_flux)
        assert (await agent.put("/v1/agent/status", json=STATUS)).is_success
        assert (await flux.get(f"/uuid/{cluster}/info/refs?service=git-upload-pack")).is_success
        await beat(centre, edge)
        for method, path in _ABOUT_ONE:
            body = b"s3cret" if "secret" in path else b'{"reason": "maintenance"}'
            answer = await admin.request(
                method, path.format(cluster=cluster), content=body if method != "GET" else None
            )
            assert answer.is_success, (path, answer.text)
        assert (await admin.delete(f"/v1/cluster/{cluster}")).is_success
    found = whole_tables(tmp_path / "edgewright.db", texts)
    assert found == [], "\n".join(found)
