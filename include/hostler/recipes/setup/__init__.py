"""Setup of a node: idempotent steps, each checked, applied where needed and checked again; at the end all of them once more."""
