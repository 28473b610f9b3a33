# mypy: ignore-errors
# Numba-CUDA has no types.
"""Group for Numba's CUDA target. Imported where an operator is compiled for a GPU."""

from typing import Any

import numpy as np
from numba import cuda
from numba.core.errors import TypingError
from numba.cuda import types
from numba.cuda.cgutils import alloca_once_value, create_struct_proxy, voidptr_t
from numba.cuda.core.imputils import RefType, iternext_impl, lower_builtin
from numba.cuda.extending import intrinsic, models, overload_attribute, overload_method, register_model
from numba.cuda.np.numpy_support import carray

__all__ = ["carray", "make_group", "pointer"]

_WARP = 32
_WARPS_MAX = 32


class GroupType(types.Type):
    """Numba's type of Group: this block's part of the query's work. The rest comes from the hardware."""

    def __init__(self) -> None:
        super().__init__("headrace.cuda.Group")


@register_model(GroupType)
class _GroupModel(models.StructModel):
    def __init__(self, manager: object, kind: object) -> None:
        super().__init__(manager, kind, [("block", types.uint32), ("block_count", types.uint32)])


@intrinsic
def make_group(_typing: object, block: object, block_count: object) -> Any:  # noqa: ANN401, ARG001
    """The Group of a block."""
    made = GroupType()

    def generate(context: Any, builder: Any, _signature: object, arguments: Any) -> Any:  # noqa: ANN401
        group = create_struct_proxy(made)(context, builder)
        group.block, group.block_count = arguments
        return group._getvalue()

    return made(types.uint32, types.uint32), generate


@intrinsic
def pointer(_typing: object, address: object) -> Any:  # noqa: ANN401, ARG001
    """An address as a void pointer."""

    def generate(_context: object, builder: Any, _signature: object, arguments: Any) -> Any:  # noqa: ANN401
        return builder.inttoptr(arguments[0], voidptr_t)

    return types.voidptr(types.intp), generate


def _member(name: str) -> Any:  # noqa: ANN401
    @intrinsic
    def member(_typing: object, group: object) -> Any:  # noqa: ANN401
        def generate(context: Any, builder: Any, _signature: object, arguments: Any) -> Any:  # noqa: ANN401
            return getattr(create_struct_proxy(group)(context, builder, value=arguments[0]), name)

        return types.uint32(group), generate

    return member


_block, _block_count = _member("block"), _member("block_count")
# 64-bit signed numbers, as on a CPU device: combining unsigned and signed ones would give floating point.
overload_attribute(GroupType, "rank")(lambda _group: lambda _group: np.int64(cuda.threadIdx.x))
overload_attribute(GroupType, "size")(lambda _group: lambda _group: np.int64(cuda.blockDim.x))
overload_attribute(GroupType, "block")(lambda _group: lambda _group: np.int64(_block(_group)))
overload_attribute(GroupType, "block_count")(lambda _group: lambda _group: np.int64(_block_count(_group)))
overload_attribute(GroupType, "thread")(
    lambda _group: lambda _group: np.int64(_block(_group)) * np.int64(cuda.blockDim.x) + np.int64(cuda.threadIdx.x)
)
overload_attribute(GroupType, "thread_count")(
    lambda _group: lambda _group: np.int64(_block_count(_group)) * np.int64(cuda.blockDim.x)
)


class EachIteratorType(types.SimpleIteratorType):
    """Numba's type of the position of a loop over group.each()."""

    def __init__(self) -> None:
        super().__init__("headrace.cuda.EachIterator", types.int64)


class EachType(types.SimpleIterableType):
    """Numba's type of group.each(): every `step`th number from `first`, below `end`."""

    def __init__(self) -> None:
        super().__init__("headrace.cuda.Each", EachIteratorType())


@register_model(EachType)
class _EachModel(models.StructModel):
    def __init__(self, manager: object, kind: object) -> None:
        super().__init__(manager, kind, [(name, types.int64) for name in ("first", "end", "step")])


@register_model(EachIteratorType)
class _EachIteratorModel(models.StructModel):
    def __init__(self, manager: object, kind: object) -> None:
        members = [("next", types.CPointer(types.int64)), ("end", types.int64), ("step", types.int64)]
        super().__init__(manager, kind, members)


@intrinsic
def _each(_typing: object, first: object, end: object, step: object) -> Any:  # noqa: ANN401, ARG001
    made = EachType()

    def generate(context: Any, builder: Any, _signature: object, arguments: Any) -> Any:  # noqa: ANN401
        each = create_struct_proxy(made)(context, builder)
        each.first, each.end, each.step = arguments
        return each._getvalue()

    return made(types.int64, types.int64, types.int64), generate


