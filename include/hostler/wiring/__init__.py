"""The composition root: settings to Fleet."""
