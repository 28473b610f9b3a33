"""The common part of operators in Python and in C++ source: types, named arrays, samples and a reference."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from headrace._core import Device, Operator, function_operator
from headrace.dtypes import write_dtype
from headrace.errors import UsageError
from headrace.operators.arrays import Array, address, as_array, described, on_host
from headrace.operators.signature import Compiled, StateType

_MADE_BY = "made_by"
_lock = threading.Lock()
"""Guards the compiled code: engines start in any thread."""


def _has_gpu() -> bool:
    return any(device.kind.name == "cuda" for device in Device.list())


class CompiledOperator(ABC):
    """A function that is compiled when it is called with its named arrays, which returns an Operator.

    Attributes:
        name: name of the function.
        module: name of the module that made it.
        query, answer: types of a query and of an answer.
        state: names of the arrays that the function takes besides.
        threads, blocks: blocks that answer a query on a GPU, and threads per block.
        made_by: what the user writes to make one, for error messages.
    """

    made_by: ClassVar[str]

    def __init__(
        self,
        name: str,
        module: str,
        query: DTypeLike,
        answer: DTypeLike,
        state: tuple[str, ...],
        sample: Callable[[int], ArrayLike] | None,
        reference: Callable[..., ArrayLike] | None,
        threads: int,
        blocks: int,
    ) -> None:
        self.name = name
        self.module = module
        self.query = _checked(self.name, "query", query)
        self.answer = _checked(self.name, "answer", answer)
        self.state = state
        self._sample = sample
        self._reference = reference
        self.threads = threads
        self.blocks = blocks
        self._compiled: dict[tuple[StateType, ...], Compiled] = {}

    def __call__(self, **state: object) -> Operator:
        """Makes the operator on these arrays, which it keeps; it copies only arrays that are not contiguous.

        This compiles the function for CPU devices, to find mistakes early. Compilation waits until an engine on a CPU
        device starts, or something else needs the code, if the code cache shows that the function compiled before, or
        if there is a GPU: an engine that starts there finds mistakes too, and a program without CPU engines needs no
        compiler. For a GPU, the function is compiled when an engine starts there. Arrays of CuPy, PyTorch and other
        libraries with `__cuda_array_interface__` are used in place, and only by engines on that GPU.

        Raises:
            UsageError: for an array that is missing, unknown or of a type that cannot be passed, and for a function
                that cannot be compiled; the message has its file and line.
        """
        arrays = self._arrays(state)
        types = tuple(StateType(array.dtype, array.ndim) for array in arrays)
        if types not in self._compiled and not _has_gpu() and not self._can_wait(types):
            self._host_code(types)
        words = np.array([word for array in arrays for word in (address(array), *array.shape)] or [0], np.intp)
        made = function_operator(
            self.name,
            self.query.itemsize,
            self.answer.itemsize,
            lambda: self._host_code(types).address,
            words.ctypes.data,
            (self, words, arrays),
            None if self._sample is None else self._sampled,
            write_dtype(self.answer),
            [described(name, array) for name, array in zip(self.state, arrays, strict=True)],
            lambda device, kernels: self._for_cuda(types, device.properties.compute_capability, tuple(kernels)),
            self.blocks,
            self.threads,
        )
        setattr(made, _MADE_BY, (self, dict(zip(self.state, arrays, strict=True))))
        return made

    def _host_code(self, types: tuple[StateType, ...]) -> Compiled:
        with _lock:
            if types not in self._compiled:
                self._compiled[types] = self._for_host(types)
            return self._compiled[types]

    @abstractmethod
    def _can_wait(self, types: tuple[StateType, ...]) -> bool:
        """Whether _for_host() may wait until something needs the code, because it would find no mistake."""

    @abstractmethod
    def _for_host(self, types: tuple[StateType, ...]) -> Compiled:
        """Compiles the function for CPU devices, for arrays of these types."""

    @abstractmethod
    def _for_cuda(self, types: tuple[StateType, ...], compute_capability: int, kernels: tuple[str, ...]) -> bytes:
        """A cubin with the kernels of these names, for arrays of these types."""

    @property
    def has_reference(self) -> bool:
        """Whether expected() has a reference."""
        return self._reference is not None

    def expected(self, queries: NDArray[Any], **state: object) -> NDArray[Any]:
        """The answers of `reference` to an array of queries.

        Raises:
            UsageError: when there is none.
        """
        if self._reference is None:
            raise UsageError(f"operator {self.name} has no reference= to compare with")
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


def maker_of(operator: Operator) -> tuple[CompiledOperator, dict[str, Array]] | None:
    """The object whose call made an Operator, and its arrays; None if it was made in another way."""
    found: tuple[CompiledOperator, dict[str, Array]] | None = getattr(operator, _MADE_BY, None)
    return found


def _checked(operator: str, what: str, given: DTypeLike) -> np.dtype[Any]:
    dtype = np.dtype(given)
    if dtype.hasobject or dtype.itemsize == 0:
        raise UsageError(
            f"operator {operator}: a {what} of type {dtype} has no fixed size in bytes and cannot be passed"
        )
    if not dtype.isnative:
        raise UsageError(f"operator {operator}: a {what} of type {dtype} does not have this machine's byte order")
    return dtype
