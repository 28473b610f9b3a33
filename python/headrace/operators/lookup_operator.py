"""Operator lookup: pooled rows of a table, such as the embeddings of a recommender."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headrace._core import Operator, Span, lookup_operator, lookup_operator_of_span
from headrace.errors import UsageError
from headrace.operators.dense import ROUNDING, TINY, compare_with, random_matrix, rows_of, stored_type

_SHAPE = (250_000, 64)
_PARTS = 8  # partial sums of a query's rows, as in operators/lookup.hpp


def lookup(
    table: ArrayLike | Span | None = None,
    most: int = 32,
    *,
    pooling: str = "sum",
    weighted: bool = False,
    shape: tuple[int, int] | None = None,
    dtype: DTypeLike = "float16",
    device_bytes: int | None = None,
    counts: ArrayLike | None = None,
    exponent: float | None = None,
    seed: int = 1,
    threads: int = 128,
) -> Operator:
    """Pools rows of a table, which may exceed GPU memory: their sum, mean or maximum per column.

    A query is a record of `count`, then `rows` (`most` row numbers, uint32), then, if `weighted`, `weights` (`most`
    float32, which scale the rows). Entries after the first `count` are ignored. An answer has one float32 per column;
    zeros for no rows. A query with a `count` above `most`, or with a row that the table does not have, is answered by
    NaN in every column. Sums are float32 in an order that depends only on the count, so answers have the same bits on
    every device, under every schedule and wherever rows are stored.

    Args:
        table: up to 2^32 - 1 rows of up to 4,096 columns, all finite, which are copied; or a Span that contains such
            rows contiguously, which are read in place. Default: random numbers, for measurements.
        most: maximum number of rows per query, 1 to 1,024.
        pooling: "sum", "mean" or "max".
        weighted: whether each row of a query has a weight. Only for "sum".
        shape: shape of a random table (default: 250,000 rows of 64 columns), or of the rows in a span, whose columns
            must be a multiple of 8.
        dtype: type of the stored table, each element rounded to nearest: "float16" or "float32". For a span, the type
            of its rows.
        device_bytes: maximum bytes of rows in the memory of each GPU. The other rows are in page-locked host memory,
            and kernels read them over the link. Default: all rows go to the GPU.
        counts: access count of each row, such as np.bincount(rows, minlength=len(table)) of yesterday's queries: the
            most popular rows go to the GPU. Default: the first rows of the table do.
        exponent: exponent of Zipf's law for the rows of sample queries, scattered over the table. Default: samples
            follow `counts`; without counts the exponent is 1.05.
        seed: seed of a random table.
        threads: threads of the block that answers a query on a GPU, 1 to 1,024.

    Raises:
        UsageError: naming what is out of range, and the first element that is not finite.
        SystemError: when the stored table does not fit in host memory; the message says how many bytes it takes.

    >>> clicked = lookup([[1, 2], [3, 4], [5, 6]], most=4)
    >>> query = np.array([(2, [0, 2, 0, 0])], [("count", "<u4"), ("rows", "<u4", (4,))])
    >>> clicked.answer_on_host(query)
    array([[6., 8.]], dtype=float32)
    """
    stored = stored_type("lookup", dtype)
    if isinstance(table, Span):
        if device_bytes is not None or counts is not None:
            raise UsageError("lookup: the rows of a span are already placed: leave out device_bytes and counts")
        rows, columns = _sizes(shape)
        return lookup_operator_of_span(table, rows, columns, most, pooling, weighted, stored, exponent, threads)
    if table is None:
        table = random_matrix(_SHAPE if shape is None else shape, seed, "lookup")
    elif shape is not None:
        raise UsageError("lookup: shape is for a random table or a span: leave it out if a table is given")
    given = rows_of("lookup: elements of the table", table)
    made = lookup_operator(
        given,
        most,
        pooling,
        weighted,
        stored,
        device_bytes,
        None if counts is None else _whole_numbers(counts),
        exponent,
        threads,
    )
    return compare_with(made, _LookupReference(given, pooling, np.dtype(stored)))


def _sizes(shape: Sequence[int] | None) -> Sequence[int]:
    if shape is None or len(shape) != 2 or min(shape) < 1:  # noqa: PLR2004
        raise UsageError(f"lookup: a span needs shape: its rows and columns, 1 or more of each, not {shape}")
    return shape


def _whole_numbers(given: ArrayLike) -> NDArray[np.uint64]:
    counts = np.asarray(given)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise UsageError(
            f"lookup: counts must be whole numbers, one per row, not {counts.ndim} dimensions of {counts.dtype}"
        )
    if counts.dtype.kind == "i" and len(counts) and counts.min() < 0:
        raise UsageError(f"lookup: counts must be 0 or more, not {counts.min()}")
    return np.ascontiguousarray(counts, np.uint64)


class _LookupReference:
    """Pooled rows in float64, and the possible error of float32."""

    def __init__(self, table: NDArray[Any], pooling: str, dtype: np.dtype[Any]) -> None:
        self._table = table.astype(dtype, copy=False)  # the user could modify it, and then nothing would agree
        self._pooling = pooling

    def expected(self, queries: NDArray[Any]) -> NDArray[Any]:
        return np.stack([self._with_bounds(query)[0] for query in queries])

    def differs(self, queries: NDArray[Any], answers: NDArray[Any]) -> int | None:
        for number, query in enumerate(queries):
            expected, bounds = self._with_bounds(query)
            near = (np.abs(answers[number] - expected) <= bounds) | (np.isnan(expected) & np.isnan(answers[number]))
            if not near.all():
                return number
        return None

    def _with_bounds(self, query: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # noqa: ANN401 (a record)
        """An answer, and a bound on its error: Higham 2002, Accuracy and Stability, section 3.1."""
        columns = self._table.shape[1]
        count, most = int(query["count"]), len(query["rows"])
        if count > most or (query["rows"][:count] >= len(self._table)).any():
            return np.full(columns, np.nan), np.zeros(columns)
        rows = self._table[query["rows"][:count]].astype(np.float64)
        if count == 0:
            return np.zeros(columns), np.zeros(columns)
        if self._pooling == "max":
            return rows.max(axis=0), np.zeros(columns)
        if "weights" in (query.dtype.names or ()):
            rows *= query["weights"][:count, np.newaxis].astype(np.float64)
        share = count if self._pooling == "mean" else 1
        steps = -(-count // _PARTS) + 3 + (1 if share > 1 else 0)  # a chain, three sums of its parts, and the division
        sizes = np.abs(rows).sum(axis=0) / share
        return rows.sum(axis=0) / share, steps * ROUNDING / (1 - steps * ROUNDING) * sizes + TINY
