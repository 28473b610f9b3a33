"""Compiles an operator's function for CPU devices with Numba."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import Errc, UsageError, how_to_install
from headrace.operators import code_cache
from headrace.operators.messages import explain
from headrace.operators.signature import Compiled, StateType, arrays, view, words_count
from headrace.operators.versions import version_of

_TEMPLATE = """
def answer_query(state, query, answer, _block, _block_count):
    try:
        words = carray(state, {words}, intp)
        body(make_group(), {query}, {answer}{state})
    except Exception:
        return 1
    return 0
"""
_KIND = "compiled"
"""Extension of files that record that a function compiles. Numba's machine code itself cannot be kept."""


def _numba() -> Any:  # noqa: ANN401
    try:
        import numba  # noqa: PLC0415 # takes 0.2 s, and only those who write operators have it
    except ImportError:
        raise UsageError(
            f"operators in Python are compiled by Numba, which is not installed: {how_to_install('numba')}",
            Errc.not_found,
        ) from None
    return numba


def _key(
    function: Callable[..., None],
    query: np.dtype[Any],
    answer: np.dtype[Any],
    state: Sequence[StateType],
    contract: bool,
) -> str | None:
    return code_cache.key(function, (query, answer, *state), ("host", version_of("numba"), contract))


def compiled_before(
    function: Callable[..., None],
    query: np.dtype[Any],
    answer: np.dtype[Any],
    state: Sequence[StateType],
    *,
    contract: bool = False,
) -> bool:
    """Whether compile_answer() has compiled exactly this, in this process or an earlier one. Does not import Numba."""
    key = _key(function, query, answer, state, contract)
    return key is not None and code_cache.read(key, _KIND) is not None


def compile_answer(
    function: Callable[..., None],
    query: np.dtype[Any],
    answer: np.dtype[Any],
    state: Sequence[StateType],
    *,
    contract: bool = False,
) -> Compiled:
    """The machine code of `function(group, query, answer, *state)`; see operator() for `contract`.

    Raises:
        UsageError: when Numba is missing or cannot compile the function; the message has its file and line.
    """
    key = _key(function, query, answer, state, contract)
    numba = _numba()
    from headrace.operators.compiled_group import make_group, pointer  # noqa: PLC0415 # they need Numba

    names: dict[str, object] = {
        "carray": numba.carray,
        "intp": np.intp,
        "make_group": make_group,
        "pointer": pointer,
        # Division by zero gives infinity or NaN, as on a GPU, instead of an exception.
        "body": numba.njit(error_model="numpy", fastmath={"contract"} if contract else False)(function),
        "query_type": query.base,
        "answer_type": answer.base,
    }
    names |= {f"state_type_{index}": one.dtype for index, one in enumerate(state)}
    source = _TEMPLATE.format(
        words=words_count(state), query=view("query", query), answer=view("answer", answer), state=arrays(state)
    )
    exec(source, names)
    types = numba.types
    signature = types.int32(types.voidptr, types.voidptr, types.voidptr, types.uint32, types.uint32)
    try:
        code = numba.cfunc(signature, error_model="numpy")(names["answer_query"])
    except Exception as error:  # Numba raises other exceptions too, for example for a function missing from a module
        raise UsageError(explain(function, error)) from error
    if key is not None and code_cache.read(key, _KIND) is None:
        code_cache.write(key, b"", _KIND)
    return Compiled(code.address, code)
