"""Sparse matrices on several devices, compared with SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import headrace
from headrace import UsageError
from headrace.operators import CsrMatrix

DEVICES = {"one": "cpu:0", "two": ["cpu:0", "cpu:1"], "three": ["cpu:2", "cpu:0", "cpu:1"]}


def skewed(rows: int, columns: int, dtype: str) -> sparse.csr_array:
    """Most rows short, many empty, one dense."""
    random = np.random.default_rng(4)
    lengths = np.minimum(random.zipf(1.6, rows) - 1, columns)
    lengths[rows // 2] = columns
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = random.integers(0, columns, indptr[-1])
    return sparse.csr_array((random.standard_normal(indptr[-1]).astype(dtype), indices, indptr), shape=(rows, columns))


def matrices(dtype: str) -> dict[str, sparse.sparray]:
    random = np.random.default_rng(3)
    return {
        "random": sparse.random_array((3000, 5000), density=0.01, dtype=dtype, rng=random),
        "banded": sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(9000, 9000), dtype=dtype),
        "skewed": skewed(4000, 6000, dtype),
        "empty": sparse.csr_array((100, 50), dtype=dtype),
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["random", "banded", "skewed", "empty"])
@pytest.mark.parametrize("devices", DEVICES)
def test_product_is_that_of_scipy(dtype: str, kind: str, devices: str):
    host = matrices(dtype)[kind]
    matrix = CsrMatrix.from_scipy(DEVICES[devices], host)
    assert matrix.shape == host.shape
    assert matrix.nnz == host.nnz
    assert matrix.dtype == dtype
    x = np.random.default_rng(5).standard_normal(host.shape[1]).astype(dtype)
    y = matrix @ x
    assert y.dtype == dtype
    # An entry's error is bounded by the rounding of its summands, however small the sum is.
    bound = abs(host) @ abs(x) * np.finfo(dtype).eps * 100
    np.testing.assert_array_less(abs(y - host @ x), bound + np.finfo(dtype).tiny)


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), max_size=60),
    columns=st.integers(1, 30),
    devices=st.integers(1, 4),
    index=st.sampled_from(["int32", "int64"]),
    seed=st.integers(0, 1000),
)
def test_any_matrix(lengths: list[int], columns: int, devices: int, index: str, seed: int):
    random = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    indices = random.integers(0, columns, indptr[-1]).astype(index)
    data = random.integers(-3, 4, indptr[-1]).astype(np.float32)
    x = random.integers(-5, 6, columns).astype(np.float32)
    shape = (len(lengths), columns)
    matrix = CsrMatrix([f"cpu:{n}" for n in range(devices)], indptr, indices, data, shape)
    assert sum(part.row_count for part in matrix.parts) == len(lengths)
    assert sum(part.entry_count for part in matrix.parts) == len(data)
    dense = np.zeros(shape, np.float32)
    np.add.at(dense, (np.repeat(np.arange(len(lengths)), lengths), indices), data)
    np.testing.assert_array_equal(matrix.multiply(x), dense @ x)


def test_powers_stay_on_the_devices():
    host = sparse.diags_array([0.25, 0.5, 0.25], offsets=[-1, 0, 1], shape=(5000, 5000)).tocsr()
    matrix = CsrMatrix.from_scipy(["cpu:0", "cpu:1"], host)
    x = np.random.default_rng(1).standard_normal(5000)
    expected = x
    for _ in range(50):
        expected = host @ expected
    np.testing.assert_allclose(matrix.multiply(x, times=50), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(matrix.multiply(x), host @ x, rtol=1e-12, atol=1e-14)


def test_a_device_and_its_name_are_the_same():
    eye = sparse.eye_array(4, format="csr")
    for devices in ("cpu", headrace.Device.parse("cpu"), [headrace.Device.parse("cpu"), "cpu:3"]):
        np.testing.assert_array_equal(CsrMatrix.from_scipy(devices, eye) @ np.arange(4.0), np.arange(4.0))


def test_time_and_repr():
    matrix = CsrMatrix.from_scipy(["cpu:0", "cpu:1"], sparse.eye_array(1000, format="csr"))
    seconds = matrix.time(samples=3, repeats=2)
    assert len(seconds) == 3
    assert all(0 < value < 10 for value in seconds)
    assert repr(matrix) == "CsrMatrix(1000 x 1000, 1000 entries, float64, 2 devices)"
    assert [part.device.name for part in matrix.parts] == ["cpu:0", "cpu:1"]
    assert all(part.bytes >= part.entry_count * 12 for part in matrix.parts)
    with pytest.raises(UsageError, match="at least 1"):
        matrix.time(samples=0)


GOOD = {
    "indptr": np.array([0, 1, 3]),
    "indices": np.array([0, 1, 2], np.int32),
    "data": np.array([1.0, 2.0, 3.0]),
    "shape": (2, 3),
}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"indptr": np.array([0, 2, 1])}, "row 1: row pointers"),
        ({"indptr": np.array([0, 1, 2])}, "end with 2, but there are 3"),
        ({"indptr": np.array([0, 3])}, "3 row pointers"),
        ({"indptr": np.array([0.0, 1.0, 3.0])}, "indptr is float64, but must be int32 or int64"),
        ({"indices": np.array([0, 1, 3], np.int32)}, "column 3"),
        ({"indices": np.array([0, -1, 2])}, "column -1"),
        ({"indices": np.array([0, 1, 2], np.uint32)}, "indices is uint32, but must be int32 or int64"),
        ({"indices": np.array([[0, 1, 2]], np.int32)}, "one dimension, not 2"),
        ({"data": np.array([1, 2, 3])}, "data is int64, but must be float32 or float64"),
        ({"data": np.arange(6.0)[::2]}, "must be contiguous in memory"),
        ({"data": np.arange(2.0)}, "3 columns .* and 2 values"),
        ({"shape": (3, 3)}, "4 row pointers"),
        ({"shape": (2, 2**33)}, "more than"),
        ({"devices": []}, "needs at least one device"),
        ({"devices": ["cpu", "cpu:0"]}, "named twice"),
        ({"devices": "gpu"}, "gpu"),
    ],
)
def test_bad_input(wrong: dict[str, object], says: str):
    arguments = {"devices": "cpu", **GOOD, **wrong}
    with pytest.raises(UsageError, match=says):
        CsrMatrix(**arguments)


def test_bad_vectors():
    matrix = CsrMatrix("cpu", **GOOD)
    np.testing.assert_array_equal(matrix @ np.array([1.0, 10.0, 100.0]), [1.0, 320.0])
    for x, says in [
        (np.zeros(2), "x has 2 values, but the matrix has 3 columns"),
        (np.zeros(3, np.float32), "x is float32, but must be float64"),
        (np.zeros(6)[::2], "must be contiguous in memory"),
    ]:
        with pytest.raises(UsageError, match=says):
            matrix.multiply(x)
    with pytest.raises(UsageError, match="only a square matrix"):
        matrix.multiply(np.zeros(3), times=2)
    with pytest.raises(UsageError, match="at least 1"):
        matrix.multiply(np.zeros(3), times=0)
    with pytest.raises(TypeError):
        matrix.multiply([1.0, 2.0, 3.0])


def test_measured_gather():
    assert 1e7 < headrace.measure.gather("cpu:0", "cpu:1") < 1e13
    with pytest.raises(UsageError, match="gpu"):
        headrace.measure.gather("cpu", "gpu")


def test_what_is_no_sparse_matrix():
    with pytest.raises(TypeError, match="must be a sparse matrix"):
        CsrMatrix.from_scipy("cpu", np.eye(3))
