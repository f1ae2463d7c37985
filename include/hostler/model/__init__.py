"""Frozen, versioned records and enums: the words of the whole house. Imports the standard library only."""
