"""Ledger stores: PostgreSQL, and memory for the simulator."""
