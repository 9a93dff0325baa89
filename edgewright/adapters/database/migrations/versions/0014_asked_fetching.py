"""Whether an edge's Flux fetches when its agent asks it to."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("clusters", sa.Column("asks_flux", sa.Boolean()))
    op.add_column("clusters", sa.Column("asks_flux_since", sa.DateTime(timezone=True)))
