"""History to numbers (pure)."""
