"""Alembic's entry: runs the steps on the connection that ``hostler.stores.migrate`` hands over, in its transaction."""

from alembic import context

from hostler.stores.tables import SCHEMA, VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    version_table_schema=SCHEMA,
    include_schemas=True,
)
context.run_migrations()
