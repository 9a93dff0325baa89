"""Sealing certificates that a signal proposed, and when the last round of the sweep ended."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("clusters", sa.Column("proposed_fingerprint", sa.String(64)))
    op.add_column("clusters", sa.Column("proposed_not_after", MOMENT))
    op.add_column("clusters", sa.Column("proposed_at", MOMENT))
    op.add_column("clusters", sa.Column("proposed_pem", sa.Text()))
    op.create_table(
        "last_sweep",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("ended_at", MOMENT, nullable=False),
    )
