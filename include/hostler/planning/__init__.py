"""Filters and ranking of offerings (pure)."""
