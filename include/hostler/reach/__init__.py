"""The transport port: how a command or a file gets to a node."""
