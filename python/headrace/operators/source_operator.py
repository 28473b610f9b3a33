"""Operators given as C++ source."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from numpy.typing import ArrayLike, DTypeLike

from headrace.errors import MissingFileError, UsageError
from headrace.operators import source_text
from headrace.operators.compiled_operator import CompiledOperator
from headrace.operators.signature import WORDS_MOST, Compiled, StateType


class SourceOperator(CompiledOperator):
    """A C++ function that answers one query; see from_source(). Calling it with its named arrays returns an Operator.

    Attributes:
        text: the source.
        file: name of the source in errors. The other attributes are those of CompiledOperator.
    """

    made_by = "from_source()"

    def __init__(
        self,
        name: str,
        module: str,
        text: str,
        file: Path | None,
        query: DTypeLike,
        answer: DTypeLike,
        state: tuple[str, ...] = (),
        sample: Callable[[int], ArrayLike] | None = None,
        reference: Callable[..., ArrayLike] | None = None,
        threads: int = 32,
        blocks: int = 1,
    ) -> None:
        for one in (name, *state):
            if not one.isidentifier() or not one.isascii():
                raise UsageError(f"operator {name}: '{one}' is not a valid C++ name")
        super().__init__(name, module, query, answer, state, sample, reference, threads, blocks)
        self.text = text
        self.file = f"<source of {name}>" if file is None else str(file)
        self._folder = Path.cwd() if file is None else file.parent.resolve()

    def _can_wait(self, types: tuple[StateType, ...]) -> bool:
        from headrace.operators import compile_source  # noqa: PLC0415 # only those who make operators need it

        return compile_source.can_wait(self._complete(types), self._folder)

    def _for_host(self, types: tuple[StateType, ...]) -> Compiled:
        from headrace.operators import compile_source  # noqa: PLC0415 # likewise

        return compile_source.compile_for_host(self.name, self._complete(types), self._folder)

    def _for_cuda(self, types: tuple[StateType, ...], compute_capability: int, kernels: tuple[str, ...]) -> bytes:
        from headrace.operators import compile_source  # noqa: PLC0415 # likewise

        complete = self._complete(types)
        return compile_source.compile_for_cuda(self.name, complete, self._folder, compute_capability, kernels)

    def _complete(self, types: tuple[StateType, ...]) -> str:
        state = list(zip(self.state, types, strict=True))
        return source_text.complete(self.name, self.file, self.text, self.query, self.answer, state, WORDS_MOST)


def from_source(
    source: str | Path,
    name: str,
    *,
    query: DTypeLike,
    answer: DTypeLike,
    state: Sequence[str] = (),
    sample: Callable[[int], ArrayLike] | None = None,
    reference: Callable[..., ArrayLike] | None = None,
    threads: int = 32,
    blocks: int = 1,
) -> SourceOperator:
    """Makes an operator from C++ source with a function `name(Group group, const Query& query, Answer& answer, ...)`.

    `Query` and `Answer` are C++ types for the given NumPy types: a struct with the fields, an array or a number. The
    function writes the whole answer. It returns nothing, or a bool that says whether it could answer; if it could not,
    or throws, that query and all later ones of the engine fail (device fault). Its further parameters are the arrays
    named by `state`, in that order, as `Array<float, 2>`, and numbers by value: they are given when the operator is
    made, `nearest(rows=table)`. The source is plain C++, without `__device__`. For CPU devices it is compiled by the
    compiler in $CXX, or by c++, g++ or clang++; for GPUs by NVRTC. The code is kept in the cache folder.

    Args:
        source: the text, or the Path of a file.
        name: name of the function, and of the operator.
        query: type of a query; with fields, laid out as by np.dtype([...], align=True).
        answer: type of an answer, likewise.
        state: names of arrays and numbers.
        sample: returns query number `index` of an endless sequence; load tests and `headrace check` need it.
        reference: returns the answer to a query, given the same arrays by name: `reference(query, rows=table)`.
        threads: threads per block on a GPU, 1 to 1,024. All of them run the function.
        blocks: blocks that answer a query together on a GPU.

    Raises:
        UsageError: for a type that C++ does not have, and an invalid name.
        MissingFileError: when the file does not exist.

    >>> source = "void twice(Group, const Query& query, Answer& answer) { answer = 2 * query; }"
    >>> from_source(source, "twice", query="i8", answer="i8").name
    'twice'
    """
    file = source if isinstance(source, Path) else None
    text = source if isinstance(source, str) else _read(source)
    module = sys._getframe(1).f_globals.get("__name__", "")  # found in the same way as by namedtuple()
    made = SourceOperator(name, module, text, file, query, answer, tuple(state), sample, reference, threads, blocks)
    source_text.require_types(name, made.query, made.answer)
    return made


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise MissingFileError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as source: {error}") from None
