"""Devices and processors: their properties, their connections, and the number of blocks of a kernel that they hold.

>>> from headrace.device import Device, find_gpu
>>> Device.parse("cpu").name
'cpu:0'
>>> find_gpu("H100 PCIe").multiprocessors
114
"""

from headrace._core import (
    Device,
    DeviceHealth,
    DeviceKind,
    DeviceProperties,
    GpuLimits,
    KernelResources,
    MemoryInfo,
    Occupancy,
    PeerConnection,
    Processor,
    Topology,
    combinations,
    find_gpu,
    gpu_limits,
    host_memory,
    kernel_resources,
    known_gpus,
    occupancy,
    peer_connection,
    read_health,
    resident_blocks_max,
    resident_queries,
)

__all__ = [
    "Device",
    "DeviceHealth",
    "DeviceKind",
    "DeviceProperties",
    "GpuLimits",
    "KernelResources",
    "MemoryInfo",
    "Occupancy",
    "PeerConnection",
    "Processor",
    "Topology",
    "combinations",
    "find_gpu",
    "gpu_limits",
    "host_memory",
    "kernel_resources",
    "known_gpus",
    "occupancy",
    "peer_connection",
    "read_health",
    "resident_blocks_max",
    "resident_queries",
]
