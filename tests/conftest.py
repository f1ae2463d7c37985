"""Session-wide fixtures. Unit tests may talk to loopback only."""
