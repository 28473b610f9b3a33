"""Shipped operators on dense matrices: a small network, and the best rows of a matrix."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headrace._core import Operator, mlp_operator, topk_operator
from headrace.errors import UsageError

Floats = NDArray[np.float32]

_REFERENCE = "compared_with"
_TYPES = ("float16", "float32")
_MLP_SIZES = (256, 256, 256, 16)
_TOPK_SHAPE = (100_000, 128)
_BIAS = 0.1
ROUNDING = 2.0**-24
"""Relative error of one float32 operation (round to nearest)."""
TINY = 1e-40
"""Bound on the total underflow of a few thousand products."""


class Reference(Protocol):
    """A reference for an operator's answers: NumPy in float64."""

    def expected(self, queries: NDArray[Any]) -> NDArray[Any]:
        """The answers to rows of queries."""

    def differs(self, queries: NDArray[Any], answers: NDArray[Any]) -> int | None:
        """The first query whose answer differs by more than rounding explains, or None."""


def compare_with(operator: Operator, reference: Reference) -> Operator:
    """Registers a reference for reference_of(), and returns the operator."""
    setattr(operator, _REFERENCE, reference)
    return operator


def reference_of(operator: Operator) -> Reference | None:
    """The NumPy reference of mlp(), topk() and lookup(); None for other operators."""
    found: Reference | None = getattr(operator, _REFERENCE, None)
    return found


def mlp(
    weights: Sequence[ArrayLike] | None = None,
    biases: Sequence[ArrayLike | None] | None = None,
    *,
    sizes: Sequence[int] | None = None,
    activation: str = "relu",
    dtype: DTypeLike = "float16",
    seed: int = 1,
    threads: int = 256,
) -> Operator:
    """A small dense network that answers one vector at a time: y = activation(W x + b) per layer, the last y alone.

    A query has one float32 per input of the first layer, an answer one per output of the last. A layer has at most
    1,024 of either, and a network eight layers. Sums are float32 in an order that depends only on the network, so
    answers have the same bits on every device and under every schedule. NaN in a query gives NaN, also through relu.

    Args:
        weights: a matrix per layer, outputs x inputs, as in PyTorch's Linear. Default: random ones, for measurements.
        biases: a vector, or None, per layer. Default: zeros.
        sizes: sizes of random layers: inputs of the first, then outputs of each. Default: 256, 256, 256, 16.
        activation: activation of every layer but the last: "relu" or "identity".
        dtype: type of the stored weights, each rounded to nearest: "float16" or "float32".
        seed: seed of random weights.
        threads: threads of the block that answers a query on a GPU, 1 to 1,024.

    Raises:
        UsageError: naming the layer, for shapes that do not match, and for weights or biases that are not finite.

    >>> network = mlp([[[1, 2], [0, -1]], [[1, 1]]], dtype="float32")
    >>> network.answer_on_host(np.array([[1, 3]], np.float32))
    array([[7.]], dtype=float32)
    """
    if weights is None:
        if biases is not None:
            raise UsageError("mlp: biases need weights, but none are given")
        weights, biases = random_layers(_MLP_SIZES if sizes is None else sizes, seed)
    elif sizes is not None:
        raise UsageError("mlp: sizes are for random weights: leave them out if weights are given")
    elif biases is None:
        biases = [None] * len(weights)
    if len(biases) != len(weights):
        raise UsageError(f"mlp: {len(weights)} layers have weights, but {len(biases)} have biases")
    layers = [
        (
            floats_of(f"mlp: weights of layer {number}", matrix, 2),
            None if vector is None else floats_of(f"mlp: biases of layer {number}", vector, 1),
        )
        for number, (matrix, vector) in enumerate(zip(weights, biases, strict=True))
    ]
    stored = stored_type("mlp", dtype)
    made = mlp_operator(layers, activation, stored, threads)
    return compare_with(made, _MlpReference(layers, activation, np.dtype(stored)))


