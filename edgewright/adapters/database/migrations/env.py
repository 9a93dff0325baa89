"""What Alembic runs: migrations on the connection that ``upgrade`` was handed, in its transaction."""

from alembic import context

from edgewright.adapters.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
