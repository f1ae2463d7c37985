"""The one place where Airflow Connections become SDK sessions."""
