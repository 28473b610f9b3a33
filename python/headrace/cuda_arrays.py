"""Arrays in GPU memory, of any library that describes them by `__cuda_array_interface__`."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class CudaArray:
    """What an array in GPU memory says about itself.

    Attributes:
        pointer: its address, 0 if it is empty.
        is_contiguous: whether its elements follow each other in C order.
        cuda: number of its device; None if its library does not say.
        stream: the stream that fills it, in the protocol's form; None if there is nothing to wait for.
    """

    pointer: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_contiguous: bool
    is_read_only: bool
    cuda: int | None
    stream: object

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


def cuda_array(given: Any) -> CudaArray | None:  # noqa: ANN401 - of any library
    """The description of an array in GPU memory; None for anything else."""
    # https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
    said = getattr(given, "__cuda_array_interface__", None)
    if said is None:
        return None
    dtype = np.dtype(said.get("descr") if said["typestr"][1] == "V" else said["typestr"])
    shape = tuple(int(length) for length in said["shape"])
    strides = said.get("strides")
    is_contiguous = strides is None
    if not is_contiguous:
        # Only the flags are asked for, so the memory behind the strides is never read.
        is_contiguous = np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides).flags.c_contiguous
    pointer, is_read_only = said["data"]
    cuda = int(given.__dlpack_device__()[1]) if hasattr(given, "__dlpack_device__") else None
    return CudaArray(int(pointer or 0), dtype, shape, is_contiguous, bool(is_read_only), cuda, said.get("stream"))
