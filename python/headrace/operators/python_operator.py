"""The decorator that makes an operator from a function, and the class of its result."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headrace.errors import UsageError
from headrace.operators.arrays import on_host
from headrace.operators.compiled_operator import CompiledOperator
from headrace.operators.group import Group
from headrace.operators.signature import Compiled, StateType

Function = Callable[..., None]
_FIRST = 3
"""A function's parameters before the names of arrays: group, query, answer."""


class PythonOperator(CompiledOperator):
    """A function that answers one query; see operator(). Calling it with its named arrays returns an Operator.

    Attributes:
        function: the decorated function.
        contract: whether a product and a sum may be rounded once. The other attributes are those of CompiledOperator.
    """

    made_by = "@operator"

    def __init__(
        self,
        function: Function,
        query: DTypeLike,
        answer: DTypeLike,
        sample: Callable[[int], ArrayLike] | None = None,
        reference: Callable[..., ArrayLike] | None = None,
        threads: int = 32,
        blocks: int = 1,
        *,
        contract: bool = False,
    ) -> None:
        state = _state_names(function)
        super().__init__(
            function.__name__, function.__module__, query, answer, state, sample, reference, threads, blocks
        )
        self.function = function
        self.contract = contract
        self.__doc__ = function.__doc__

    def _can_wait(self, types: tuple[StateType, ...]) -> bool:
        from headrace.operators import compile  # noqa: A004, PLC0415 # only those who make operators need it

        return compile.compiled_before(self.function, self.query, self.answer, types, contract=self.contract)

    def _for_host(self, types: tuple[StateType, ...]) -> Compiled:
        from headrace.operators import compile  # noqa: A004, PLC0415 # likewise

        return compile.compile_answer(self.function, self.query, self.answer, types, contract=self.contract)

    def _for_cuda(self, types: tuple[StateType, ...], compute_capability: int, kernels: tuple[str, ...]) -> bytes:
        from headrace.operators import compile_cuda  # noqa: PLC0415 # only those who use a GPU need it

        return compile_cuda.compile_answer(
            self.function, self.query, self.answer, types, compute_capability, kernels, contract=self.contract
        )

    def answer_in_python(self, queries: ArrayLike, **state: object) -> NDArray[Any]:
        """Answers an array of queries by running the function in plain Python, for comparison and debugging."""
        arrays = self._arrays(state)
        asked = np.asarray(queries, self.query.base)
        shape = self.query.shape
        asked = asked.reshape(-1, *shape)
        answers = np.zeros((len(asked), *self.answer.shape), self.answer.base)
        given = [one[()] if one.ndim == 0 else _with_fields(one) for one in map(on_host, arrays)]
        for index in range(len(asked)):
            self.function(Group(), _one(self.query, asked, index), _one(self.answer, answers, index), *given)
        return answers

    @property
    def has_reference(self) -> bool:
        """Always true: Python can run the function itself."""
        return True

    def expected(self, queries: NDArray[Any], **state: object) -> NDArray[Any]:
        """The answers to compare with: those of `reference` if given, else of answer_in_python()."""
        if self._reference is None:
            return self.answer_in_python(queries, **state)
        return super().expected(queries, **state)


def operator(
    *,
    query: DTypeLike,
    answer: DTypeLike,
    sample: Callable[[int], ArrayLike] | None = None,
    reference: Callable[..., ArrayLike] | None = None,
    threads: int = 32,
    blocks: int = 1,
    contract: bool = False,
) -> Callable[[Function], PythonOperator]:
    """Makes an operator of a function that answers one query: `function(group, query, answer, ...)`.

    `query` and `answer` are NumPy types. The function sees a type with fields as a record (`query.x`), a type with a
    shape as an array, and a plain number as an array of one element (`query[0]`). It writes the whole answer. Its
    further parameters name arrays or numbers that are given when the operator is made: `nearest(rows=table)`. `group`
    says which part of the work belongs to this thread; see Group. Numba compiles the function without Python objects.

    A function that raises an exception does not answer: that query and all later ones of the engine fail (device
    fault). answer_in_python() shows the exception.

    Args:
        query: type of a query.
        answer: type of an answer.
        sample: returns query number `index` of an endless sequence; load tests and `headrace check` need it.
        reference: returns the answer to a query, given the same arrays by name: `reference(query, rows=table)`.
            `headrace check` compares with it, or else with the function run in plain Python.
        threads: threads per block on a GPU, 1 to 1,024. All of them run the function.
        blocks: blocks that answer a query together on a GPU.
        contract: lets compilers fuse a product and a sum into one multiply-add, which is faster and rounds once.
            Answers may then differ in their last bits between devices, and from those of plain Python.

    >>> @operator(query="i8", answer="i8")
    ... def double(group, query, answer):
    ...     answer[0] = 2 * query[0]
    >>> double.answer_in_python([1, 2])
    array([2, 4])
    """
    return lambda function: PythonOperator(
        function, query, answer, sample, reference, threads, blocks, contract=contract
    )


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
    """Row `index` as the function sees it."""
    if dtype.subdtype is not None:
        return _with_fields(rows[index])
    one = rows[index : index + 1]
    return _with_fields(one)[0] if dtype.names is not None else one


def _with_fields(array: NDArray[Any]) -> NDArray[Any]:
    """An array whose records have their fields as attributes, as in compiled functions."""
    return array.view(np.recarray) if array.dtype.names is not None else array
