"""What runs on nodes: agent, setup, probe, training; and its builders."""

from hostler.recipes.files import probe_file, setup_files

__all__ = ["probe_file", "setup_files"]
