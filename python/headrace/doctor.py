"""Finds what is wrong with a machine, and how to fix it: first facts, then rules that are functions of the facts."""

import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import headrace
from headrace._core import Device, Topology
from headrace.units import GIGA, MIB

_QUICK_BYTES = 64 * MIB
_QUICK_SAMPLES = 3
_PAGEABLE_SHARE = 0.5  # of the pinned rate; below this share, staging costs more than the copy itself
_LINK_SHARE = 0.7  # of the rate for the link's generation and width; a healthy link reaches 85 to 90%
_LOCKED_BYTES = 64 * MIB  # enough for a modest ring of packets or columns


@dataclass(frozen=True)
class DeviceFacts:
    """A GPU and its link; None where a fact is unknown."""

    name: str
    model: str = ""
    pinned_rate: float | None = None  # bytes per second, host to device
    pageable_rate: float | None = None
    verified: bool = True
    link_rate: float | None = None
    link_generation_max: int | None = None
    device_generation_max: int | None = None
    link_width: int | None = None
    link_width_max: int | None = None
    numa_node: int | None = None
    memory_bytes: int = 0
    bar1_bytes: int | None = None
    persistence: bool | None = None
    virtual_memory_management: bool = True


@dataclass(frozen=True)
class PairFacts:
    """Two GPUs, in one direction."""

    device: str
    peer: str
    way: str
    access: bool


@dataclass(frozen=True)
class MachineFacts:
    """All facts that the rules use."""

    devices: tuple[DeviceFacts, ...] = ()
    pairs: tuple[PairFacts, ...] = ()
    gpu_absence: str = ""  # why there is no GPU
    process_nodes: frozenset[int] = field(default_factory=frozenset)  # memory nodes of the usable processors
    locked_limit: int | None = None  # bytes; None: no limit


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    rule: str
    subject: str
    problem: str
    remedy: str

    @property
    def line(self) -> str:
        """The finding as it is printed."""
        return f"{self.subject}: {self.problem}. {self.remedy}."


def _rate(bytes_per_second: float) -> str:
    return f"{bytes_per_second / GIGA:.3g} GB/s"


def no_gpu(facts: MachineFacts) -> str:
    """Says that there is no GPU, why, and how to get one; empty with a GPU. A machine without a GPU is not faulty."""
    if facts.devices:
        return ""
    why = facts.gpu_absence or "none was found"
    remedy = "Everything runs on the CPU device until then"
    if "built without CUDA" in why:
        remedy = "Install the CUDA toolkit and build again with HEADRACE_CUDA=ON"
    elif "HEADRACE_DEVICES" in why:
        remedy = "Unset HEADRACE_DEVICES to use the GPUs"
    elif "driver" in why:
        remedy = "Install or update NVIDIA's driver, and check that nvidia-smi lists the GPU"
    return f"machine: no GPU ({why}). {remedy}."


def not_verified(facts: MachineFacts) -> Iterator[Finding]:
    """Bytes arrived corrupted."""
    for one in facts.devices:
        if not one.verified:
            yield Finding(
                "not_verified",
                one.name,
                "data copied to it arrived corrupted",
                "Stop using it: look for Xid errors in dmesg and have the hardware tested",
            )


def slow_link(facts: MachineFacts) -> Iterator[Finding]:
    """A link is slower than its generation and width allow."""
    for one in facts.devices:
        if one.link_rate and one.pinned_rate and one.pinned_rate < _LINK_SHARE * one.link_rate:
            yield Finding(
                "slow_link",
                one.name,
                f"its link carries {_rate(one.pinned_rate)} of {_rate(one.link_rate)}",
                "Look for other traffic, a remote memory node, or power saving (ASPM) in the firmware settings",
            )


def narrow_link(facts: MachineFacts) -> Iterator[Finding]:
    """A link has fewer lanes, or an older generation, than the device supports."""
    for one in facts.devices:
        if one.link_width and one.link_width_max and one.link_width < one.link_width_max:
            yield Finding(
                "narrow_link",
                one.name,
                f"its link runs at x{one.link_width}, but x{one.link_width_max} is possible",
                "Reseat the card, try another slot, or check the slot's bifurcation in the firmware settings",
            )
        here, could = one.link_generation_max, one.device_generation_max
        if here and could and here < could:
            yield Finding(
                "old_link",
                one.name,
                f"it supports PCIe {could}, but the slot provides {here}",
                "Move it to a faster slot, or raise the slot's speed in the firmware settings",
            )


def slow_pageable(facts: MachineFacts) -> Iterator[Finding]:
    """The driver's staging of pageable memory is slow."""
    for one in facts.devices:
        if one.pageable_rate and one.pinned_rate and one.pageable_rate < _PAGEABLE_SHARE * one.pinned_rate:
            yield Finding(
                "slow_pageable",
                one.name,
                f"copies from pageable memory reach {_rate(one.pageable_rate)}, from pinned {_rate(one.pinned_rate)}",
                "Keep the data in pinned memory, register its memory, or send it through a CopyBatch",
            )


def far_node(facts: MachineFacts) -> Iterator[Finding]:
    """The process runs on processors far from the device."""
    for one in facts.devices:
        if one.numa_node is not None and facts.process_nodes and one.numa_node not in facts.process_nodes:
            nodes = ", ".join(map(str, sorted(facts.process_nodes)))
            yield Finding(
                "far_node",
                one.name,
                f"it is on memory node {one.numa_node}, but this process runs on {nodes}",
                f"Start it with: numactl --cpunodebind={one.numa_node} --membind={one.numa_node}",
            )


