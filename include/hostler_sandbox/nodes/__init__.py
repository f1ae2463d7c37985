"""Nodes of the rehearsal cloud: real SSH servers on loopback, real processes, simulated hardware."""
