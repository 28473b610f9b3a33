"""Headrace keeps GPUs fed. It also runs fully on a CPU device.

>>> import headrace
>>> headrace.Device.parse("cpu").name
'cpu:0'
"""

from headrace._core import Device, DeviceKind, DeviceProperties, MemoryInfo, built_with_cuda
from headrace._core import version as __version__
from headrace.errors import DataError, DeviceError, Errc, Error, SystemError, UsageError  # noqa: A004

__all__ = [
    "DataError",
    "Device",
    "DeviceError",
    "DeviceKind",
    "DeviceProperties",
    "Errc",
    "Error",
    "MemoryInfo",
    "SystemError",
    "UsageError",
    "__version__",
    "built_with_cuda",
]
