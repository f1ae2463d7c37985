"""Keys: envelope encryption, key services, the SSH certificate authority, the backup store."""
