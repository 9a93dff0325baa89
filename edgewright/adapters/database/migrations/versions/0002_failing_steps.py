"""Which step of a cluster fails, in columns: counted at each scrape of the metrics, without reading projections."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("clusters", sa.Column("failing", sa.String(length=8), nullable=True))
    op.add_column("clusters", sa.Column("failing_step", sa.String(length=32), nullable=True))
    op.create_index(
        "ix_clusters_failing",
        "clusters",
        ["failing", "failing_step"],
        sqlite_where=sa.text("failing IS NOT NULL"),
        postgresql_where=sa.text("failing IS NOT NULL"),
    )
    _fill_in()


def _fill_in() -> None:
    """Takes over what the projections say; a workflow that has nothing new to say publishes none for years."""
    clusters = sa.table("clusters", sa.column("uuid", sa.Uuid()), sa.column("failing"), sa.column("failing_step"))
    projections = sa.table("projections", sa.column("cluster", sa.Uuid()), sa.column("body", sa.Text()))
    connection = op.get_bind()
    rows = connection.execute(sa.select(projections.c.cluster, sa.cast(projections.c.body, sa.Text()))).all()
    for cluster, body in rows:
        found = _failing(json.loads(body))
        if found is not None:
            failing, step = found
            here = clusters.c.uuid == cluster
            connection.execute(sa.update(clusters).where(here).values(failing=failing, failing_step=step))


def _failing(projection: Any) -> tuple[str, str | None] | None:
    """As ``Projection.failing`` was when this migration was written."""
    blocked = any(one["type"] == "Blocked" and one["status"] == "True" for one in projection.get("conditions", ()))
    for step in projection.get("steps", ()):
        if step["state"] == "blocked" or (blocked and step["state"] not in {"done", "skipped"}):
            return "blocked", step["name"]
        if step["state"] == "waiting" or (step["state"] == "running" and step.get("error")):
            return "waiting", step["name"]
    return ("blocked", None) if blocked else None
