"""Hostler: the life of rented accelerator nodes, in one record."""

__version__ = "0.1.0"
