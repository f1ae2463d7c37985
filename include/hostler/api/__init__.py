"""The Fleet page and its read-only JSON routes. No Airflow import: who the caller is comes in as a ``Door``."""
