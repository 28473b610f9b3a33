"""Output of `headrace ingest`: live figures, lines, and totals."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from headrace import tables
from headrace.cli import show
from headrace.ingest.figures import Figures
from headrace.ingest.taking import TakenStream
from headrace.units import bytes_text


def _cells(now: Figures, total: Figures) -> list[tuple[str, str]]:
    """Headings and figures: current rates, total counts."""
    return [
        ("Gb/s", f"{now.gigabits_per_second:.2f}"),
        ("packets/s", tables.short_rate(now.packets_per_second)),
        ("frames", f"{total.frames:,}"),
        ("gaps", f"{total.gaps:,}"),
        ("resent", f"{total.sent_again:,}"),
        ("dropped", f"{total.dropped:,}"),
        ("window", bytes_text(now.window_bytes) if now.window_bytes else tables.NONE),
        ("trip", tables.latency(now.round_trip) if now.round_trip else tables.NONE),
        ("open", f"{now.connections:,}"),
    ]


def line(now: Figures, total: Figures) -> str:
    """The figures as one line of text."""
    said = ", ".join(f"{heading} {figure}" for heading, figure in _cells(now, total))
    return f"{total.seconds:8.1f} s  {said}"


class LiveFigures:
    """Shows the figures on the terminal; does nothing if stderr is not a terminal."""

    def __init__(self, live: Live | None) -> None:
        self._live = live

    def update(self, now: Figures, total: Figures) -> None:
        """Shows new figures."""
        if self._live is None:
            return
        table = show.plain_table()
        cells = [("time", show.minutes(total.seconds)), *_cells(now, total)]
        for heading, _ in cells:
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_row(*(figure for _, figure in cells))
        self._live.update(table)

    def stop(self) -> None:
        """Clears the figures."""
        if self._live is not None:
            self._live.stop()


@contextmanager
def live_figures(*, shown: bool) -> Iterator[LiveFigures]:
    """Live figures that are cleared at the end."""
    console = show.stderr()
    if not shown or not console.is_terminal:
        yield LiveFigures(None)
        return
    with Live(console=console, transient=True, refresh_per_second=4) as live:
        yield LiveFigures(live)


def _stream_table(streams: Sequence[TakenStream]) -> Table:
    table = show.plain_table()
    missing = any(stream.missing_bytes for stream in streams)
    table.add_column("stream", justify="right", no_wrap=True)
    table.add_column("from", no_wrap=True)
    several = len({stream.destination for stream in streams}) > 1
    if several:
        table.add_column("to", no_wrap=True)
    for heading in ("bytes", "frames", *(("missing",) if missing else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("ended", no_wrap=True)
    for stream in streams:
        lacks = (f"{stream.missing_bytes:,}",) if missing else ()
        table.add_row(
            str(stream.stream),
            escape(stream.peer) or tables.NONE,  # IPv6 addresses have brackets
            *((escape(stream.destination),) if several else ()),
            f"{stream.bytes:,}",
            f"{stream.frames:,}",
            *lacks,
            stream.end,
        )
    return table


def print_totals(
    console: Console, title: str, total: Figures, streams: Sequence[TakenStream], notes: list[str]
) -> None:
    """Shows what was received, per stream and in total."""
    if not console.is_terminal:  # on a terminal it is already shown above
        console.print(title, markup=False, soft_wrap=True)
    if streams:
        console.print(_stream_table(streams))
    for stream in streams:
        if stream.hash is not None:
            console.print(f"{stream.hash.hexdigest()}  stream {stream.stream}", markup=False, soft_wrap=True)
    lines = [
        f"{bytes_text(total.bytes)} in {total.seconds:.2f} s: {total.gigabits_per_second:.2f} Gb/s, "
        f"{tables.short_rate(total.packets_per_second)} packets/s; frames: {total.frames:,}",
        f"gaps {total.gaps:,}, resent {total.sent_again:,}, dropped {total.dropped:,}"
        + (f"; round trip {tables.latency(total.round_trip)}" if total.round_trip else ""),
        *notes,
    ]
    for one in lines:
        console.print(one, markup=False, soft_wrap=True)
