"""Cloud drivers: one folder a cloud; a driver never imports a driver."""
