"""Amazon's front: moto's server behind an overlay that adds what moto lacks and refuses what EC2 refuses."""