def no_peer_access(facts: MachineFacts) -> Iterator[Finding]:
    """Two GPUs cannot access each other's memory; reported once per pair."""
    told = set()
    for pair in facts.pairs:
        both = frozenset((pair.device, pair.peer))
        if pair.access or both in told:
            continue
        told.add(both)
        yield Finding(
            "no_peer_access",
            f"{pair.device} and {pair.peer}",
            f"no peer access ({pair.way}): their exchanges go through host memory",
            "Put them under one PCIe switch or NVLink; in a virtual machine pass them through together with ACS off",
        )


def small_bar(facts: MachineFacts) -> Iterator[Finding]:
    """The BAR1 window does not cover the device's memory."""
    for one in facts.devices:
        if one.bar1_bytes is not None and one.bar1_bytes < one.memory_bytes:
            yield Finding(
                "small_bar",
                one.name,
                f"its BAR1 window is {one.bar1_bytes // MIB:,} MiB of {one.memory_bytes // MIB:,}",
                "Enable Above 4G Decoding and Resizable BAR in the firmware settings",
            )


def no_persistence(facts: MachineFacts) -> Iterator[Finding]:
    """The driver unloads while no process uses the device."""
    for one in facts.devices:
        if one.persistence is False:
            yield Finding(
                "no_persistence",
                one.name,
                "persistence mode is off, so the first program each time waits for the driver to load",
                f"Run nvidia-persistenced, or once: nvidia-smi -i {one.name.removeprefix('cuda:')} -pm 1",
            )


def no_vmm(facts: MachineFacts) -> Iterator[Finding]:
    """There is no virtual memory management, so there are no spans."""
    for one in facts.devices:
        if not one.virtual_memory_management:
            yield Finding(
                "no_vmm",
                one.name,
                "no virtual memory management, so no spans over devices and host",
                "Use a driver and virtualisation that support it (not every vGPU does)",
            )


def low_locked_limit(facts: MachineFacts) -> Iterator[Finding]:
    """The limit on locked memory is low."""
    if facts.locked_limit is not None and facts.locked_limit < _LOCKED_BYTES:
        yield Finding(
            "low_locked_limit",
            "machine",
            f"a process may lock only {facts.locked_limit // 1024:,} KiB, less than rings of pinned memory need",
            "Raise it: ulimit -l unlimited, memlock in /etc/security/limits.conf, or LimitMEMLOCK= of the service",
        )


Rule = Callable[[MachineFacts], Iterator[Finding]]

# Worst first.
RULES: tuple[Rule, ...] = (
    not_verified,
    narrow_link,
    slow_link,
    no_peer_access,
    far_node,
    slow_pageable,
    no_vmm,
    small_bar,
    low_locked_limit,
    no_persistence,
)


def examine(facts: MachineFacts) -> list[Finding]:
    """All findings, worst first."""
    return [finding for rule in RULES for finding in rule(facts)]


def _quick_rate(device: Device, memory: str) -> tuple[float | None, bool]:
    """The rate of host-to-device copies by the copy engine, and whether every byte arrived."""
    for route in headrace.measure.link_routes(device):
        if (route.path, route.memory, route.means) == ("to device", memory, "engine"):
            points = headrace.measure.link(route, [_QUICK_BYTES], _QUICK_SAMPLES, _QUICK_BYTES).points
            return (points[-1].rate, points[-1].verified) if points else (None, True)
    return None, True


def _device_facts(device: Device) -> DeviceFacts:
    pinned, pinned_right = _quick_rate(device, "pinned")
    pageable, pageable_right = _quick_rate(device, "pageable")
    health = headrace.device.read_health(device)  # read right after traffic, while the link is awake
    properties = device.properties
    return DeviceFacts(
        name=device.name,
        model=properties.name,
        pinned_rate=pinned,
        pageable_rate=pageable,
        verified=pinned_right and pageable_right,
        link_rate=headrace.measure.pcie_rate(properties.link_generation, properties.link_width),
        link_generation_max=health.link_generation_max,
        device_generation_max=health.device_generation_max,
        link_width=health.link_width,
        link_width_max=health.link_width_max,
        numa_node=properties.numa_node,
        memory_bytes=properties.memory_bytes,
        bar1_bytes=health.bar1_bytes,
        persistence=health.persistence,
        virtual_memory_management=properties.virtual_memory_management,
    )


def _locked_limit() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if soft == resource.RLIM_INFINITY or os.geteuid() == 0 else soft


def gather(progress: Callable[[float], None] = lambda _: None) -> MachineFacts:
    """Gathers the facts of this machine; each GPU's link is measured for some tenths of a second."""
    found = [device for device in Device.list() if device.kind.name == "cuda"]
    devices = []
    for number, device in enumerate(found):
        devices.append(_device_facts(device))
        progress((number + 1) / len(found))
    pairs = []
    for device in found:
        for peer in found:
            if device != peer:
                joined = headrace.device.peer_connection(device, peer)
                pairs.append(PairFacts(device.name, peer.name, joined.way, joined.access))
    return MachineFacts(
        devices=tuple(devices),
        pairs=tuple(pairs),
        gpu_absence=Device.cuda_absence(),
        process_nodes=frozenset(one.numa_node for one in Topology.machine().processors),
        locked_limit=_locked_limit(),
    )
