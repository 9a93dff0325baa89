"""Whether a deletion takes what seals from the edge, and what came of it."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("clusters", sa.Column("purge", sa.Boolean()))
    op.add_column("clusters", sa.Column("purged", sa.Boolean()))
    op.add_column("clusters", sa.Column("purge_problem", sa.Text()))
