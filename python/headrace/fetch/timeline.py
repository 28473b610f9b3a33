"""Records when chunks are read, decoded and transferred and when kernels run, and draws the result."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import outputs
from headrace._core import FetchOptions
from headrace.errors import UsageError
from headrace.report import timeline
from headrace.report.timeline import Bar

if TYPE_CHECKING:
    from headrace.fetch.fetched import StepSpan
    from headrace.fetch.table import Table

SPANS_MAX = 100_000
WINDOWS = 8
_COLOURS = {"read": "#c9d6e8", "decode": "#6f93c4", "transfer": "#d98a3d", "kernel": "#3a9d5d"}
_MATERIALISING = ("read", "decode")


@dataclass(frozen=True)
class KernelSpan:
    """A kernel on a window of fragments, by time.monotonic()."""

    fragments: list[int]
    begin: float
    end: float


@dataclass(frozen=True)
class Pass:
    """The recorded steps of one pass over a table in windows."""

    columns: list[str]
    device: str
    threads: int
    windows: int
    began: float
    ended: float
    spans: "list[StepSpan]"
    kernels: list[KernelSpan]
    dropped: int

    def overlap(self) -> dict[str, float]:
        """Seconds in which any chunk was materialised, transferred, or read by a kernel, and overlaps of these."""
        made = [(span.begin, span.end) for span in self.spans if span.step in _MATERIALISING]
        moved = [(span.begin, span.end) for span in self.spans if span.step == "transfer"]
        read = [(one.begin, one.end) for one in self.kernels]
        return {
            "seconds": self.ended - self.began,
            "materialise_seconds": timeline.length(made),
            "transfer_seconds": timeline.length(moved),
            "kernel_seconds": timeline.length(read),
            "transfer_beside_materialise_seconds": timeline.shared(moved, made),
            "kernel_beside_others_seconds": timeline.shared(read, made + moved),
        }


def check(path: Path) -> None:
    """Checks that a timeline can be written to this path, before anything is fetched.

    Raises:
        UsageError: for another extension, or a picture without matplotlib.
        SystemError: when the file cannot be written.
    """
    if path.suffix not in (".json", *timeline.FORMATS):
        raise UsageError(f"{path}: a timeline is written as .json, {' or '.join(timeline.FORMATS)}")
    if path.suffix != ".json":
        timeline.check(path)
    outputs.check(path)


def record(table: "Table", columns: list[str] | None, window: int | None) -> Pass:
    """Runs one pass over a table in windows, with a kernel on each while the next is in flight.

    Args:
        table: table to read.
        columns: as for Table.fetch().
        window: fragments per window; default: such that there are eight windows.
    """
    count = max(1, len(table.fragments))
    size = window if window is not None else -(-count // WINDOWS)
    spans: list[StepSpan] = []
    kernels = []
    names: list[str] = []
    dropped = threads = 0
    how = table.core.options
    options = FetchOptions(mode=how.mode, threads=how.threads, flush_bytes=how.flush_bytes, timeline_spans=SPANS_MAX)
    began = time.monotonic()
    for part in table.stream(columns, window=size, options=options):
        names, threads = part.column_names, max(threads, part.threads)
        report = part.look()
        kernels.append(KernelSpan(part.fragments, report.began, report.ended))
        done, more = part.timeline()
        spans += done
        dropped += more
    ended = time.monotonic()
    return Pass(names, table.device.name, threads, len(kernels), began, ended, spans, kernels, dropped)


def content(one: Pass) -> dict[str, Any]:
    """The pass as JSON, with times relative to its start."""
    return {
        "columns": one.columns,
        "device": one.device,
        "threads": one.threads,
        "windows": one.windows,
        **one.overlap(),
        "dropped": one.dropped,
        "spans": [
            span._asdict() | {"begin": span.begin - one.began, "end": span.end - one.began} for span in one.spans
        ],
        "kernels": [
            {"fragments": kernel.fragments, "begin": kernel.begin - one.began, "end": kernel.end - one.began}
            for kernel in one.kernels
        ],
    }


def write(path: Path, one: Pass) -> None:
    """Writes the pass as JSON, or draws it: two rows per thread, and one for kernels."""
    if path.suffix == ".json":
        outputs.write(path, json.dumps(content(one), indent=1) + "\n")
        return
    rows = [f"thread {thread}: {what}" for thread in range(one.threads) for what in ("materialise", "transfer")]
    bars = [
        Bar(2 * span.thread + (span.step == "transfer"), span.step, span.begin - one.began, span.end - one.began)
        for span in one.spans
    ]
    bars += [Bar(len(rows), "kernel", kernel.begin - one.began, kernel.end - one.began) for kernel in one.kernels]
    overlap = one.overlap()
    moved = overlap["transfer_seconds"]
    share = overlap["transfer_beside_materialise_seconds"] / moved if moved > 0 else 0.0
    title = (
        f"{len(one.columns)} columns to {one.device} in {one.windows} windows, {share:.0%} of transfer time "
        "overlapped with decoding"
    )
    outputs.write(path, timeline.render(path.suffix, title, [*rows, "kernel"], bars, _COLOURS, ""))
