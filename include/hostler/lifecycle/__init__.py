"""One function moves a lease: ``converge``. The pure ``next_step`` says what; the phases say how."""
