"""Help tables that fold long option names into the next line, where Typer would truncate them."""

from importlib import import_module
from typing import Any


def fold_long_names() -> None:
    """Makes help tables show complete option names in terminals of any width."""
    rich_utils: Any = import_module("typer.rich_utils")  # this takes 50 ms, and only help needs it

    class Folding(rich_utils.OptionHighlighter):  # type: ignore[misc]
        """Marks each name as breakable."""

        def __call__(self, text: Any) -> Any:  # noqa: ANN401
            made = super().__call__(text)
            made.overflow = "fold"
            return made

    rich_utils.highlighter = Folding()