def random_layers(sizes: Sequence[int], seed: int) -> tuple[list[Floats], list[Floats]]:
    """Random weights that preserve the scale of activations (He et al. 2015), and small biases."""
    if len(sizes) < 2 or any(size < 1 for size in sizes):  # noqa: PLR2004
        raise UsageError(f"mlp: sizes must be the inputs and the outputs of one layer or more, not {list(sizes)}")
    random = np.random.default_rng(seed)
    weights, biases = [], []
    for inputs, outputs in pairwise(sizes):
        weights.append((random.standard_normal((outputs, inputs)) * np.sqrt(2 / inputs)).astype(np.float32))
        biases.append(random.uniform(-_BIAS, _BIAS, outputs).astype(np.float32))
    return weights, biases


def rows_of(what: str, given: ArrayLike) -> NDArray[Any]:
    """A contiguous matrix: float16 stays, everything else becomes float32."""
    array = np.asarray(given) if hasattr(given, "dtype") else None
    if array is not None and array.dtype == np.float16 and array.ndim == 2:  # noqa: PLR2004
        return np.ascontiguousarray(array)
    return floats_of(what, given, 2)


def floats_of(what: str, given: ArrayLike, dimensions: int) -> Floats:
    """A contiguous float32 array with this number of dimensions."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what} are not an array: {error}") from error
    if array.dtype.kind not in "biuf":
        raise UsageError(f"{what} have type {array.dtype}, which is not numeric")
    if array.ndim != dimensions:
        raise UsageError(f"{what} have {array.ndim} dimensions, not {dimensions}")
    with np.errstate(over="ignore"):  # values that are too large become infinite, and the error names them
        return np.ascontiguousarray(array, np.float32)


def topk(
    matrix: ArrayLike | None = None,
    k: int = 10,
    *,
    metric: str = "dot",
    shape: tuple[int, int] | None = None,
    dtype: DTypeLike = "float16",
    seed: int = 1,
    threads: int = 256,
) -> Operator:
    """The k best rows of a matrix for a vector, best first and exact: each query scans every row.

    A query has one float32 per column. An answer is a record of `rows`, k row numbers (uint32), and their `scores`
    (float32): the dot product, or the squared distance for "l2", of which the smallest is best. Equal scores are
    ordered by row number; rows whose score is NaN come last, as do all rows for a query that contains NaN. Scores are
    float32 sums in an order that depends only on the columns, so answers have the same bits on every device and under
    every schedule.

    Args:
        matrix: up to 2^32 - 32 rows of up to 4,096 columns, all finite. It is copied. Default: random numbers, for
            measurements.
        k: number of rows: 1 to 256, and no more than there are.
        metric: "dot" or "l2".
        shape: shape of a random matrix. Default: 100,000 rows of 128 columns.
        dtype: type of the stored matrix, each element rounded to nearest: "float16" or "float32".
        seed: seed of a random matrix.
        threads: threads of the block that answers a query on a GPU, 1 to 1,024.

    Raises:
        UsageError: naming what is out of range, and the first element that is not finite.
        SystemError: when the stored matrix does not fit in host memory; the message says how many bytes it takes.

    >>> nearest = topk([[0, 0], [3, 4], [1, 1]], k=2, metric="l2")
    >>> nearest.answer_on_host(np.array([[1, 0]], np.float32))["rows"]
    array([[0, 2]], dtype=uint32)
    """
    if matrix is None:
        matrix = random_matrix(_TOPK_SHAPE if shape is None else shape, seed, "topk")
    elif shape is not None:
        raise UsageError("topk: shape is for a random matrix: leave it out if a matrix is given")
    rows = rows_of("topk: elements of the matrix", matrix)
    stored = stored_type("topk", dtype)
    made = topk_operator(rows, k, metric, stored, threads)
    return compare_with(made, _TopkReference(rows, k, metric, np.dtype(stored)))


def random_matrix(shape: Sequence[int], seed: int, operator: str = "topk") -> Floats:
    """Rows of normally distributed numbers, the default of topk() and lookup()."""
    if len(shape) != 2 or min(shape) < 1:  # noqa: PLR2004
        raise UsageError(f"{operator}: shape must be rows and columns, 1 or more of each, not {tuple(shape)}")
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def stored_type(operator: str, dtype: DTypeLike) -> str:
    """The name of the type in which a matrix is stored."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in _TYPES:
        raise UsageError(f"{operator}: dtype must be {' or '.join(_TYPES)}, not {name}")
    return name


