"""Who is there: since when gateways listen, and when the sweep last ran. One row each."""

from sqlalchemy import Column, Integer, Table

from edgewright.adapters.database.columns import MOMENT, metadata

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
