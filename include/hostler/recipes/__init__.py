"""What runs on nodes: agent, setup, probe, training; and its builders."""
