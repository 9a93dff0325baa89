"""How much the timeline takes of each edge, and whose turn it is to be told of at the webhook."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

MOMENT = sa.DateTime(timezone=True)
ZERO = sa.text("0")


def upgrade() -> None:
    op.add_column("clusters", sa.Column("event_room", sa.Float()))
    op.add_column("clusters", sa.Column("event_room_at", MOMENT))
    op.add_column("clusters", sa.Column("events_omitted", sa.Integer(), nullable=False, server_default=ZERO))
    op.add_column("notifications", sa.Column("turn", sa.BigInteger(), nullable=False, server_default=ZERO))
    op.add_column("notifications", sa.Column("coalesced", sa.Integer(), nullable=False, server_default=ZERO))
    op.drop_index("ix_notifications_attempts_position", "notifications")
    op.create_index("ix_notifications_attempts_turn_position", "notifications", ["attempts", "turn", "position"])
