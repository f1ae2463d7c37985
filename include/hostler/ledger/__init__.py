"""The store port: leases, intents, nodes, jobs, backups, events, fences and caps."""