class _MlpReference:
    """A network in float64, and the possible error of float32."""

    def __init__(self, layers: Sequence[tuple[Floats, Floats | None]], activation: str, dtype: np.dtype[Any]) -> None:
        self._layers = [
            (
                matrix.astype(dtype).astype(np.float64),
                np.zeros(len(matrix)) if vector is None else vector.astype(np.float64),
            )
            for matrix, vector in layers
        ]
        self._relu = activation == "relu"

    def expected(self, queries: NDArray[Any]) -> NDArray[Any]:
        return self._with_bounds(queries)[0]

    def differs(self, queries: NDArray[Any], answers: NDArray[Any]) -> int | None:
        expected, bounds = self._with_bounds(queries)
        near = (np.abs(answers - expected) <= bounds) | (np.isnan(expected) & np.isnan(answers))
        wrong = np.flatnonzero(~near.all(axis=1))
        return int(wrong[0]) if len(wrong) else None

    def _with_bounds(self, queries: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Answers, and bounds on their errors: Higham 2002, Accuracy and Stability, section 3.1."""
        values = queries.astype(np.float64)
        errors = np.zeros_like(values)
        for number, (matrix, vector) in enumerate(self._layers):
            # Each product passes through the steps of its chain, three sums within a unit, two of the parts, and the
            # bias.
            steps = -(-matrix.shape[1] // 32) + 6
            gamma = steps * ROUNDING / (1 - steps * ROUNDING)
            size = (np.abs(values) + errors) @ np.abs(matrix.T) + np.abs(vector)
            errors = errors @ np.abs(matrix.T) + gamma * size + TINY
            values = values @ matrix.T + vector
            if self._relu and number + 1 < len(self._layers):
                values = np.maximum(values, 0)
        return values, errors


class _TopkReference:
    """The scores of every row in float64, and the possible error of float32."""

    def __init__(self, matrix: NDArray[Any], k: int, metric: str, dtype: np.dtype[Any]) -> None:
        self._matrix = matrix.astype(dtype, copy=False)  # the user could modify it, and then nothing would agree
        self._k = k
        self._dot = metric == "dot"
        self._answer = np.dtype([("rows", "<u4", (k,)), ("scores", "<f4", (k,))])

    def expected(self, queries: NDArray[Any]) -> NDArray[Any]:
        answers = np.zeros(len(queries), self._answer)
        for number, query in enumerate(queries):
            scores, _ = self._with_bounds(query)
            answers[number]["rows"] = self._order(scores)
            answers[number]["scores"] = scores[answers[number]["rows"]]
        return answers

    def differs(self, queries: NDArray[Any], answers: NDArray[Any]) -> int | None:
        return next((number for number, query in enumerate(queries) if not self._agrees(query, answers[number])), None)

    def _agrees(self, query: NDArray[Any], answer: Any) -> bool:  # noqa: ANN401 (a record)
        """Whether the rows are distinct, have their scores, and are those with the best scores, up to rounding."""
        rows, scores = answer["rows"], answer["scores"].astype(np.float64)
        if len(set(rows.tolist())) != self._k or rows.max() >= len(self._matrix):
            return False
        exact, bounds = self._with_bounds(query)
        best = self._order(exact)
        slack = bounds[rows] + bounds[best]
        own = (np.abs(scores - exact[rows]) <= bounds[rows]) | (np.isnan(scores) & np.isnan(exact[rows]))
        placed = (np.abs(exact[rows] - exact[best]) <= slack + bounds.max()) | np.isnan(exact[best])
        return bool(own.all() and placed.all())

    def _order(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.argsort(-scores if self._dot else scores, kind="stable")[: self._k]

    def _with_bounds(self, query: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows, asked = self._matrix.astype(np.float64), query.astype(np.float64)
        steps = -(-self._matrix.shape[1] // 8) + 3
        if self._dot:
            scores, sizes = rows @ asked, np.abs(rows) @ np.abs(asked)
        else:
            scores = sizes = ((rows - asked) ** 2).sum(axis=1)
            steps += 2  # the difference, and its square
        return scores, steps * ROUNDING / (1 - steps * ROUNDING) * sizes + TINY
