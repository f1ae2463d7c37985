"""Benchmarks: ratios against a named bound, in one run. Never part of the timed tests."""
