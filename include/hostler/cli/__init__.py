"""The `hostler` command; works with Airflow down."""
