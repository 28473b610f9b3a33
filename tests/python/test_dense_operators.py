"""mlp and topk compared with NumPy: values, bounds on errors, and refused arguments."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

import headrace
from headrace import UsageError, operators
from headrace.operators import check as check_module
from headrace.operators.dense import reference_of


def layers(sizes: list[int], seed: int = 2) -> tuple[list[np.ndarray], list[np.ndarray]]:
    random = np.random.default_rng(seed)
    pairs = list(pairwise(sizes))
    weights = [random.integers(-1, 2, (outputs, inputs)).astype(np.float32) for inputs, outputs in pairs]
    return weights, [random.integers(-2, 3, outputs).astype(np.float32) for _, outputs in pairs]


@pytest.mark.parametrize("dtype", ["float16", "float32", np.float16])
@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_whole_numbers_are_exactly_what_numpy_says(dtype: object, activation: str) -> None:
    weights, biases = layers([33, 40, 7, 5])
    network = operators.mlp(weights, biases, activation=activation, dtype=dtype)
    queries = np.random.default_rng(3).integers(-2, 3, (50, 33)).astype(np.float32)
    values = queries
    for number, (matrix, vector) in enumerate(zip(weights, biases, strict=True)):
        values = values @ matrix.T + vector
        if activation == "relu" and number < 2:
            values = np.maximum(values, 0)
    np.testing.assert_array_equal(network.answer_on_host(queries), values)
    with headrace.Engine("cpu", network) as engine, engine.connect() as client:
        answers, status = client.ask_many(queries)
    assert not status.any()
    np.testing.assert_array_equal(answers, values)


def test_weights_are_rounded_as_numpy_rounds_to_float16() -> None:
    random = np.random.default_rng(5)
    bits = random.integers(0, 1 << 32, 40_000, dtype=np.uint32).view(np.float32)
    near = random.integers(0, 0x7C00, 40_000, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = near + np.spacing(near.astype(np.float16)).astype(np.float32) / 2  # halfway between two neighbours
    values = np.concatenate([bits[np.abs(bits) < 65504], near, ties[ties < 65504], -near])
    values = values[: len(values) // 1024 * 1024].reshape(-1, 1024, 1)
    one = np.ones((1, 1), np.float32)
    for column in values:
        rounded = operators.mlp([column]).answer_on_host(one)[0]
        np.testing.assert_array_equal(rounded, column[:, 0].astype(np.float16).astype(np.float32))


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of a check with a long hang limit, because the machine may be busy."""
    made = check_module._plans

    def plans(*, inline: bool) -> Iterator[tuple[headrace.Plan, str]]:
        for plan, name in made(inline=inline):
            plan.hang_after = 3600.0
            yield plan, name

    monkeypatch.setattr(check_module, "_plans", plans)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "operator",
    [
        operators.mlp(),
        operators.mlp(sizes=[100, 30, 3], dtype="float32", activation="identity", seed=4),
        operators.topk(shape=(3000, 37), k=12),
        operators.topk(shape=(500, 16), k=3, metric="l2", dtype="float32"),
    ],
    ids=["mlp", "mlp of float32", "topk", "topk by distance"],
)
def test_every_plan_answers_as_numpy_does_within_the_bound(operator: headrace.Operator) -> None:
    found = list(check_module.check(operator, "cpu", 30))
    assert len(found) > 14
    assert [one for one in found if one.difference is not None] == []


def test_a_wrong_answer_is_found() -> None:
    network = operators.mlp(sizes=[20, 8, 4])
    reference = reference_of(network)
    assert reference is not None
    queries = network.sample(10).view(np.float32)
    answers = network.answer_on_host(queries)
    assert reference.differs(queries, answers) is None
    answers[7, 2] += np.float32(1e-3)
    assert reference.differs(queries, answers) == 7
    answers[7, 2] = np.nan
    assert reference.differs(queries, answers) == 7


