"""Group for Numba on a CPU device: one block with one thread. Imported when an operator is compiled."""

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload_attribute, overload_method, register_model

from headrace.operators.group import ATTRIBUTES, Group


class GroupType(types.Type):
    """Numba's type of Group. It is empty, because the one thread of a CPU device answers alone."""

    def __init__(self) -> None:
        super().__init__("headrace.Group")


register_model(GroupType)(models.OpaqueModel)


@intrinsic
def make_group(_typing: object) -> Any:  # noqa: ANN401
    """The Group of the single thread."""

    def generate(context: Any, *_: object) -> Any:  # noqa: ANN401
        return context.get_dummy_value()

    return GroupType()(), generate


@intrinsic
def pointer(_typing: object, address: object) -> Any:  # noqa: ANN401, ARG001
    """An address as a void pointer."""

    def generate(_context: object, builder: Any, _signature: object, arguments: Any) -> Any:  # noqa: ANN401
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), generate


def _attribute(name: str, value: int) -> None:
    overload_attribute(GroupType, name)(lambda _group: lambda _group: value)


for _name in ATTRIBUTES:
    _attribute(_name, getattr(Group, _name))
# Numba compares parameter names including annotations, so these functions have none.
overload_method(GroupType, "sync")(lambda group: lambda group: None)  # noqa: ARG005
for _name in ("sum", "any", "broadcast"):
    overload_method(GroupType, _name)(lambda group, value: lambda group, value: value)  # noqa: ARG005
overload_method(GroupType, "each")(lambda group, count: lambda group, count: range(count))  # noqa: ARG005
overload_method(GroupType, "shared")(lambda group, shape, dtype: lambda group, shape, dtype: np.empty(shape, dtype))  # noqa: ARG005
