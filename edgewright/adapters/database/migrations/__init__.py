"""The schema's history, the way to its newest version, and who may work with which."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from edgewright.errors import Stalled


class OtherSchema(Stalled):
    """The schema is not the one that this program works with: it has to leave."""


def upgrade(connection: Connection) -> None:
    """Brings the schema to the newest version, in the transaction that ``connection`` is in.

    Raises:
        OtherSchema: ``schema_newer``: a newer program has brought it further.
    """
    _refuse_newer(connection)
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
    newest = _known()[0]
    if present != newest:
        raise OtherSchema(
            f"The database has the schema {present or 'of no version'}, and this program works with {newest}.",
            code="schema_older",
            hint="Run `edgewright admin init` of this version first (docs/production.md, Upgrade and rollback).",
        )


def _refuse_newer(connection: Connection) -> str:
    present = MigrationContext.configure(connection).get_current_heads()
    newest, all_known = _known()
    if not set(present) <= all_known:
        raise OtherSchema(
            f"The database has the schema {'+'.join(present)}, of a newer Edgewright; this one ends with {newest}.",
            code="schema_newer",
            hint="Start the newer version, or restore the backup that was made before the upgrade "
            "(docs/production.md, Upgrade and rollback).",
        )
    return "+".join(present)


@cache
def _known() -> tuple[str, frozenset[str]]:
    """The newest revision of this program, and all that it knows."""
    scripts = ScriptDirectory(str(Path(__file__).parent))
    return "+".join(scripts.get_heads()), frozenset(each.revision for each in scripts.walk_revisions())
