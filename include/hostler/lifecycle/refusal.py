"""How a request is refused: every problem at once, each with its field and what is allowed."""

Problem = tuple[str, str]
"""(field, message)."""


class RequestRefusedError(ValueError):
    """The request cannot be served as asked: correct the fields and trigger a new run. Nothing was bought.

    Attributes:
        problems: (field, message) pairs; each message says what is allowed.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in problems))
        self.problems = problems
