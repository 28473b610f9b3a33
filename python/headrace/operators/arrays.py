"""The arrays given to an operator, on the host or in GPU memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.cuda_arrays import CudaArray, cuda_array
from headrace.errors import UsageError


@dataclass(frozen=True)
class DeviceArray:
    """A C-contiguous array in the memory of a CUDA device.

    Attributes:
        pointer: address of the array.
        cuda: number of the device.
        owner: the object given, kept alive.
    """

    pointer: int
    cuda: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: Any

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


Array = NDArray[Any] | DeviceArray


def as_array(operator: str, name: str, given: object) -> Array:
    """Converts a named argument to an array that compiled code can take.

    Raises:
        UsageError: naming the argument, when its type cannot be passed.
    """
    if found := cuda_array(given):
        return _on_device(operator, name, found, given)
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"operator {operator}: {name} is not an array on the host: {error}") from error
    _require_passable(operator, name, array.dtype)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def address(array: Array) -> int:
    """Address of the first element."""
    return array.pointer if isinstance(array, DeviceArray) else array.ctypes.data


def described(name: str, array: Array) -> tuple[str, int, int, tuple[int, ...], int | None]:
    """The description of an array for function_operator()."""
    return name, address(array), array.nbytes, array.shape, array.cuda if isinstance(array, DeviceArray) else None


def on_host(array: Array) -> NDArray[Any]:
    """The array, or a copy of it in host memory.

    Raises:
        UsageError: for an array of a library without a known way to copy it.
    """
    if not isinstance(array, DeviceArray):
        return array
    for copied in ("get", "copy_to_host", "cpu"):  # methods of CuPy, Numba, PyTorch
        if hasattr(array.owner, copied):
            return np.asarray(getattr(array.owner, copied)())
    library = type(array.owner).__module__
    raise UsageError(f"an array of {library} lies on cuda:{array.cuda} and cannot be copied from there")


def _require_passable(operator: str, name: str, dtype: np.dtype[Any]) -> None:
    if dtype.hasobject or not dtype.isnative or dtype.itemsize == 0:
        raise UsageError(f"operator {operator}: {name} has type {dtype}, which cannot be passed")


def _on_device(operator: str, name: str, found: CudaArray, owner: object) -> DeviceArray:
    _require_passable(operator, name, found.dtype)
    if not found.is_contiguous:
        raise UsageError(f"operator {operator}: {name} lies on a GPU and is not contiguous: give a contiguous copy")
    return DeviceArray(found.pointer, found.cuda or 0, found.dtype, found.shape, owner)
