"""Operator lookup: rows of a table, pooled, such as the embeddings of a recommender."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headrace._core import Operator, Span, lookup_operator, lookup_operator_of_span
from headrace.errors import UsageError
from headrace.operators.dense import ROUNDING, TINY, compare_with, random_matrix, rows_of, stored_type

_SHAPE = (250_000, 64)
_PARTS = 8  # sums of a query's rows, as operators/lookup.hpp says


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
    """Pools rows of a table, which may be larger than a GPU's memory: for each column their sum, mean or maximum.

    A query is a record of `count`, then `rows` (`most` numbers of rows, uint32), then, if `weighted`, `weights`
    (`most` float32, which scale the rows). What lies behind the first `count` of each does not matter. An answer is a
    float32 for each column; zeros for no rows. A query with a `count` above `most`, or with a row that the table does
    not have, is answered by NaN in every column. Sums are float32 in an order that the count alone decides, so that
    answers have the same bits on every device, under every schedule and wherever rows lie.

    Args:
        table: up to 2^32 - 1 rows of up to 4,096 columns, all finite, which are copied; or a Span that holds such rows
            one after the other, which are read in place. Random numbers, made for measuring, unless given.
        most: rows that a query may ask for, 1 to 1,024.
        pooling: "sum", "mean" or "max".
        weighted: whether each row of a query has a weight. For "sum" only.
        shape: of a random table (default: 250,000 rows of 64 columns), or of the rows in a span, where columns are a
            multiple of 8.
        dtype: in which the table is stored, each element rounded to the nearest: "float16" or "float32". Of a span, the
            type that its rows have.
        device_bytes: the most bytes of rows in the memory of each GPU. The rows that do not fit lie in page-locked
            memory of the host, and kernels read them over the link. Default: all rows go to the GPU.
        counts: how often each row is asked for, such as np.bincount(rows, minlength=len(table)) of yesterday's queries:
            the most popular rows go to the GPU. Default: the first rows of the table do.
        exponent: of Zipf's law by which sample queries draw rows, scattered over the table. Default: samples follow
            `counts`; without counts the exponent is 1.05.
        seed: of a random table.
        threads: of the block that answers a query on a GPU, 1 to 1,024.

    Raises:
        UsageError: naming what is out of range, and the first element that is not finite.
        SystemError: where the host's memory does not hold the table as it is stored; the message says how many bytes
            that takes.

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
    """Pooled rows in float64, and how far from them float32 may be."""

    def __init__(self, table: NDArray[Any], pooling: str, dtype: np.dtype[Any]) -> None:
        self._table = table.astype(dtype, copy=False)  # the operator's user may write to it: then nothing agrees
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
        """An answer, and the most that it may be off by: Higham 2002, Accuracy and Stability, section 3.1."""
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
        steps = -(-count // _PARTS) + 3 + (1 if share > 1 else 0)  # a chain, three sums of its parts, the division
        sizes = np.abs(rows).sum(axis=0) / share
        return rows.sum(axis=0) / share, steps * ROUNDING / (1 - steps * ROUNDING) * sizes + TINY
