"""Since when a successor of a credential is wanted."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("credentials", sa.Column("rotation_asked_at", sa.DateTime(timezone=True), nullable=True))
