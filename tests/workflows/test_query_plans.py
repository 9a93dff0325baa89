"""What a workflow asks the database for one cluster costs no more the more clusters there are."""

from datetime import UTC, datetime
from pathlib import Path

from centre import WorkflowCentre
from query_plans import recorded_statements, whole_tables
from staged_secrets import staged

from edgewright.ports.edge_reports import Heartbeat


async def test_no_statement_for_one_cluster_reads_a_whole_table(centre: WorkflowCentre, tmp_path: Path) -> None:
    with recorded_statements() as texts:
        cluster = await centre.create("press-shop")
        await centre.bootstrap(cluster)
        body = {"k8s_version": "v1.33.1", "flux": {"observed_at": datetime.now(UTC).isoformat()}}
        await centre.ports.edge_reports.write_status(
            cluster, body, certificate=None, certificate_problem=None, generation=1, actor="agent"
        )
        nudged = await centre.ports.edge_reports.heartbeats([Heartbeat(cluster, 1, clock_offset=3600.0)])
        assert list(nudged) == [cluster]
        await centre.fleet.nudge(cluster)
        await centre.until(cluster, lambda row: bool(row.projection and row.projection.conditions))
        secret = staged(cluster, b"s3cret")
        await centre.ports.staging.stage([secret])
        await centre.fleet.change_secrets(cluster, [secret.request])
        await centre.write(cluster, "press-shop", values={"replicas": 3})
        await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    found = whole_tables(tmp_path / "edgewright.db", texts)
    assert found == [], "\n".join(found)
