"""How fast packets can be placed into frames: the model of Ito 2024, fitted to a device, with its table of GPUs.

An iteration of the loop that builds frames takes `offset + cycles * packets / merge` cycles, so the rate is

    bits/s = payload bits * packets * clock / (offset + cycles / merge * packets)

which stays below `payload bits * clock * merge / cycles` for any number of packets. Headrace's gather has no such cost
per packet: its limit is memory, which reads and writes every byte, or the link that packets arrive on.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

from headrace import Device, UsageError, measure
from headrace.device import GpuLimits, known_gpus
from headrace.profiles import Json

#: The document's constants: cost of starting a copy, an offset from the middle of its range, payloads of 64 kbit.
DOCUMENT_CYCLES = 1800.0
DOCUMENT_OFFSET = 300_000.0
DOCUMENT_OFFSETS = (100_000.0, 500_000.0)
DOCUMENT_PAYLOAD_BYTES = 8000
DOCUMENT_CLOCKS_MHZ = (1000, 1400, 1800, 2200, 2600, 3000)
DOCUMENT_MERGES = (1, 2, 32)
#: The document's table counts 1,024 megabits per gigabit and truncates.
DOCUMENT_GIGABIT = 1024e6

FIT_PACKETS = (64, 128, 256, 512, 1024, 2048, 4096)

# A gather reaches this share of the memory bandwidth of a plain copy, and a plain copy this share of the data sheet's.
_OF_DATA_SHEET = 0.8
# Share of a link's raw rate that remains for payload (measured: 55.2 of 63.0 GB/s).
_OF_LINK = 0.87


@dataclass(frozen=True)
class Model:
    """Cost of an iteration on a device."""

    cycles: float  # per copy
    offset: float  # everything else
    clock_mhz: float
    payload_bytes: int
    merge: int = 1

    def limit(self) -> float:
        """Maximum bits per second for any number of packets; infinite when a copy costs nothing."""
        cost = self.cycles / self.merge
        return math.inf if cost == 0 else 8 * self.payload_bytes * self.clock_mhz * 1e6 / cost

    def rate(self, packets: float) -> float:
        """Bits per second at this number of packets per iteration."""
        return 8 * self.payload_bytes * packets / self.seconds(packets)

    def seconds(self, packets: float) -> float:
        """Duration of an iteration."""
        return (self.offset + self.cycles / self.merge * packets) / (self.clock_mhz * 1e6)

    def packets_for(self, bits_per_second: float) -> float | None:
        """Packets per iteration needed to reach the target; None if it is out of reach."""
        if bits_per_second >= self.limit():
            return None
        spare = 8 * self.payload_bytes * self.clock_mhz * 1e6 - self.cycles / self.merge * bits_per_second
        return bits_per_second * self.offset / spare


def document_model(clock_mhz: float = 1000, merge: int = 1, offset: float = DOCUMENT_OFFSET) -> Model:
    """The document's constants."""
    return Model(DOCUMENT_CYCLES, offset, clock_mhz, DOCUMENT_PAYLOAD_BYTES, merge)


def throughput_table(model: Model, clocks_mhz: Sequence[float], merges: Sequence[int]) -> list[Json]:
    """The limit for each clock and merge count, in bits per second and in the document's notation."""
    rows: list[Json] = []
    for clock in clocks_mhz:
        limits = [replace(model, clock_mhz=clock, merge=merge).limit() for merge in merges]
        printed = [math.floor(limit / DOCUMENT_GIGABIT) if math.isfinite(limit) else None for limit in limits]
        rows.append({"clock_mhz": clock, "merges": list(merges), "bits_per_second": limits, "gbps": printed})
    return rows


@dataclass(frozen=True)
class Fit:
    """A model fitted to measured iterations."""

    model: Model
    packets: tuple[int, ...]
    seconds: tuple[float, ...]
    error_median: float  # relative error of the model's times
    error_worst: float


def fit(packets: Sequence[int], seconds: Sequence[float], clock_mhz: float, payload_bytes: int) -> Fit:
    """Fits the model with the least relative error to the measured times; neither cost is below 0.

    Raises:
        UsageError: for fewer than two different numbers of packets.
    """
    if len(packets) != len(seconds) or len(set(packets)) < 2:  # noqa: PLR2004
        raise UsageError("a fit needs times for at least two different numbers of packets")
    # Least squares for (offset + slope * n) / t = 1.
    a = [1 / t for t in seconds]
    b = [n / t for n, t in zip(packets, seconds, strict=True)]
    aa, ab, bb = (sum(x * y for x, y in zip(p, q, strict=True)) for p, q in ((a, a), (a, b), (b, b)))
    sum_a, sum_b = sum(a), sum(b)
    determinant = aa * bb - ab * ab
    offset = (sum_a * bb - sum_b * ab) / determinant
    slope = (sum_b * aa - sum_a * ab) / determinant
    if offset < 0:
        offset, slope = 0.0, sum_b / bb
    elif slope < 0:
        offset, slope = sum_a / aa, 0.0
    hertz = clock_mhz * 1e6
    model = Model(slope * hertz, offset * hertz, clock_mhz, payload_bytes)
    errors = [abs(model.seconds(n) / t - 1) for n, t in zip(packets, seconds, strict=True)]
    return Fit(model, tuple(packets), tuple(seconds), median(errors), max(errors))


