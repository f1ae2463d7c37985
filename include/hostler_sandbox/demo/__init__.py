"""The demo: a whole rehearsal (ledger, sandbox, Airflow), one real training run, and a report. It uses Hostler as a user would."""
