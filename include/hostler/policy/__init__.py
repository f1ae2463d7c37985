"""Rules as data: limits and decisions with reasons."""
