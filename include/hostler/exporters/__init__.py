"""What leaves the house: notices to people, metrics, logs."""
