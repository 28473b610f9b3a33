"""Compares the answers of an operator under every schedule with those of Python, or of the user's reference."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace._core import Device, DeviceKind, Engine, Operator, Plan, rungs
from headrace.dtypes import answer_dtype_of, read_dtype
from headrace.errors import Errc, UsageError
from headrace.operators.compiled_operator import maker_of
from headrace.operators.dense import reference_of


@dataclass(frozen=True)
class Difference:
    """The first query with a different answer.

    Attributes:
        number: number of the query.
        expected, answered: the two answers, or the reason why there is none.
    """

    number: int
    expected: object
    answered: object


@dataclass(frozen=True)
class Checked:
    """Result of one plan.

    Attributes:
        plan: name of the plan, with its batch size.
        queries: number of compared queries.
        difference: None if all answers were right.
    """

    plan: str
    queries: int
    difference: Difference | None


def check(operator: Operator, device: Device | str, queries: int, tolerance: float = 1e-5) -> Iterator[Checked]:
    """Compares the answers of every plan, one plan after the other.

    The first result compares the compiled function, called once per query, with the reference: floating-point numbers
    within `tolerance` of each other, relative to the expected one, all others exactly. The following results compare
    the answers of engines bit by bit with those of the compiled function. Batches begin and end anywhere in the
    queries. On a GPU, an engine there makes the calls of one query each, because its threads may add in another order
    than those of a CPU device.

    mlp(), topk() and lookup() are compared with NumPy in float64, and `tolerance` is not used: each has a bound on the
    rounding errors of float32. Any other operator not made by @operator has only itself as reference: the first result
    compares an engine's answers to one query at a time with the host's answers. On a CPU device both run the same code.

    Raises:
        UsageError: for an operator without sample queries.
    """
    at = Device.parse(device) if isinstance(device, str) else device
    made = maker_of(operator)
    if made is not None and not made[0].has_reference:
        made = None
    reference = reference_of(operator)
    if reference is not None:
        query = read_dtype(operator.query_type)
        asked = operator.sample(queries).view(query.base).reshape(-1, *query.shape)
        expected = reference.expected(asked)
    elif made is None:
        asked = operator.sample(queries)
        expected = _typed(operator, operator.answer_on_host(asked))
    else:
        maker, state = made
        asked = operator.sample(queries).view(maker.query.base).reshape(-1, *maker.query.shape)
        expected = maker.expected(asked, **state)
    if (made is not None or reference is not None) and at.kind is DeviceKind.cpu:
        answers = _typed(operator, operator.answer_on_host(asked))
    else:
        answers, status = _one_by_one(operator, at, asked)
        if status.any():
            number = int(np.flatnonzero(status)[0])
            why = str(Errc.of_status(int(status[number])))
            yield Checked("one query at a time", queries, Difference(number, expected[number], why))
            return
    if reference is None:
        first = _first(expected, answers, tolerance)
    else:
        wrong = reference.differs(asked, answers)
        first = None if wrong is None else Difference(wrong, expected[wrong], answers[wrong])
    yield Checked("one query at a time", queries, first)
    for plan, name in _plans(inline=operator.answers_inline):
        yield Checked(name, queries, _asked(operator, device, plan, asked, answers))


def _typed(operator: Operator, answers: NDArray[Any]) -> NDArray[Any]:
    dtype = answer_dtype_of(operator.answer_type, operator.answer_bytes)
    return answers.view(dtype.base).reshape(-1, *dtype.shape)


def _plans(*, inline: bool) -> Iterator[tuple[Plan, str]]:
    """The plans of every technique that calls operators, with several batch sizes where it makes batches.

    `inline` adds the plans that answer queries inline.
    """
    for rung in rungs():
        if rung.plan.schedule == "none":
            continue
        sizes = (1, 3, 64) if rung.many_batches else (rung.plan.batch_max,)
        for size in sizes:
            plan = rung.plan
            plan.batch_max = size
            yield plan, f"{rung.id}, batches of up to {size}" if rung.many_batches else rung.id
        if rung.plan.schedule == "dispatched" and inline:
            plan = rung.plan
            plan.answer_inline = not plan.answer_inline
            yield plan, f"{rung.id}, {'' if plan.answer_inline else 'not '}inline"


def _asked(
    operator: Operator, device: Device | str, plan: Plan, asked: NDArray[Any], answers: NDArray[Any]
) -> Difference | None:
    with Engine(device, operator, plan) as engine, engine.connect() as client:
        got, status = client.ask_many(asked)
    if status.any():
        number = int(np.flatnonzero(status)[0])
        return Difference(number, answers[number], str(Errc.of_status(int(status[number]))))
    return _first(answers, got, None)


def _one_by_one(operator: Operator, device: Device, asked: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    with Engine(device, operator, Plan()) as engine, engine.connect() as client:
        parts = [client.ask_many(asked[number : number + 1]) for number in range(len(asked))]
    return np.concatenate([answers for answers, _ in parts]), np.concatenate([status for _, status in parts])


def _first(expected: NDArray[Any], answered: NDArray[Any], tolerance: float | None) -> Difference | None:
    """The first row that differs; compares bit by bit without a tolerance."""
    for number in range(len(expected)):
        if tolerance is None:
            same = _equal(expected[number], answered[number])
        else:
            same = _close(expected[number], answered[number], tolerance)
        if not same:
            return Difference(number, expected[number], answered[number])
    return None


def _equal(expected: Any, answered: Any) -> bool:  # noqa: ANN401
    """Compares bit by bit, except for padding bytes between fields, which operators need not write."""
    names = expected.dtype.names
    if names is not None:
        return all(_equal(expected[name], answered[name]) for name in names)
    return bool(expected.tobytes() == answered.tobytes())


def _close(expected: Any, answered: Any, tolerance: float) -> bool:  # noqa: ANN401
    names = expected.dtype.names
    if names is not None:
        return all(_close(expected[name], answered[name], tolerance) for name in names)
    if expected.dtype.kind in "fc":
        return bool(np.allclose(answered, expected, rtol=tolerance, atol=0, equal_nan=True))
    return bool(np.array_equal(answered, expected))


def require_sample(operator: Operator) -> None:
    """Raises UsageError if there are no queries to compare."""
    try:
        operator.sample(1)
    except UsageError as error:
        of = maker_of(operator)
        how = "its struct a static Query sample(std::uint64_t i)" if of is None else f"{of[0].made_by} a sample="
        raise UsageError(f"{error}: give {how}, which makes query number i") from None
