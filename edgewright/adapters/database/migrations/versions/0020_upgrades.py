"""Which versions of Flux and the agent a cluster is to have, and what became of each upgrade."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from edgewright.adapters.database.columns import MOMENT

revision: str = "0020"
down_revision: str | None = "0019"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("clusters", sa.Column("components", sa.JSON()))
    op.add_column("clusters", sa.Column("upgrading", sa.String(8)))
    op.add_column("clusters", sa.Column("anchor", sa.Text()))
    under_way = sa.text("upgrading IS NOT NULL")
    op.create_index(
        "ix_clusters_upgrading", "clusters", ["upgrading"], sqlite_where=under_way, postgresql_where=under_way
    )
    op.create_table(
        "upgrades",
        sa.Column("cluster", sa.Uuid(), nullable=False),
        sa.Column("component", sa.String(8), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("before", sa.Text()),
        sa.Column("fallback", sa.JSON()),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("deadline", MOMENT),
        sa.Column("ended_at", MOMENT),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["cluster"], ["clusters.uuid"], name=op.f("fk_upgrades_cluster_clusters")),
        sa.PrimaryKeyConstraint("cluster", "component", name=op.f("pk_upgrades")),
    )
    op.create_index("ix_upgrades_since", "upgrades", ["since", "cluster"])
