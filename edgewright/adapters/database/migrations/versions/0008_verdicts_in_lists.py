"""What lists say of a cluster (blocked, synced, healthy, how much trouble, what it waits for), in columns."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

WRONG = {
    "Joined": {"IdentityForked", "RotationUnproven"},
    "SealingKeyCurrent": {"CertificateExpired", "CertificateRefused", "KeyOld", "Unreadable"},
    "Synced": {"FetchFailed", "ApplyFailed", "FluxSuspended"},
    "ClockSynced": {"ClockSkewed"},
}
SENTENCES = {
    "Detaching": "The cluster is being deleted.",
    "Removed": "The cluster was removed centrally; it is commissioned anew when its configuration is written again.",
    "Commissioning": "The commissioning is under way.",
}


def upgrade() -> None:
    op.add_column("clusters", sa.Column("blocked", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("clusters", sa.Column("synced", sa.String(8), nullable=False, server_default="Unknown"))
    op.add_column("clusters", sa.Column("healthy", sa.String(8), nullable=False, server_default="Unknown"))
    op.add_column("clusters", sa.Column("trouble", sa.Integer(), nullable=False, server_default=sa.text("4")))
    op.create_index("ix_clusters_trouble", "clusters", ["trouble", "name_key", "uuid"])
    _fill_in()


def _fill_in() -> None:
    """Takes over what the projections say; a workflow that has nothing new to say publishes none for years."""
    names = ("closed_at", "blocked", "synced", "healthy", "trouble", "waiting_for")
    clusters = sa.table("clusters", sa.column("uuid", sa.Uuid()), *(sa.column(name) for name in names))
    projections = sa.table("projections", sa.column("cluster", sa.Uuid()), sa.column("body", sa.Text()))
    connection = op.get_bind()
    rows = connection.execute(sa.select(projections.c.cluster, sa.cast(projections.c.body, sa.Text()))).all()
    for cluster, body in rows:
        here = (clusters.c.uuid == cluster) & clusters.c.closed_at.is_(None)
        connection.execute(sa.update(clusters).where(here).values(**_verdicts(json.loads(body))))


def _verdicts(projection: Mapping[str, Any]) -> dict[str, Any]:
    """As ``edgewright.domain.verdicts`` was when this migration was written."""
    stated = {one["type"]: one for one in projection.get("conditions", ())}
    status = {name: one["status"] for name, one in stated.items()}
    rests = projection["phase"] in {"Removed", "Deleted"}
    blocked = status.get("Blocked") == "True" and projection["phase"] != "Deleted"
    wrong = blocked or (not rests and any(one["reason"] in WRONG.get(name, ()) for name, one in stated.items()))
    heard = status.get("Available") == "True" and status.get("Synced", "Unknown") != "Unknown"
    well = not rests and projection.get("ready") and heard
    silent = not rests and stated.get("Available", {}).get("reason") == "LeaseExpired"
    paused = not rests and status.get("Paused") == "True"
    ranks = (blocked, wrong, silent, paused, True)
    return {
        "blocked": blocked,
        "synced": status.get("Synced", "Unknown"),
        "healthy": "False" if wrong else "True" if well else "Unknown",
        "trouble": ranks.index(True),
        "waiting_for": _awaited(projection, stated),
    }


def _awaited(projection: Mapping[str, Any], stated: Mapping[str, Any]) -> str:
    said: str = projection.get("waiting_for") or SENTENCES.get(projection["phase"], "")
    if said or projection["phase"] == "Deleted":
        return said
    if projection["phase"] == "PendingAcceptance":
        return str(stated.get("Accepted", {}).get("message", ""))
    for name in ("Blocked", "Joined", "Available", "Synced"):
        if name in stated and (stated[name]["status"] == "True") is (name == "Blocked"):
            return str(stated[name].get("message", ""))
    return ""
