"""Airflow sensors and triggers of Hostler."""
