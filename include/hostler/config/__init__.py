"""fleet.yaml: schema, loading with line numbers, defaults."""
