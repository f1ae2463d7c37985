"""What a recipe's option may be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option. It travels as text; a number with limits unless it has choices.

    Attributes:
        default: for people; the program on the node has the same. what: one sentence for people.
        minimum, maximum: both allowed themselves. is_whole: fractions are refused. choices: the only texts allowed.
    """

    default: float | str
    what: str
    minimum: float = 0
    maximum: float = 0
    is_whole: bool = False
    choices: tuple[str, ...] = ()

    def problem(self, text: str) -> str | None:
        """Returns why the text is refused and what is allowed; None when it is good."""
        if self.choices:
            return None if text in self.choices else f"{text!r}; allowed: {', '.join(self.choices)}"
        allowed = f"{'a whole number' if self.is_whole else 'a number'} from {self.minimum:g} to {self.maximum:g}"
        try:
            value = int(text) if self.is_whole else float(text)
        except ValueError:
            return f"{text!r}; allowed: {allowed}"
        return None if self.minimum <= value <= self.maximum else f"{text}; allowed: {allowed}"
