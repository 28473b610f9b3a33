"""The decorator that makes an operator of a function, and what it makes."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headrace._core import Device, Operator, function_operator
from headrace.dtypes import write_dtype
from headrace.errors import UsageError
from headrace.operators.arrays import Array, address, as_array, described, on_host
from headrace.operators.compile import Compiled, compile_answer
from headrace.operators.group import Group
from headrace.operators.signature import StateType

Function = Callable[..., None]
_MADE_BY = "made_by"
_FIRST = 3
"""A function's parameters before those that name arrays: group, query, answer."""


class PythonOperator:
    """A function that answers one query; see operator(). Calling it with its named arrays gives an Operator.

    Attributes:
        name: of the function.
        function: what was decorated.
        query, answer: the types of a query and an answer.
        state: the names of the arrays that the function takes besides.
        threads, blocks: how many answer a query on a GPU: blocks, and threads of each.
    """

    def __init__(
        self,
        function: Function,
        query: DTypeLike,
        answer: DTypeLike,
        sample: Callable[[int], ArrayLike] | None = None,
        reference: Callable[..., ArrayLike] | None = None,
        threads: int = 32,
        blocks: int = 1,
    ) -> None:
        self.name = function.__name__
        self.function = function
        self.query = _checked(self.name, "query", query)
        self.answer = _checked(self.name, "answer", answer)
        self.state = _state_names(function)
        self._sample = sample
        self._reference = reference
        self.threads = threads
        self.blocks = blocks
        self._compiled: dict[tuple[StateType, ...], Compiled] = {}
        self.__doc__ = function.__doc__

    def __call__(self, **state: object) -> Operator:
        """The operator over these arrays, which it keeps, and copies only where they are not contiguous.

        It is compiled for CPU devices here, and for a GPU when an engine starts there. Arrays of CuPy, PyTorch and
        others with `__cuda_array_interface__` are used where they lie, by engines on that GPU alone.

        Raises:
            UsageError: for an array that is missing or not taken, or whose type cannot be passed, and where the
                function cannot be compiled; the message has its file and line.
        """
        arrays = self._arrays(state)
        types = tuple(StateType(array.dtype, array.ndim) for array in arrays)
        if types not in self._compiled:
            self._compiled[types] = compile_answer(self.function, self.query, self.answer, types)
        compiled = self._compiled[types]
        words = np.array([word for array in arrays for word in (address(array), *array.shape)] or [0], np.intp)
        made = function_operator(
            self.name,
            self.query.itemsize,
            self.answer.itemsize,
            compiled.address,
            words.ctypes.data,
            (compiled, words, arrays),
            None if self._sample is None else self._sampled,
            write_dtype(self.answer),
            [described(name, array) for name, array in zip(self.state, arrays, strict=True)],
            lambda device: self._code(types, device),
            self.blocks,
            self.threads,
        )
        setattr(made, _MADE_BY, (self, dict(zip(self.state, arrays, strict=True))))
        return made

    def _code(self, types: tuple[StateType, ...], device: Device) -> bytes:
        from headrace.operators import compile_cuda  # noqa: PLC0415 # only those who use a GPU need it

        capability = device.properties.compute_capability
        return compile_cuda.compile_answer(self.function, self.query, self.answer, types, capability)

    def answer_in_python(self, queries: ArrayLike, **state: object) -> NDArray[Any]:
        """The answers to an array of queries, by the function as Python runs it: to compare with, and to debug."""
        arrays = self._arrays(state)
        asked = np.asarray(queries, self.query.base)
        shape = self.query.shape
        asked = asked.reshape(-1, *shape)
        answers = np.zeros((len(asked), *self.answer.shape), self.answer.base)
        given = [one[()] if one.ndim == 0 else _with_fields(one) for one in map(on_host, arrays)]
        for index in range(len(asked)):
            self.function(Group(), _one(self.query, asked, index), _one(self.answer, answers, index), *given)
        return answers

    def expected(self, queries: NDArray[Any], **state: object) -> NDArray[Any]:
        """The answers to compare with: by `reference`, where there is one, else by answer_in_python()."""
        if self._reference is None:
            return self.answer_in_python(queries, **state)
        answers = np.zeros((len(queries), *self.answer.shape), self.answer.base)
        given = {name: on_host(array) for name, array in zip(self.state, self._arrays(state), strict=True)}
        for index, query in enumerate(queries):
            answers[index] = self._reference(query, **given)
        return answers

    def _sampled(self, index: int) -> NDArray[np.uint8]:
        if self._sample is None:
            raise UsageError(f"operator {self.name} has no sample queries")
        made = np.zeros(self.query.shape, self.query.base)
        made[...] = self._sample(index)
        return np.atleast_1d(made).view(np.uint8).reshape(-1)

    def _arrays(self, state: dict[str, object]) -> tuple[Array, ...]:
        missing = [name for name in self.state if name not in state]
        unknown = [name for name in state if name not in self.state]
        if missing or unknown:
            wrong = [f"{name} missing" for name in missing] + [f"{name} unknown" for name in unknown]
            takes = ", ".join(self.state) or "no arrays"
            raise UsageError(f"operator {self.name} takes {takes}: {', '.join(wrong)}")
        return tuple(as_array(self.name, name, state[name]) for name in self.state)


