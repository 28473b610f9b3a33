"""Compares a result with that of another engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

TOLERANCE = 1e-9
_TINY = 1e-300


def difference(ours: pa.Table, theirs: pa.Table, keys: Sequence[str] = (), order: Sequence[str] = ()) -> str | None:
    """The first difference, or None: floats to TOLERANCE relative, everything else exact.

    Rows are matched by `keys`, or by their position without keys. Columns in `order` must have the same order in both.
    Numbers and strings may differ in their Arrow types.
    """
    if ours.column_names != theirs.column_names:
        return f"columns are {ours.column_names}, not {theirs.column_names}"
    if ours.num_rows != theirs.num_rows:
        return f"there are {ours.num_rows} rows, not {theirs.num_rows}"
    for name in order:
        if not _same(ours.column(name), theirs.column(name)).all():
            return f"rows are ordered differently by {name}"
    mine, other = (_in_order_of(keys, _plain(table)) for table in (ours, theirs))
    same = np.ones(mine.num_rows, np.bool_)
    for left, right in zip(mine.columns, other.columns, strict=True):
        same &= _same(left, right)
    if same.all():
        return None
    row = int(np.argmin(same))
    left, right = (tuple(column[row].as_py() for column in table.columns) for table in (mine, other))
    return f"a row is {left}, not {right}"


def _plain(table: pa.Table) -> pa.Table:
    """A table with dictionaries decoded, because dictionaries do not sort by their values."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, table.column_names)


def _in_order_of(keys: Sequence[str], table: pa.Table) -> pa.Table:
    if not keys:
        return table
    return table.take(pc.sort_indices(table, sort_keys=[(key, "ascending") for key in keys]))


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> NDArray[np.bool_]:
    """For each row, whether the values are equal."""
    left, right = (one.combine_chunks() for one in _plain(pa.table([left, right], ["left", "right"])).columns)
    if pa.types.is_floating(left.type) and pa.types.is_floating(right.type):
        close: NDArray[np.bool_] = _close(_numbers(left), _numbers(right))
        close &= np.asarray(left.is_null()) == np.asarray(right.is_null())
        return close
    found: NDArray[np.bool_]
    try:
        equal = pc.equal(left, right if left.type == right.type else right.cast(left.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # another kind of value, or one that does not fit the type
        found = np.array([bool(one == other) for one, other in zip(left.to_pylist(), right.to_pylist(), strict=True)])
    else:
        found = np.asarray(equal.fill_null(False)) | (np.asarray(left.is_null()) & np.asarray(right.is_null()))
    return found


def _numbers(column: pa.Array) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = np.asarray(column.cast(pa.float64()).fill_null(0.0))
    return numbers


def _close(left: NDArray[np.float64], right: NDArray[np.float64]) -> Any:  # noqa: ANN401 # an array of bool
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(left - right) <= np.maximum(TOLERANCE * np.maximum(np.abs(left), np.abs(right)), _TINY)
    finite = np.isfinite(left) & np.isfinite(right)
    return (near & finite) | (left == right) | (np.isnan(left) & np.isnan(right))
