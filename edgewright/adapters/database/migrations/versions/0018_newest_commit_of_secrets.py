"""The newest commit of secrets of a cluster, for its workflow: a gateway may have made it."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0018"
down_revision: str | None = "0017"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("clusters", sa.Column("secrets_commit", sa.Text()))
