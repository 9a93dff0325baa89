"""The webhook, and what waits for it. Everybody imports these from ``tables``."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Table, Text, Uuid, text

from edgewright.adapters.database.columns import MOMENT, POSITION, metadata

webhooks = Table(
    "webhooks",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),  # always 1: there is one
    Column("id", Uuid, nullable=False),
    Column("url", Text, nullable=False),
    Column("secret_sha256", LargeBinary(32), nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("cursor", POSITION, nullable=False),
    Column("failing_since", MOMENT),
    Column("stopped_at", MOMENT),
    # the newest try
    Column("last_at", MOMENT),
    Column("last_position", POSITION),
    Column("last_status", Integer),
    Column("last_attempts", Integer),
    Column("last_problem", Text),
)

notifications = Table(
    "notifications",
    metadata,
    Column("position", POSITION, primary_key=True, autoincrement=False),
    Column("cluster", Uuid, nullable=False),  # no foreign key: many are written at once, and would lock the clusters
    Column("made_at", MOMENT, nullable=False),
    Column("next_at", MOMENT, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("refused_since", MOMENT),
    Column("problem", Text, nullable=False),
    Column("turn", BigInteger, nullable=False, server_default=text("0")),
    Column("coalesced", Integer, nullable=False, server_default=text("0")),
    Index(None, "cluster", "position"),
    Index(None, "attempts", "turn", "position"),  # the order in which they are sent
)
