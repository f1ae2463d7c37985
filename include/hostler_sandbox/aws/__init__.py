"""AWS on the wire: moto's server behind an overlay that adds what moto lacks and refuses what AWS refuses."""
