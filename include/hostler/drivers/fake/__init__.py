"""A cloud in memory that obeys orders and records calls: for the simulator, tests and dry rehearsals."""