def operator(
    *,
    query: DTypeLike,
    answer: DTypeLike,
    sample: Callable[[int], ArrayLike] | None = None,
    reference: Callable[..., ArrayLike] | None = None,
    threads: int = 32,
    blocks: int = 1,
) -> Callable[[Function], PythonOperator]:
    """Makes an operator of a function that answers one query: `function(group, query, answer, ...)`.

    `query` and `answer` are NumPy types. The function sees a type with fields as a record (`query.x`), a type with a
    shape as an array, and a plain number as an array of one (`query[0]`). It writes the whole answer. Its further
    parameters name arrays, or numbers, that are given when the operator is made: `nearest(rows=table)`. `group` says
    which part of the work is this thread's; see Group. The function is compiled by Numba, without Python's objects.

    A function that raises an exception has not answered: that query and all later ones of the engine fail (device
    fault). answer_in_python() shows the exception.

    Args:
        query: type of a query.
        answer: type of an answer.
        sample: gives query number `index` of an endless sequence; load tests and `headrace check` need it.
        reference: gives the answer to a query, from the same arrays by name: `reference(query, rows=table)`.
            `headrace check` compares with it, else with what Python makes of the function.
        threads: of each block that answers a query on a GPU, 1 to 1,024. All of them run the function.
        blocks: that answer a query together on a GPU.

    >>> @operator(query="i8", answer="i8")
    ... def double(group, query, answer):
    ...     answer[0] = 2 * query[0]
    >>> double.answer_in_python([1, 2])
    array([2, 4])
    """
    return lambda function: PythonOperator(function, query, answer, sample, reference, threads, blocks)


def function_of(operator: Operator) -> tuple[PythonOperator, dict[str, Array]] | None:
    """The function under @operator that made an Operator, and its arrays; None for one that was made otherwise."""
    found: tuple[PythonOperator, dict[str, Array]] | None = getattr(operator, _MADE_BY, None)
    return found


def _checked(operator: str, what: str, given: DTypeLike) -> np.dtype[Any]:
    dtype = np.dtype(given)
    if dtype.hasobject or dtype.itemsize == 0:
        raise UsageError(f"operator {operator}: a {what} of type {dtype} has no fixed bytes that could be passed")
    if not dtype.isnative:
        raise UsageError(f"operator {operator}: a {what} of type {dtype} is not in this machine's byte order")
    return dtype


def _state_names(function: Function) -> tuple[str, ...]:
    parameters = list(inspect.signature(function).parameters.values())
    plain = all(
        one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD} and one.default is one.empty for one in parameters
    )
    if len(parameters) < _FIRST or not plain:
        raise UsageError(
            f"operator {function.__name__}: its parameters are group, query, answer and the names of its arrays, "
            "without defaults"
        )
    return tuple(one.name for one in parameters[_FIRST:])


def _one(dtype: np.dtype[Any], rows: NDArray[Any], index: int) -> Any:  # noqa: ANN401
    """What the function sees of row `index`."""
    if dtype.subdtype is not None:
        return _with_fields(rows[index])
    one = rows[index : index + 1]
    return _with_fields(one)[0] if dtype.names is not None else one


def _with_fields(array: NDArray[Any]) -> NDArray[Any]:
    """An array whose records have their fields as attributes, as compiled functions see them."""
    return array.view(np.recarray) if array.dtype.names is not None else array
