"""The probe: one self-contained file that runs on a node and prints what its accelerators say."""
