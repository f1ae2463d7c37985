"""What is wrong with a table of facts."""


class CatalogError(ValueError):
    """A row cannot be read. The text names file, line and field; nothing of the file is used: repair it.

    ``line`` is 0 when the file as a whole cannot be read.
    """

    def __init__(self, source: str, line: int, problem: str) -> None:
        super().__init__(f"{source}, line {line}: {problem}" if line else f"{source}: {problem}")
        self.source = source
        self.line = line
        self.problem = problem
