"""Airflow operators of Hostler: one thin class a lifecycle step."""
