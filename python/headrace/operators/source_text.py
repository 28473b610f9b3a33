"""The C++ text of an operator given as source: its types, the user's text, and the functions that kernels call."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import UsageError
from headrace.operators.signature import StateType, words_count

#: Name of the generated lines in compiler messages.
GENERATED = "headrace"

_SCALARS = {
    "b1": "bool",
    **{f"i{size}": f"int{8 * size}_t" for size in (1, 2, 4, 8)},
    **{f"u{size}": f"uint{8 * size}_t" for size in (1, 2, 4, 8)},
    "f4": "float",
    "f8": "double",
}

_CALL = """
#line 1 "{generated}"
namespace {{
template <class T>
constexpr int kSaysWhetherItCould = -1;
template <>
constexpr int kSaysWhetherItCould<bool> = 1;
template <>
constexpr int kSaysWhetherItCould<void> = 0;

template <class... Arrays>
int32_t headrace_call(Group group, const Query& query, Answer& answer, const Arrays&... arrays) {{
  static_assert(requires {{ {name}(group, query, answer, arrays...); }}, "it has no function {signature}");
  constexpr int kSays = kSaysWhetherItCould<decltype({name}(group, query, answer, arrays...))>;
  static_assert(kSays >= 0, "{name} returns nothing, or as a bool whether it could answer");
  if constexpr (kSays == 1) {{
    return {name}(group, query, answer, arrays...) ? 0 : 1;
  }} else {{
    {name}(group, query, answer, arrays...);
    return 0;
  }}
}}
}}

#ifdef __CUDACC_RTC__
extern "C" int32_t headrace_answer(void**, const uint64_t* state, const void* query, void* answer, uint32_t block,
                                   uint32_t block_count) {{
  const Group group(block, block_count);
  const uint64_t* words = {words};
#else
extern "C" __attribute__((visibility("default"))) int32_t headrace_answer(const uint64_t* words, const void* query,
                                                                          void* answer, uint32_t, uint32_t) noexcept
try {{
  const Group group(0, 1);
#endif
  static_cast<void>(words);
  return headrace_call(group, *static_cast<const Query*>(query), *static_cast<Answer*>(answer){arrays});
#ifdef __CUDACC_RTC__
}}
#else
}} catch (...) {{
  return 1;
}}
#endif
"""


def complete(
    name: str,
    file: str,
    text: str,
    query: np.dtype[Any],
    answer: np.dtype[Any],
    state: Sequence[tuple[str, StateType]],
    words_most: int,
) -> str:
    """The complete input of a compiler.

    Args:
        name: name of the function, and of the operator.
        file: name of the user's text in compiler messages.
        text: the user's text.
        query: type of a query.
        answer: type of an answer.
        state: names and types of the arrays, in the order of the function's parameters.
        words_most: words that kernels for a GPU hold; further words are in its memory.

    Raises:
        UsageError: for a type that C++ does not have, naming the field.
    """
    types, parameters, given = "", ["Group", "const Query&", "Answer&"], ""
    first = 0
    for array, one in state:
        where = f"operator {name}: {array}"
        element = _scalar(where, one.dtype) if one.dtype.names is None else f"{array}_element"
        if one.dtype.names is not None:
            types += _record(where, element, one.dtype)
        pointer = f"reinterpret_cast<const {element}*>(words[{first}])"
        if one.dimensions:
            parameters.append(f"Array<{element}, {one.dimensions}> {array}")
            given += f", Array<{element}, {one.dimensions}>({pointer}, words + {first + 1})"
        else:
            parameters.append(f"{element} {array}")
            given += f", *{pointer}"
        first += one.words
    types += require_types(name, query, answer)
    fits = words_count([one for _, one in state]) <= words_most
    call = _CALL.format(
        generated=GENERATED,
        name=name,
        signature=f"{name}({', '.join(parameters)})",
        words="state" if fits else "reinterpret_cast<const uint64_t*>(state[0])",
        arrays=given,
    )
    seen = Path(__file__).with_name("source_group.hpp").read_text()
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{GENERATED}"\n{seen}\n{types}#line 1 "{quoted}"\n{text}\n{call}'


def require_types(name: str, query: np.dtype[Any], answer: np.dtype[Any]) -> str:
    """The definitions of Query and Answer.

    Raises:
        UsageError: as complete().
    """
    return _named(f"operator {name}: query", "Query", query) + _named(f"operator {name}: answer", "Answer", answer)


def _scalar(where: str, dtype: np.dtype[Any]) -> str:
    """The name of a number's C++ type; untyped bytes become arrays of uint8_t."""
    known = _SCALARS.get(f"{dtype.kind}{dtype.itemsize}")
    if known is None:
        raise UsageError(f"{where} has type {dtype}, which C++ source cannot take: use numbers, bytes and records")
    return known


def _declared(where: str, name: str, dtype: np.dtype[Any]) -> str:
    """A declaration of `name`."""
    base = dtype.base
    if base.kind in "SV" and base.names is None:
        return f"uint8_t {name}{_lengths(dtype)}[{base.itemsize}]"
    return f"{_scalar(where, base)} {name}{_lengths(dtype)}"


def _lengths(dtype: np.dtype[Any]) -> str:
    return "".join(f"[{length}]" for length in dtype.shape)


def _named(where: str, name: str, dtype: np.dtype[Any]) -> str:
    """Defines a named type: a record, or another type by `using`."""
    base = dtype.base
    if base.names is None:
        return f"typedef {_declared(where, name, dtype)};\n"
    if dtype.shape:
        return _record(where, f"{name}Element", base) + f"typedef {name}Element {name}{_lengths(dtype)};\n"
    return _record(where, name, base)


def _record(where: str, name: str, dtype: np.dtype[Any]) -> str:
    """A struct with the fields at their offsets."""
    assert dtype.fields is not None
    inner, members, end = "", "", 0
    for field in dtype.names or ():
        kind, offset = dtype.fields[field][:2]
        place = f"{where}: field {field}"
        if not field.isidentifier() or not field.isascii():
            raise UsageError(f"{place} does not have a valid C++ name")
        if offset != _up(end, _alignment(kind)):
            raise UsageError(f"{place} lies at byte {offset}, but elsewhere in C++: use np.dtype([...], align=True)")
        if kind.base.names is not None:
            nested = f"{name}_{field}"
            inner += _record(place, nested, kind.base)
            members += f"  {nested} {field}{_lengths(kind)};\n"
        else:
            members += f"  {_declared(place, field, kind)};\n"
        end = offset + kind.itemsize
    if dtype.itemsize != _up(end, _alignment(dtype)):
        raise UsageError(
            f"{where} has {dtype.itemsize} bytes, but another size in C++: use np.dtype([...], align=True)"
        )
    return f"{inner}struct {name} {{\n{members}}};\n"


def _alignment(dtype: np.dtype[Any]) -> int:
    """Alignment of the type in C++."""
    base = dtype.base
    if base.fields is not None:
        return max((_alignment(base.fields[field][0]) for field in base.names or ()), default=1)
    return 1 if base.kind in "SV" else base.itemsize


def _up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