def test_wrong_rows_and_wrong_scores_are_found() -> None:
    best = operators.topk(shape=(400, 10), k=4)
    reference = reference_of(best)
    assert reference is not None
    queries = best.sample(10).view(np.float32)
    answers = best.answer_on_host(queries)
    assert reference.differs(queries, answers) is None
    scored = answers.copy()
    scored["scores"][3, 0] += np.float32(1e-3)
    assert reference.differs(queries, scored) == 3
    swapped = answers.copy()
    swapped["rows"][4, :2] = swapped["rows"][4, 1::-1]
    assert reference.differs(queries, swapped) == 4
    doubled = answers.copy()
    doubled["rows"][5, 1], doubled["scores"][5, 1] = doubled["rows"][5, 0], doubled["scores"][5, 0]
    assert reference.differs(queries, doubled) == 5


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int32])
@pytest.mark.parametrize("metric", ["dot", "l2"])
def test_rows_of_whole_numbers_are_numpys_with_ties_by_row(metric: str, dtype: type) -> None:
    random = np.random.default_rng(6)
    matrix = random.integers(-3, 4, (2000, 13)).astype(dtype)
    queries = random.integers(-3, 4, (20, 13)).astype(np.float32)
    exact = matrix.astype(np.float64)
    scores = queries @ exact.T if metric == "dot" else ((queries[:, None] - exact) ** 2).sum(axis=2)
    order = np.argsort(-scores if metric == "dot" else scores, axis=1, kind="stable")[:, :25]
    answers = operators.topk(matrix, 25, metric=metric).answer_on_host(queries)
    np.testing.assert_array_equal(answers["rows"], order)
    np.testing.assert_array_equal(answers["scores"], np.take_along_axis(scores, order, axis=1))


def test_a_matrix_is_copied() -> None:
    matrix = np.array([[1.0], [2.0]], np.float32)
    best = operators.topk(matrix, 1)
    matrix[:] = -9
    assert best.answer_on_host(np.ones((1, 1), np.float32))["rows"][0, 0] == 1
    strided = np.arange(24, dtype=np.float16).reshape(6, 4)[::2, ::2]
    answers = operators.topk(strided, 3).answer_on_host(np.ones((1, 2), np.float32))
    np.testing.assert_array_equal(answers["scores"], [[34, 18, 2]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": [np.ones((2, 3))], "biases": []}, "mlp: 1 layers have weights, but 0 have biases"),
        ({"weights": []}, "mlp: the number of layers must be 1 to 8, not 0"),
        ({"weights": [np.ones(3)]}, "mlp: weights of layer 0 have 1 dimensions, not 2"),
        ({"weights": [[["a"]]]}, "mlp: weights of layer 0 have type <U1, which is not numeric"),
        ({"weights": [[[1, 2], [3]]]}, "mlp: weights of layer 0 are not an array: "),
        ({"weights": [[[1]]], "biases": [[1, 2]]}, "mlp: layer 0 has 2 biases, but 1 outputs"),
        ({"weights": [[[1e300]]]}, "mlp: weight (0, 0) of layer 0 is inf, which is not finite as float16"),
        ({"weights": [[[1]]], "sizes": [1, 1]}, "mlp: sizes are for random weights: leave them out"),
        ({"biases": [[1]]}, "mlp: biases need weights, but none are given"),
        ({"sizes": [4]}, "mlp: sizes must be the inputs and the outputs of one layer or more, not [4]"),
        ({"sizes": [4, 2000]}, "mlp: outputs of layer 0 must be 1 to 1024, not 2000"),
        ({"dtype": "int8"}, "mlp: dtype must be float16 or float32, not int8"),
        ({"dtype": "nothing"}, "mlp: dtype must be float16 or float32, not nothing"),
        ({"activation": "tanh"}, "an activation must be relu or identity, not 'tanh'"),
        ({"threads": 0}, "mlp: threads must be 1 to 1024, not 0"),
    ],
)
def test_what_a_network_cannot_be(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        operators.mlp(**given)  # type: ignore[arg-type]
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"matrix": [[1, 2]], "k": 2}, "topk: k is 2, but the matrix has only 1 rows"),
        ({"matrix": np.zeros((0, 3))}, "topk: rows of the matrix must be 1 to 4294967264, not 0"),
        ({"matrix": [1, 2]}, "topk: elements of the matrix have 1 dimensions, not 2"),
        ({"matrix": [[np.nan]], "k": 1}, "topk: element (0, 0) of the matrix is nan, which is not finite as float16"),
        ({"matrix": [[1]], "shape": (1, 1)}, "topk: shape is for a random matrix: leave it out"),
        ({"shape": (0, 1)}, "topk: shape must be rows and columns, 1 or more of each, not (0, 1)"),
        ({"k": 0}, "topk: k must be 1 to 256, not 0"),
        ({"metric": "cosine"}, "a metric must be dot or l2, not 'cosine'"),
    ],
)
def test_what_a_search_cannot_be(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        operators.topk(**given)  # type: ignore[arg-type]
    assert str(raised.value).startswith(message)
