"""Groups of options: each annotated field of a dataclass is an option of a command."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from typer.models import ParameterInfo


def _annotation(group: type, name: str, hint: object) -> object:
    """Annotates a field so that --help lists its option under the first line of the group's docstring."""
    found = [more for more in get_args(hint) if isinstance(more, ParameterInfo)]
    if len(found) != 1:
        raise TypeError(f"{group.__name__}.{name} is not annotated with one option")
    if getattr(found[0], "rich_help_panel", None) is None:
        found[0].rich_help_panel = (group.__doc__ or group.__name__).splitlines()[0].rstrip(".")
    return hint


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Converts a command for Typer: a parameter whose type is a dataclass becomes one option per field.

    Options appear in the order of the parameters. Two groups must not have a field of the same name.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {}
    options: dict[str, inspect.Parameter] = {}
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        if not (isinstance(hint, type) and is_dataclass(hint)):
            options[parameter.name] = parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint)
            continue
        groups[parameter.name] = hint
        annotations = get_type_hints(hint, include_extras=True)
        for field in fields(hint):
            if field.name in options:
                raise TypeError(f"{command.__name__} has two options named {field.name}")
            annotation = _annotation(hint, field.name, annotations[field.name])
            options[field.name] = inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation
            )

    @functools.wraps(command)
    def with_groups(**given: Any) -> None:  # noqa: ANN401 (options of every type)
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    with_groups.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    with_groups.__annotations__ = {name: option.annotation for name, option in options.items()}
    return with_groups
