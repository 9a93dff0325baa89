"""Since when gateways listen, and when the sweep last ran, one row each; and what gateways have answered."""

from sqlalchemy import Column, Integer, Table, Text

from edgewright.adapters.database.columns import DOCUMENT, MOMENT, metadata

gateway_presence = Table(
    "gateway_presence",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("listening_since", MOMENT, nullable=False),
    Column("listening_until", MOMENT, nullable=False),
)

last_sweep = Table(
    "last_sweep", metadata, Column("id", Integer, primary_key=True), Column("ended_at", MOMENT, nullable=False)
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_digest", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("claimed_at", MOMENT, nullable=False),
    Column("expires_at", MOMENT, nullable=False, index=True),
    Column("headers", DOCUMENT, nullable=False),
    Column("body", DOCUMENT, nullable=False),
)
