"""Signals to verdicts (pure)."""