@lower_builtin("getiter", EachType)
def _iterator_of_each(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
    each = create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
    iterator = create_struct_proxy(signature.return_type)(context, builder)
    iterator.next = alloca_once_value(builder, each.first)  # allocated in the function that contains the loop
    iterator.end, iterator.step = each.end, each.step
    return iterator._getvalue()


@lower_builtin("iternext", EachIteratorType)
@iternext_impl(RefType.UNTRACKED)
def _next_of_each(context: Any, builder: Any, signature: Any, arguments: Any, result: Any) -> None:  # noqa: ANN401
    iterator = create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
    number = builder.load(iterator.next)
    valid = builder.icmp_signed("<", number, iterator.end)
    result.set_valid(valid)
    with builder.if_then(valid):
        result.yield_(number)
        builder.store(builder.add(number, iterator.step, flags=["nsw"]), iterator.next)


# Numba compares parameter names including annotations, so these functions have none.
@overload_method(GroupType, "each")
def _each_of(group, count):  # noqa: ANN001, ANN202, ARG001
    if not isinstance(types.unliteral(count), (types.Integer, types.Boolean)):
        raise TypingError(f"group.each() takes a whole number, not {count}")
    return lambda group, count: _each(np.int64(group.thread), np.int64(count), np.int64(group.thread_count))


@overload_method(GroupType, "sync")
def _sync(group):  # noqa: ANN001, ANN202, ARG001
    return lambda group: cuda.syncthreads()  # noqa: ARG005


def _number(name, value):  # noqa: ANN001, ANN202
    """The type of a number that threads exchange."""
    kind = types.unliteral(value)
    if not isinstance(kind, (types.Boolean, types.Integer, types.Float)):
        raise TypingError(f"group.{name}() takes a number on a GPU, not {kind}")
    return kind


def _summed(kind):  # noqa: ANN001, ANN202
    """The type in which numbers are summed, and that of the sum; warps exchange only these types."""
    if isinstance(kind, types.Float):
        wide = types.float64 if kind == types.float64 else types.float32
        return wide, wide
    return types.int64, types.uint64 if kind == types.uint64 else types.int64  # both overflow in the same way


@overload_method(GroupType, "sum")
def _sum(group, value):  # noqa: ANN001, ANN202, ARG001
    kind, result = _summed(_number("sum", value))

    def total_of(group, value):  # noqa: ANN001, ANN202, ARG001
        sums = cuda.shared.array(_WARPS_MAX, kind)
        lane, warp = cuda.threadIdx.x % _WARP, cuda.threadIdx.x // _WARP
        members = min(_WARP, cuda.blockDim.x - warp * _WARP)
        mask = np.uint32(0xFFFFFFFF) >> np.uint32(_WARP - members)
        total = kind(value)
        step = _WARP // 2
        while step > 0:
            above = cuda.shfl_down_sync(mask, total, step)
            if lane + step < members:
                total += above
            step //= 2
        if lane == 0:
            sums[warp] = total
        cuda.syncthreads()
        total = sums[0]
        for other in range(1, (cuda.blockDim.x + _WARP - 1) // _WARP):
            total += sums[other]
        cuda.syncthreads()  # the next call reuses this memory
        return result(total)

    return total_of


@overload_method(GroupType, "any")
def _any(group, value):  # noqa: ANN001, ANN202, ARG001
    return lambda group, value: cuda.syncthreads_or(np.int32(bool(value))) != 0  # noqa: ARG005


@overload_method(GroupType, "broadcast")
def _broadcast(group, value):  # noqa: ANN001, ANN202, ARG001
    kind = _number("broadcast", value)

    def from_first(group, value):  # noqa: ANN001, ANN202, ARG001
        kept = cuda.shared.array(1, kind)
        if cuda.threadIdx.x == 0:
            kept[0] = kind(value)
        cuda.syncthreads()
        got = kept[0]
        cuda.syncthreads()  # the next call reuses this memory
        return got

    return from_first


# Inlined, because each call site has its own array.
@overload_method(GroupType, "shared", inline="always", prefer_literal=True)
def _shared(group, shape, dtype):  # noqa: ANN001, ANN202, ARG001
    lengths = shape if isinstance(shape, types.BaseTuple) else (shape,)
    if not all(isinstance(length, types.IntegerLiteral) for length in lengths):
        raise TypingError("group.shared() takes a shape that is a constant")
    return lambda group, shape, dtype: cuda.shared.array(shape, dtype)  # noqa: ARG005
