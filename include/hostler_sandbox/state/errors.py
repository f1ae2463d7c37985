"""What a simulated cloud answers when it refuses, in EC2's own codes; other fronts translate."""


class RefusedError(Exception):
    """A refusal with EC2's code, HTTP status and text."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
