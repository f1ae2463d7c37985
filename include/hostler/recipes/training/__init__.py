"""Training programs that run on nodes by the user-code contract (docs/user-code.md)."""
