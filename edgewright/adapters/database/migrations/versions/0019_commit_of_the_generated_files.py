"""The commit that the generated files of a cluster were written with: a repository that lacks it was put back."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0019"
down_revision: str | None = "0018"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("clusters", sa.Column("rendered_commit", sa.Text()))
