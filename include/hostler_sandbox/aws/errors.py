"""EC2's errors as this front raises them.

Codes, texts and HTTP statuses: "Error codes for the Amazon EC2 API", EC2 API reference, unless a row of ``aws/refusals.py`` names
another public source.
"""


class Ec2Error(Exception):
    """An error answer.

    Attributes:
        code, text: as EC2 writes them. status: HTTP status.
    """

    def __init__(self, code: str, text: str, status: int = 400) -> None:
        self.code = code
        self.text = text
        self.status = status
        super().__init__(f"{code}: {text}")
