"""The schema's history, the way to its newest version, and who may work with which."""

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from edgewright.errors import Stalled

_VERSION = table("alembic_version", column("version_num"))


class OtherSchema(Stalled):
    """The schema is not the one that this program works with: it has to leave."""


def upgrade(connection: Connection) -> None:
    """Brings the schema to the newest version, in the transaction that ``connection`` is in.

    Raises:
        OtherSchema: ``schema_newer``: a newer program has brought it further.
    """
    if _refuse_newer(connection) == known_revisions()[-1:]:
        return
    from alembic import command  # noqa: PLC0415 - whoever does not migrate saves a twentieth of its start
    from alembic.config import Config  # noqa: PLC0415 - the same

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def demand_present(connection: Connection) -> None:
    """Returns if the schema is the one that this program works with.

    Raises:
        OtherSchema: ``schema_newer`` or ``schema_older``.
    """
    present = _refuse_newer(connection)
    newest = known_revisions()[-1]
    if present != (newest,):
        held = "+".join(present) or "of no version"
        raise OtherSchema(
            f"The database has the schema {held}, and this program works with {newest}.",
            code="schema_older",
            hint="Run `edgewright admin init` of this version first (docs/production.md, Upgrade and rollback).",
        )


def present_revisions(connection: Connection) -> tuple[str, ...]:
    """What the database's schema is; empty: it has none."""
    if not inspect(connection).has_table(_VERSION.name):
        return ()
    return tuple(sorted(connection.scalars(select(_VERSION.c.version_num))))


@cache
def known_revisions() -> tuple[str, ...]:
    """All that this program knows, the oldest first."""
    versions = Path(__file__).with_name("versions").glob("[0-9]*.py")
    return tuple(sorted(file.name.partition("_")[0] for file in versions))


def _refuse_newer(connection: Connection) -> tuple[str, ...]:
    present = present_revisions(connection)
    known = known_revisions()
    if not set(present) <= set(known):
        held = "+".join(present)
        raise OtherSchema(
            f"The database has the schema {held}, of a newer Edgewright; this one ends with {known[-1]}.",
            code="schema_newer",
            hint="Start the newer version, or restore the backup that was made before the upgrade "
            "(docs/production.md, Upgrade and rollback).",
        )
    return present
