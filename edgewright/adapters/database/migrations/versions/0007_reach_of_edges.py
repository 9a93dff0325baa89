"""Which nonce an edge sent last, where it reaches the centre, and what that says of two edges with one identity."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("clusters", sa.Column("nonce", sa.String(128)))
    op.add_column("clusters", sa.Column("nonce_breaks", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.add_column("clusters", sa.Column("nonce_broken_at", MOMENT))
    op.add_column("clusters", sa.Column("forked_at", MOMENT))
    op.add_column("clusters", sa.Column("centre_url", sa.Text()))
    op.add_column("clusters", sa.Column("centre_problem", sa.Text()))
    op.add_column("clusters", sa.Column("proven_url", sa.Text()))
    op.add_column("clusters", sa.Column("centre_ca", sa.String(64)))
