"""Writes tables as TOML, as far as scenes need it: numbers, text, lists, tables and arrays of tables."""

import json
import re
from typing import Any


def dump(content: dict[str, Any]) -> str:
    """TOML text for this content."""
    return "\n".join(_tables("", content)) + "\n"


def _tables(where: str, content: dict[str, Any]) -> list[str]:
    inner = {key: value for key, value in content.items() if isinstance(value, dict) or _is_tables(value)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in content.items() if key not in inner]
    for key, value in inner.items():
        name = f"{where}.{_key(key)}" if where else _key(key)
        for table in [value] if isinstance(value, dict) else value:
            header = f"[{name}]" if isinstance(value, dict) else f"[[{name}]]"
            lines += ["", header, *_tables(name, table)]
    return lines


def _is_tables(value: Any) -> bool:  # noqa: ANN401 - whatever a key may hold
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if isinstance(value, int | float):
        return repr(value)
    # JSON strings are TOML strings, except for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
