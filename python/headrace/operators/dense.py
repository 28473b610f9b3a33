"""Operators over dense matrices that ship with Headrace: a small network, and the best rows of a matrix."""

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
"""Relative, of one operation in float32 (rounded to the nearest)."""
TINY = 1e-40
"""What the underflow of a few thousand products may add up to."""


class Reference(Protocol):
    """What an operator's answers are compared with: NumPy, in float64."""

    def expected(self, queries: NDArray[Any]) -> NDArray[Any]:
        """The answers to rows of queries."""

    def differs(self, queries: NDArray[Any], answers: NDArray[Any]) -> int | None:
        """The first query whose answer is further off than rounding explains; None where none is."""


def compare_with(operator: Operator, reference: Reference) -> Operator:
    """The operator, whose reference_of() this is from now on."""
    setattr(operator, _REFERENCE, reference)
    return operator


def reference_of(operator: Operator) -> Reference | None:
    """What NumPy says beside mlp(), topk() and lookup(); None for others."""
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
    """A small dense network that answers one vector at a time: of each layer y = activation(W x + b), the last y alone.

    A query is as many float32 as the first layer has inputs, an answer as many as the last has outputs. A layer has at
    most 1,024 of either, and a network eight layers. Sums are float32 in an order that the network alone decides, so
    that answers have the same bits on every device and under every schedule. NaN in a query gives NaN, also through
    relu.

    Args:
        weights: a matrix for each layer, outputs x inputs, as PyTorch's Linear has it. Random ones, made for
            measuring, unless given.
        biases: a vector, or None, for each layer. Zeros, unless given.
        sizes: of random layers: inputs of the first, then outputs of each. Default: 256, 256, 256, 16.
        activation: of every layer but the last: "relu" or "identity".
        dtype: in which weights are stored, each rounded to the nearest: "float16" or "float32".
        seed: of random weights.
        threads: of the block that answers a query on a GPU, 1 to 1,024.

    Raises:
        UsageError: naming the layer, for shapes that do not fit together, and weights or biases that are not finite.

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
    """Weights under which activations keep their size (He et al. 2015), and small biases."""
    if len(sizes) < 2 or any(size < 1 for size in sizes):  # noqa: PLR2004
        raise UsageError(f"mlp: sizes must be the inputs and the outputs of one layer or more, not {list(sizes)}")
    random = np.random.default_rng(seed)
    weights, biases = [], []
    for inputs, outputs in pairwise(sizes):
        weights.append((random.standard_normal((outputs, inputs)) * np.sqrt(2 / inputs)).astype(np.float32))
        biases.append(random.uniform(-_BIAS, _BIAS, outputs).astype(np.float32))
    return weights, biases


def rows_of(what: str, given: ArrayLike) -> NDArray[Any]:
    """A matrix, contiguous: float16 as it is, all else as float32."""
    array = np.asarray(given) if hasattr(given, "dtype") else None
    if array is not None and array.dtype == np.float16 and array.ndim == 2:  # noqa: PLR2004
        return np.ascontiguousarray(array)
    return floats_of(what, given, 2)


def floats_of(what: str, given: ArrayLike, dimensions: int) -> Floats:
    """An array of so many dimensions, as float32 and contiguous."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what} are not an array: {error}") from error
    if array.dtype.kind not in "biuf":
        raise UsageError(f"{what} have type {array.dtype}, which is not numeric")
    if array.ndim != dimensions:
        raise UsageError(f"{what} have {array.ndim} dimensions, not {dimensions}")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused by name
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
    """The k rows of a matrix that are best for a vector, best first, exactly: each query looks at every row.

    A query is a float32 for each column. An answer is a record of `rows`, k numbers of rows (uint32), and their
    `scores` (float32): the dot product, or the squared distance for "l2", of which the smallest is best. Equal scores
    come in the order of their rows; rows whose score is NaN come last, as all do for a query with NaN in it. Scores are
    float32 sums in an order that the columns alone decide, so that answers have the same bits on every device and under
    every schedule.

    Args:
        matrix: up to 2^32 - 32 rows of up to 4,096 columns, all finite. It is copied. Random numbers, made for
            measuring, unless given.
        k: how many rows: 1 to 256, and no more than there are.
        metric: "dot" or "l2".
        shape: of a random matrix. Default: 100,000 rows of 128 columns.
        dtype: in which the matrix is stored, each element rounded to the nearest: "float16" or "float32".
        seed: of a random matrix.
        threads: of the block that answers a query on a GPU, 1 to 1,024.

    Raises:
        UsageError: naming what is out of range, and the first element that is not finite.
        SystemError: where the host's memory does not hold the matrix as it is stored; the message says how many bytes
            that takes.

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
    """Rows of normal numbers, those of topk() and lookup() by default."""
    if len(shape) != 2 or min(shape) < 1:  # noqa: PLR2004
        raise UsageError(f"{operator}: shape must be rows and columns, 1 or more of each, not {tuple(shape)}")
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def stored_type(operator: str, dtype: DTypeLike) -> str:
    """The name of a type in which matrices are stored."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in _TYPES:
        raise UsageError(f"{operator}: dtype must be {' or '.join(_TYPES)}, not {name}")
    return name


class _MlpReference:
    """A network in float64, and how far from it float32 may be."""

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
        """Answers, and the most that they may be off by: Higham 2002, Accuracy and Stability, section 3.1."""
        values = queries.astype(np.float64)
        errors = np.zeros_like(values)
        for number, (matrix, vector) in enumerate(self._layers):
            # A product goes through the steps of its chain, three sums of a unit, two of the parts, and the bias.
            steps = -(-matrix.shape[1] // 32) + 6
            gamma = steps * ROUNDING / (1 - steps * ROUNDING)
            size = (np.abs(values) + errors) @ np.abs(matrix.T) + np.abs(vector)
            errors = errors @ np.abs(matrix.T) + gamma * size + TINY
            values = values @ matrix.T + vector
            if self._relu and number + 1 < len(self._layers):
                values = np.maximum(values, 0)
        return values, errors


class _TopkReference:
    """The scores of every row in float64, and how far from them float32 may be."""

    def __init__(self, matrix: NDArray[Any], k: int, metric: str, dtype: np.dtype[Any]) -> None:
        self._matrix = matrix.astype(dtype, copy=False)  # the operator's user may write to it: then nothing agrees
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
        """Whether rows are different, have their scores, and are those of the best scores, up to rounding."""
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
            steps += 2  # the difference, which is squared
        return scores, steps * ROUNDING / (1 - steps * ROUNDING) * sizes + TINY