def fit_device(
    device: Device,
    way: str,
    payload_bytes: int,
    clock_mhz: float | None = None,
    packets: Sequence[int] = FIT_PACKETS,
    runs: int = 9,
) -> Fit:
    """Measures iterations of one copy way on a device and fits the model.

    Cycles refer to the given clock, or else to the device's highest; if the device reports none, they are nanoseconds.
    """
    clock = clock_mhz or device.properties.clock_mhz or 1000.0
    seconds = measure.build_iterations(device, way=way, payload_bytes=payload_bytes, packets=list(packets), runs=runs)
    return fit(packets, seconds, clock, payload_bytes)


@dataclass(frozen=True)
class GpuRates:
    """Data sheet of a GPU."""

    clock_mhz: int  # boost clock
    memory: float  # bytes per second
    link: float  # bytes per second and direction, raw
    peer_dma: bool  # whether other devices may write to its memory


_PCIE4 = 31.5e9
_PCIE5 = 63.0e9
#: Keyed by the names of known_gpus(), from NVIDIA's data sheets. The document ran its RTX A6000 at up to 1950 MHz.
GPU_RATES = {
    "A10": GpuRates(1695, 600e9, _PCIE4, peer_dma=True),
    "A100": GpuRates(1410, 1555e9, _PCIE4, peer_dma=True),
    "B200": GpuRates(1965, 8000e9, _PCIE5, peer_dma=True),
    "H100 PCIe": GpuRates(1755, 2000e9, _PCIE5, peer_dma=True),
    "H100 SXM": GpuRates(1980, 3350e9, _PCIE5, peer_dma=True),
    "H200": GpuRates(1980, 4800e9, _PCIE5, peer_dma=True),
    "L4": GpuRates(2040, 300e9, _PCIE4, peer_dma=True),
    "L40": GpuRates(2490, 864e9, _PCIE4, peer_dma=True),
    "L40S": GpuRates(2520, 864e9, _PCIE4, peer_dma=True),
    "RTX 4090": GpuRates(2520, 1008e9, _PCIE4, peer_dma=False),
    "RTX 5090": GpuRates(2407, 1792e9, _PCIE5, peer_dma=False),
    "RTX 6000 Ada": GpuRates(2505, 960e9, _PCIE4, peer_dma=True),
    "RTX A6000": GpuRates(1800, 768e9, _PCIE4, peer_dma=True),
}


def gpu_ceilings(gpu: GpuLimits, cycles: float, payload_bytes: int, merges: Sequence[int]) -> Json:
    """Rates in bits per second that a GPU of the table can place: by copies as in Ito 2024, and by a gather."""
    rates = GPU_RATES[gpu.name]
    model = Model(cycles, 0, rates.clock_mhz, payload_bytes)
    # Each payload also reads one more line of 32 bytes and its list entry.
    moved = 2 * payload_bytes + 32 + 16
    return {
        "gpu": gpu.name,
        "clock_mhz": rates.clock_mhz,
        "memory_bytes_per_second": rates.memory,
        "copies": {str(merge): replace(model, merge=merge).limit() for merge in merges},
        "gather": 8 * payload_bytes * rates.memory * _OF_DATA_SHEET / moved,
        "link": 8 * rates.link * _OF_LINK,
        "peer_dma": rates.peer_dma,
    }


def which_gpus(target: float, cycles: float, payload_bytes: int, merges: Sequence[int]) -> list[Json]:
    """Every GPU of the table with its ceilings, and the ways that reach the target (bits per second)."""
    rows = []
    for gpu in known_gpus():
        row = gpu_ceilings(gpu, cycles, payload_bytes, merges)
        ways = [f"copies-{merge}" for merge in merges if row["copies"][str(merge)] >= target]
        ways += ["gather"] if row["gather"] >= target else []
        row["enough"] = ways if row["link"] >= target else []
        row["link_is_enough"] = row["link"] >= target
        rows.append(row)
    return rows


def as_dict(model: Model) -> Json:
    """The model for JSON."""
    limit = model.limit()
    return asdict(model) | {"limit_bits_per_second": limit if math.isfinite(limit) else None}
