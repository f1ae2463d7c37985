"""The rehearsal cloud: real wire APIs on loopback, real SSH nodes, faults on demand."""
