"""The cloud port: what every driver promises, the drawn errors, tags and sessions."""
