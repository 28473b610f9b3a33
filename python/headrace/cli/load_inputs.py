"""Requests for a model that a server describes: random by seed, or from rows of NumPy files."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace import UsageError
from headrace._core import InputTensor, ModelInput, Tensor
from headrace.errors import DataError, reading
from headrace.npy import BROKEN
from headrace.text import printable
from headrace.units import bytes_text

_BYTES_OF_REQUESTS = 1 << 20  # for all random requests, so that they stay in a core's cache ...
_LEAST, _MOST = 4, 256  # ... but between these numbers of requests
_BYTES_MOST = 1 << 30  # for all requests: a server may describe inputs of any size
_WHOLE_MOST = 100  # random whole numbers stay below it: valid for every type, and small enough for indices
_WORD = 8  # letters per random element of BYTES

_DTYPES = {
    "BOOL": "?",
    **{f"UINT{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    **{f"INT{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": f"<f{size}" for size in (2, 4, 8)},
    "BF16": "<u2",  # NumPy has no such type: the bits of one
}


def make_requests(
    inputs: Sequence[ModelInput | Tensor], files: Mapping[str, Path], *, queries: int, seed: int
) -> list[list[InputTensor]]:
    """Requests of `queries` queries each, to be sent in turn.

    Args:
        inputs: inputs of the model. If each begins with a dimension of any size, that is the number of queries.
        files: an .npy file per input, whose rows are queries. Other inputs are random.
        queries: number of queries per request.
        seed: seed of the random inputs.

    Raises:
        UsageError: for an unknown input, a file that does not fit, an input of any size without a file, and several
            queries for a model that takes one per request.
        DataError: for a file that is not an array.
        SystemError: for a file that cannot be read.
    """
    if not inputs:
        raise DataError("the model has no inputs, so it cannot be queried")
    for name in files.keys() - {one.name for one in inputs}:
        known = ", ".join(printable(one.name) for one in inputs)
        raise UsageError(f"the model has no input '{printable(name)}': it has {known}")
    batched = all(one.shape and one.shape[0] < 0 for one in inputs)
    if queries > 1 and not batched:
        raise UsageError("the model takes one query a request: leave out --queries-per-request")
    rows = {one.name: _read_rows(one, files[one.name], batched=batched) for one in inputs if one.name in files}
    count = _count(inputs, rows, queries, batched=batched)
    generator = np.random.default_rng(seed)
    for one in inputs:
        if one.name not in rows:
            rows[one.name] = _random_rows(one, generator, count * queries, batched=batched)
    return [[_tensor(one, rows[one.name], i, queries, batched=batched) for one in inputs] for i in range(count)]


def _shape(one: ModelInput | Tensor, *, batched: bool) -> list[int]:
    """The shape of one query."""
    return list(one.shape[1:] if batched else one.shape)


def _element_bytes(one: ModelInput | Tensor) -> int:
    return 4 + _WORD if one.datatype == "BYTES" else np.dtype(_dtype(one)).itemsize


def _dtype(one: ModelInput | Tensor) -> str:
    if one.datatype not in _DTYPES:
        raise UsageError(f"input {printable(one.name)} has type {printable(one.datatype)}, which is not supported")
    return _DTYPES[one.datatype]


def _count(
    inputs: Sequence[ModelInput | Tensor], rows: Mapping[str, NDArray[Any]], queries: int, *, batched: bool
) -> int:
    """Number of requests: each row of every file is in at least one."""
    size = queries * sum(
        rows[one.name][0].nbytes
        if one.name in rows
        else math.prod(map(abs, _shape(one, batched=batched))) * _element_bytes(one)
        for one in inputs
    )
    count = min(max(_BYTES_OF_REQUESTS // max(1, size), _LEAST), _MOST)
    if rows:
        count = max(-(-len(array) // queries) for array in rows.values())
    if count * size > _BYTES_MOST:
        raise UsageError(
            f"{count:,} requests of {bytes_text(size)} are more than {bytes_text(_BYTES_MOST)}: give fewer rows, or "
            "lower --queries-per-request"
        )
    return count


def _read_rows(one: ModelInput | Tensor, path: Path, *, batched: bool) -> NDArray[Any]:
    """Reads the queries of a file, along its first dimension."""
    what = f"--input {printable(one.name)}={printable(str(path))}"
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError as error:
        raise reading(path, error) from None
    except BROKEN as error:
        raise DataError(f"{what}: not a NumPy array (.npy): {printable(str(error))}") from None
    if one.datatype == "BYTES":
        if array.dtype.kind not in "SU":
            raise UsageError(f"{what}: the array has type {array.dtype}, but BYTES takes strings (S or U)")
    elif array.dtype != np.dtype(_dtype(one)):
        raise UsageError(f"{what}: the array has type {array.dtype}, but {one.datatype} takes {np.dtype(_dtype(one))}")
    shape = _shape(one, batched=batched)
    if array.ndim == len(shape):
        array = array[None]
    fits = array.ndim == len(shape) + 1 and all(
        want < 0 or want == have for want, have in zip(shape, array.shape[1:], strict=True)
    )
    if not fits or array.size == 0:
        raise UsageError(f"{what}: the array has shape {list(array.shape)}, but a query has {shape}")
    return array


def _random_rows(
    one: ModelInput | Tensor, generator: np.random.Generator, count: int, *, batched: bool
) -> NDArray[Any]:
    shape = _shape(one, batched=batched)
    if any(size < 0 for size in shape):
        raise UsageError(
            f"input {printable(one.name)} takes any size ({list(one.shape)}): give one with "
            f"--input {printable(one.name)}=FILE.npy"
        )
    whole = (count, *shape)
    if one.datatype == "BYTES":
        letters = generator.integers(ord("a"), ord("z") + 1, (*whole, _WORD), np.uint8)
        return letters.view(f"S{_WORD}").reshape(whole)
    dtype = np.dtype(_dtype(one))
    if one.datatype == "BF16":
        return (generator.random(whole, np.float32).view(np.uint32) >> 16).astype(dtype)
    if dtype.kind == "f":
        return generator.random(whole, np.float64).astype(dtype)
    return generator.integers(0, 2 if dtype.kind == "b" else _WHOLE_MOST, whole).astype(dtype)


def _tensor(one: ModelInput | Tensor, rows: NDArray[Any], index: int, queries: int, *, batched: bool) -> InputTensor:
    """The input of one request; files with fewer rows than others start over."""
    taken = rows[np.arange(index * queries, (index + 1) * queries) % len(rows)]
    content = _texts(taken) if one.datatype == "BYTES" else np.ascontiguousarray(taken).tobytes()
    shape = taken.shape if batched else taken.shape[1:]
    return InputTensor(one.name, one.datatype, list(shape), content)


def _texts(rows: NDArray[Any]) -> bytes:
    """Elements of BYTES, each preceded by its length."""
    texts = [text.encode() if isinstance(text, str) else bytes(text) for text in rows.ravel()]
    return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
