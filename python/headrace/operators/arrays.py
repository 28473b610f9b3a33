"""The arrays that an operator is given: of the host, or in the memory of a GPU."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import UsageError


@dataclass(frozen=True)
class DeviceArray:
    """An array in the memory of a CUDA device, contiguous in the order of C.

    Attributes:
        pointer: its address.
        cuda: the number of the device.
        owner: what it was given as; keeps it.
    """

    pointer: int
    cuda: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: Any

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


Array = NDArray[Any] | DeviceArray


def as_array(operator: str, name: str, given: object) -> Array:
    """What was given under a name, as an array that compiled code can be given.

    Raises:
        UsageError: naming it, where its type cannot be passed.
    """
    if hasattr(given, "__cuda_array_interface__"):
        return _on_device(operator, name, given)
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"operator {operator}: {name} is not an array on the host: {error}") from error
    _require_passable(operator, name, array.dtype)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def address(array: Array) -> int:
    """Where its first element lies."""
    return array.pointer if isinstance(array, DeviceArray) else array.ctypes.data


def described(name: str, array: Array) -> tuple[str, int, int, tuple[int, ...], int | None]:
    """What function_operator() is told of an array."""
    return name, address(array), array.nbytes, array.shape, array.cuda if isinstance(array, DeviceArray) else None


def on_host(array: Array) -> NDArray[Any]:
    """The array, or a copy of it in the host's memory.

    Raises:
        UsageError: for one of a library that is not known to copy its arrays.
    """
    if not isinstance(array, DeviceArray):
        return array
    for copied in ("get", "copy_to_host", "cpu"):  # CuPy, Numba, PyTorch
        if hasattr(array.owner, copied):
            return np.asarray(getattr(array.owner, copied)())
    library = type(array.owner).__module__
    raise UsageError(f"an array of {library} lies on cuda:{array.cuda} and cannot be copied from there")


def _require_passable(operator: str, name: str, dtype: np.dtype[Any]) -> None:
    if dtype.hasobject or not dtype.isnative or dtype.itemsize == 0:
        raise UsageError(f"operator {operator}: {name} has type {dtype}, which cannot be passed")


def _on_device(operator: str, name: str, given: Any) -> DeviceArray:  # noqa: ANN401
    # https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
    described = given.__cuda_array_interface__
    dtype = np.dtype(described.get("descr") if described["typestr"][1] == "V" else described["typestr"])
    _require_passable(operator, name, dtype)
    shape = tuple(int(length) for length in described["shape"])
    dense = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, described.get("strides"))
    if described.get("strides") is not None and not dense.flags.c_contiguous:
        raise UsageError(f"operator {operator}: {name} lies on a GPU and is not contiguous: give a contiguous copy")
    cuda = given.__dlpack_device__()[1] if hasattr(given, "__dlpack_device__") else 0
    return DeviceArray(described["data"][0], int(cuda), dtype, shape, given)
