"""Help in which long names of options go on in the next line, where Typer would cut them."""

from importlib import import_module
from typing import Any


def fold_long_names() -> None:
    """Has the tables of help show names of options whole, however narrow the terminal is."""
    rich_utils: Any = import_module("typer.rich_utils")  # takes 50 ms, and only help needs it

    class Folding(rich_utils.OptionHighlighter):  # type: ignore[misc]
        """Says of each name that it may be broken."""

        def __call__(self, text: Any) -> Any:  # noqa: ANN401
            made = super().__call__(text)
            made.overflow = "fold"
            return made

    rich_utils.highlighter = Folding()
