"""Alembic's steps for the ledger's tables, run by ``hostler.stores.migrate``."""
