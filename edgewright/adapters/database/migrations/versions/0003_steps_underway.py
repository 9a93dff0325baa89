"""Whether a step of a cluster is not finished, in a column: the sweep asks for those, whatever their row says."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("clusters", sa.Column("underway", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index(
        "ix_clusters_underway",
        "clusters",
        ["underway"],
        sqlite_where=sa.text("underway"),
        postgresql_where=sa.text("underway"),
    )
    _fill_in()


def _fill_in() -> None:
    """Takes over what the projections say; who waits for something publishes nothing new meanwhile."""
    clusters = sa.table("clusters", sa.column("uuid", sa.Uuid()), sa.column("underway", sa.Boolean()))
    projections = sa.table("projections", sa.column("cluster", sa.Uuid()), sa.column("body", sa.Text()))
    connection = op.get_bind()
    rows = connection.execute(sa.select(projections.c.cluster, sa.cast(projections.c.body, sa.Text()))).all()
    for cluster, body in rows:
        if _underway(json.loads(body)):
            connection.execute(sa.update(clusters).where(clusters.c.uuid == cluster).values(underway=True))


def _underway(projection: Any) -> bool:
    """As ``Projection.underway`` was when this migration was written."""
    left = any(step["state"] not in {"done", "skipped"} for step in projection.get("steps", ()))
    return left and projection.get("plan") != "idle"
