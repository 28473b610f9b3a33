"""Whether a result is what another engine gives."""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

TOLERANCE = 1e-9


def difference(ours: pa.Table, theirs: pa.Table, keys: Sequence[str] = (), order: Sequence[str] = ()) -> str | None:
    """What is different, or None: floats to TOLERANCE relative, everything else exact.

    Rows are matched by `keys`, or where there are none in the order of each. Columns in `order` have to be in the same
    order in both.
    """
    if ours.column_names != theirs.column_names:
        return f"columns are {ours.column_names}, not {theirs.column_names}"
    if ours.num_rows != theirs.num_rows:
        return f"there are {ours.num_rows} rows, not {theirs.num_rows}"
    for name in order:
        if not _same_columns(ours.column(name).to_pylist(), theirs.column(name).to_pylist()):
            return f"rows are ordered differently by {name}"
    mine, other = (_rows(table, keys) for table in (ours, theirs))
    for left, right in zip(mine, other, strict=True):
        if not _same_columns(left, right):
            return f"a row is {left}, not {right}"
    return None


def _rows(table: pa.Table, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    places = [table.column_names.index(key) for key in keys]
    return sorted(rows, key=lambda row: [_sortable(row[place]) for place in places]) if places else rows


def _sortable(value: Any) -> tuple[int, Any]:  # noqa: ANN401
    if value is None:
        return (2, 0)
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return (0, value)


def _same_columns(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return all(_same(one, other) for one, other in zip(left, right, strict=True))


def _same(left: Any, right: Any) -> bool:  # noqa: ANN401
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=1e-300)
    return bool(left == right)
