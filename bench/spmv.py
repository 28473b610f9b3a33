"""Sparse matrix-vector products on one and on several devices: the gain, and GB/s with their roofs.

    python bench/spmv.py [--devices cuda:0,cuda:1] [--entries 100M] [--per-row 50] [--dtype float64] [--save F] [--json]

Two matrices are generated: one with a band around the diagonal, in which devices need next to nothing of each other,
and one with random columns, in which each needs all of x. Every product is checked against a plain sum. Bytes are those
that must move: the matrix in its stored form, x once and y once. Roofs are measured in the same run: the memory of all
devices together, and the link as read by a kernel. Exit status: 0; 1 when a product was wrong; 2 for wrong use.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import headrace
from headrace import Device, Error, results
from headrace.cli.options import count
from headrace.operators import CsrMatrix
from headrace.profiles import Json

_SAMPLE_SECONDS = 0.1
_REPEATS_MAX = 500
_BLOCK_ROWS = 1 << 16
_ROUNDINGS = 100
_SEED = 1

Array = NDArray[Any]


@dataclass
class Host:
    """A square matrix with the same number of entries in every row."""

    columns: Array  # rows x entries per row
    values: Array

    @property
    def rows(self) -> int:
        """Rows, and columns."""
        return int(self.columns.shape[0])

    def place(self, devices: list[Device], reads: str = "automatic") -> CsrMatrix:
        """The matrix on its devices."""
        indptr = np.arange(self.rows + 1, dtype=np.int64) * self.columns.shape[1]
        shape = (self.rows, self.rows)
        return CsrMatrix(devices, indptr, self.columns.ravel(), self.values.ravel(), shape, reads=reads)

    def is_product(self, x: Array, y: Array) -> bool:
        """Whether y is A x, up to the rounding of the sums."""
        eps = np.finfo(x.dtype).eps * _ROUNDINGS
        for begin in range(0, self.rows, _BLOCK_ROWS):
            block = slice(begin, begin + _BLOCK_ROWS)
            terms = self.values[block] * x[self.columns[block]]
            if not np.all(np.abs(y[block] - terms.sum(axis=1)) <= eps * np.abs(terms).sum(axis=1)):
                return False
        return True


def _banded(rows: int, per_row: int, dtype: str, random: np.random.Generator) -> Host:
    first = np.clip(np.arange(rows) - per_row // 2, 0, rows - per_row).astype(np.int32)
    return Host(first[:, None] + np.arange(per_row, dtype=np.int32), _values(rows, per_row, dtype, random))


def _random(rows: int, per_row: int, dtype: str, random: np.random.Generator) -> Host:
    columns = random.integers(0, rows, (rows, per_row), dtype=np.int32)
    return Host(columns, _values(rows, per_row, dtype, random))


def _values(rows: int, per_row: int, dtype: str, random: np.random.Generator) -> Array:
    return random.random((rows, per_row), dtype=np.dtype(dtype))  # type: ignore[arg-type]


_KINDS: dict[str, Callable[..., Host]] = {"banded": _banded, "random": _random}


@dataclass
class Measured:
    """One placement of a matrix."""

    seconds: list[float]
    bytes: int
    verified: bool
    remote_bytes: int  # for the device that reads most over links, in place
    copied_bytes: int  # of x, for the device that copies most


def _measure(matrix: CsrMatrix, host: Host, x: Array, samples: int) -> Measured:
    verified = host.is_product(x, matrix.multiply(x))
    once = matrix.time(samples=1, repeats=3)[0]
    repeats = max(1, min(_REPEATS_MAX, int(_SAMPLE_SECONDS / once)))
    vectors = 2 * host.rows * x.itemsize
    in_place = [part.remote_bytes for part in matrix.parts if part.copied_count == 0]
    return Measured(
        matrix.time(samples=samples, repeats=repeats),
        sum(part.bytes for part in matrix.parts) + vectors,
        verified,
        max(in_place, default=0),
        max(part.copied_count * x.itemsize for part in matrix.parts),
    )


class Bench:
    """State that all measurements share."""

    def __init__(self, devices: list[Device], per_row: int, entries: int, dtype: str, samples: int) -> None:
        self.devices = devices
        self.rows = entries // per_row
        self.per_row = per_row
        self.dtype = dtype
        self.samples = samples
        self.memory = [headrace.measure.memory_roofs(device).on_device for device in devices]
        # CPU devices share one memory, so there is no link between them.
        linked = len(devices) > 1 and devices[0].kind.name == "cuda"
        self.link = headrace.measure.gather(devices[0], devices[1]) if linked else None

    def _about(self, kind: str, devices: int, measured: Measured) -> Json:
        return {
            "matrix": kind,
            "rows": self.rows,
            "entries": self.rows * self.per_row,
            "dtype": self.dtype,
            "devices": devices,
            "ms": median(measured.seconds) * 1e3,
            "copied_bytes": measured.copied_bytes,
            "verified": measured.verified,
        }

    def _rate(self, identity: str, kind: str, devices: int, measured: Measured) -> Json:
        rates = [measured.bytes / seconds / 1e9 for seconds in measured.seconds]
        roof = sum(self.memory[:devices]) / 1e9
        return results.row(identity, rates, "GB/s", (roof, "memory"), self._about(kind, devices, measured))

    def rows_of(self, kind: str) -> list[Json]:
        """The figures of one kind of matrix."""
        random = np.random.default_rng(_SEED)
        host = _KINDS[kind](self.rows, self.per_row, self.dtype, random)
        x = _values(self.rows, 1, self.dtype, random).ravel()
        one = _measure(host.place(self.devices[:1]), host, x, self.samples)
        rows = [self._rate(f"spmv.{kind}.one", kind, 1, one)]
        if len(self.devices) == 1:
            return rows
        number = len(self.devices)
        several = _measure(host.place(self.devices), host, x, self.samples)
        rows.append(self._rate(f"spmv.{kind}.several", kind, number, several))
        gains = [median(one.seconds) / seconds for seconds in several.seconds]
        about = self._about(kind, number, several) | {
            "one_ms": median(one.seconds) * 1e3,
            "verified": one.verified and several.verified,
        }
        identity = "link.spmv.gain" if kind == "banded" else f"link.spmv.{kind}.gain"
        rows.append(results.row(identity, gains, "ratio", (float(number), "devices"), about))
        if kind == "random" and self.link is not None:
            rows += self._over_the_link(host, x, self.link)
        return rows

    def _over_the_link(self, host: Host, x: Array, link: float) -> list[Json]:
        """Bytes that each device reads over the link if x stays in place, in whole sectors."""
        measured = _measure(host.place(self.devices, "in-place"), host, x, self.samples)
        rates = [measured.remote_bytes / seconds / 1e9 for seconds in measured.seconds]
        about = self._about("random", len(self.devices), measured) | {"bytes": "32 a sector, once a block"}
        return [results.row("link.spmv.random.in_place", rates, "GB/s", (link / 1e9, "link, kernel reads"), about)]


def _default_devices() -> list[str]:
    gpus = [device.name for device in Device.list() if device.kind.name == "cuda"]
    return gpus or ["cpu:0", "cpu:1"]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", help="devices, such as cuda:0,cuda:1; default: every GPU, else two CPU devices")
    parser.add_argument("--entries", type=count, help="number of entries; default: 100M on GPUs, 4M on CPU devices")
    parser.add_argument("--per-row", type=int, default=50, help="entries per row")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--only", choices=sorted(_KINDS), help="measure only this kind of matrix")
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--save", type=Path, help="write the results file spmv.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    chosen = parser.parse_args()
    if chosen.per_row < 1 or chosen.samples < 1:
        parser.error("--per-row and --samples must be at least 1")
    return chosen


def _run(chosen: argparse.Namespace) -> list[Json]:
    names = chosen.devices.split(",") if chosen.devices else _default_devices()
    devices = [Device.parse(name) for name in names]
    entries = chosen.entries or (4_000_000 if devices[0].kind.name == "cpu" else 100_000_000)
    if entries < chosen.per_row * chosen.per_row:
        raise headrace.UsageError(f"{entries} entries are too few for rows of {chosen.per_row}")
    if chosen.save is not None:
        results.topic_of(chosen.save, devices[0])
    bench = Bench(devices, chosen.per_row, entries, chosen.dtype, chosen.samples)
    rows = [row for kind in ([chosen.only] if chosen.only else _KINDS) for row in bench.rows_of(kind)]
    content = results.document("spmv", devices[0], rows)
    if chosen.save is not None:
        results.save(chosen.save, content)
    if chosen.json:
        print(json.dumps(content, indent=2))
    else:
        for row in rows:
            share = f"{results.share_of_roof(row):6.1%} of {row['roof']:.4g} ({row['roof_is']})"
            print(f"{row['id']:<27} {row['value']:8.2f} {row['unit']:<6} {share}")
            print(f"{'':<27} {results.describe(row['conditions'])}")
    return rows


def main() -> int:
    """Runs the program."""
    try:
        rows = _run(_parse())
    except Error as error:
        print(f"spmv: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, headrace.UsageError) else 1
    wrong = [row["id"] for row in rows if not row["conditions"]["verified"]]
    if wrong:
        print(f"spmv: error: wrong products: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
