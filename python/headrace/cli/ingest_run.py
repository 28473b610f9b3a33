"""Runs the commands of `headrace ingest`: receives until something ends the run, and shows the results."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import typer

import headrace
from headrace import ingest
from headrace.cli import ingest_notes, ingest_show, show
from headrace.cli.ingest_follow import follow_notes, fragment_notes
from headrace.cli.ingest_options import Frames, Output, size
from headrace.exporter import FILE_SECONDS, Exporter
from headrace.ingest.figures import Counters, Figures, accepted_bytes, figures
from headrace.ingest.prometheus import ReceiverCollector
from headrace.ingest.taking import Delivery, Taker
from headrace.interrupts import Stop
from headrace.units import bytes_text

Json = dict[str, Any]

_LOOK_SECONDS = 0.1
_READ_SECONDS = 0.01  # between two readings of the counters, which a receiver publishes every 50 ms
_SHOW_SECONDS = 0.5


@dataclass
class _Task:
    seconds: float
    do: Callable[[Figures, Figures], object]
    last: float
    before: Counters


class Watch:
    """Looks at a receiver from time to time, and passes its figures on to be shown, printed and written."""

    def __init__(self, read: Callable[[], Counters]) -> None:
        self._read = read
        self._began = time.monotonic()
        self._read_next = self._began
        self._tasks: list[_Task] = []
        self._first_byte: float | None = None
        self._last_byte = self._began
        self._seen = 0

    def every(self, seconds: float, do: Callable[[Figures, Figures], object]) -> None:
        """Calls `do` at this interval, with the figures since the last call and the totals."""
        self._tasks.append(_Task(seconds, do, self._began, self._read()))

    def look(self) -> None:
        """Calls what is due. May be called for every delivery: it reads the counters at most 100 times a second."""
        now = time.monotonic()
        if now < self._read_next:
            return
        self._read_next = now + _READ_SECONDS
        counters = self._note(now)
        for task in self._tasks:
            if now < task.last + task.seconds:
                continue
            done = figures(task.before, counters, now - task.last)
            task.last, task.before = now, counters
            task.do(done, figures(None, counters, now - self._began))

    def total(self) -> Figures:
        """The totals over the time in which bytes arrived."""
        counters = self._note(time.monotonic())
        seconds = 0.0 if self._first_byte is None else self._last_byte - self._first_byte
        return figures(None, counters, seconds)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def _note(self, now: float) -> Counters:
        counters = self._read()
        seen = accepted_bytes(counters)
        if seen != self._seen:
            self._first_byte = self._last_byte if self._first_byte is None else self._first_byte
            self._last_byte, self._seen = now, seen
        elif self._first_byte is None:
            self._last_byte = now
        return counters


def _take(
    receiver: ingest.Receiver, taker: Taker, watch: Watch, ends: Json, answering: ingest.Answering | None, stop: Stop
) -> str:
    """Takes frames until something ends the run; returns the reason. Ctrl-C never separates delivery from taking."""
    while not stop.asked:
        if ends["frames"] is not None and taker.frames >= ends["frames"]:
            return "frames"
        busy = answering is not None and answering.busy
        if ends["streams"] is not None and taker.ended >= ends["streams"] and not busy:
            return "streams"
        if ends["duration"] is not None and watch.elapsed >= ends["duration"]:
            return "duration"
        delivery = receiver.next(timeout=_LOOK_SECONDS)
        _take_one(delivery, taker, answering)
        if delivery is None and receiver.ended:
            return "source"
        watch.look()
    return "interrupt"


def _take_one(delivery: Delivery | None, taker: Taker, answering: ingest.Answering | None) -> None:
    if answering is not None:
        answering.take(delivery)
    if delivery is not None:
        taker.take(delivery)


def _take_what_waits(receiver: ingest.Receiver, taker: Taker, answering: ingest.Answering | None) -> None:
    while (delivery := receiver.next(timeout=0)) is not None:
        _take_one(delivery, taker, answering)


def _forgotten(taker: Taker) -> list[str]:
    shown, totals = len(taker.streams), taker.totals
    if shown == totals.streams:
        return []
    ends = ", ".join(f"{count:,} {reason}" for reason, count in sorted(totals.ends.items()))
    return [f"{totals.streams:,} streams in all, of which the last {shown:,} were kept; ended: {ends}"]


def _unwritten(taker: Taker) -> list[str]:
    """Messages about files that lack received bytes of their stream."""
    totals = taker.totals
    if totals.failed == 0:
        return []
    return [f"{totals.failed:,} of {totals.streams:,} streams were not written: {totals.error}"]


def _check_written(taker: Taker) -> None:
    if said := _unwritten(taker):
        raise headrace.Error(said[0])


def _check_used(taker: Taker, counters: Counters) -> None:
    """Raises if a capture has packets, and none of them is part of a stream."""
    source = counters["source"]
    packets = source["packets"] + source["left_out"]
    if packets > 0 and taker.totals.streams == 0:
        raise headrace.Error(
            f"the capture has {packets:,} packets, but no stream was found in them: "
            "check --port, --follow and the options that say how datagrams are numbered"
        )


@dataclass(frozen=True)
class Source:
    """A source of packets, and how a run describes it."""

    name: str
    """tcp, udp, pcap or synthetic."""
    doing: str
    """Start of the first line on stderr, such as "Listening on"."""
    open: Callable[[], ingest.Receiver]
    frame_bytes: int
    packet_bytes: int = 0
    """Stream bytes per datagram; 0 for TCP."""
    target: str | None = None
    """Text after `doing`; None stands for the receiver's address."""
    notes: tuple[str, ...] = ()
    """Further notes on the first line."""
    control: str = "host"
    answering: type[ingest.Answering] | None = None
    via: str | None = None
    follow: bool = False


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    source: Source
    frames: Frames
    output: Output

    def receive(self) -> None:
        """Receives, and prints the results however the run ends."""
        with ExitStack() as stack:
            receiver = stack.enter_context(self.source.open())
            ingest.drop_capabilities()  # code that parses untrusted packets must not keep those rights
            read = receiver.counters
            watch = Watch(read)
            answering = None if self.source.answering is None else self.source.answering(receiver)
            taker = self._taker(receiver, answering, watch)
            stack.callback(taker.close)
            title = self._title(receiver)
            if self.output.prometheus is not None:
                labels = {"source": self.source.name, "address": receiver.address}
                exporter = Exporter(self.output.prometheus, ReceiverCollector(read, labels))
                stack.callback(exporter.close)
                watch.every(FILE_SECONDS, lambda *_: exporter.write())
            show.stderr().print(title, markup=False, soft_wrap=True)
            if self.output.interval is not None:
                watch.every(self.output.interval, self._print_line)
            lines_between = self.output.interval is not None and show.stdout().is_terminal
            live = stack.enter_context(ingest_show.live_figures(shown=not lines_between))
            watch.every(_SHOW_SECONDS, live.update)
            ended_by = "error"
            try:
                with Stop() as stop:
                    ended_by = _take(receiver, taker, watch, self._ends(), answering, stop)
                    receiver.stop()
                    if ended_by != "frames":
                        _take_what_waits(receiver, taker, answering)  # senders have been told that these frames arrived
                if ended_by == "interrupt":
                    if said := _unwritten(taker):
                        show.stderr().print(said[0], markup=False, soft_wrap=True)
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                ended_by = "interrupt"
                raise
            finally:
                receiver.stop()
                live.stop()
                taker.close()
                self._print_totals(title, receiver, taker, watch.total(), ended_by)
            _check_written(taker)
            if self.source.name == "pcap" and ended_by == "source":
                _check_used(taker, read())

    def _ends(self) -> Json:
        return {"duration": self.output.duration, "frames": self.output.frames, "streams": self.output.streams}

    def _taker(self, receiver: ingest.Receiver, answering: ingest.Answering | None, watch: Watch) -> Taker:
        output, growth = self.output, self.frames.growth
        return Taker(
            sha256=output.sha256,
            out=output.out,
            keep=output.keep_streams,
            files_max=output.out_files,
            bytes_max=None if output.out_bytes is None else size(output.out_bytes, "--out-bytes"),
            reset=receiver.reset if self.source.name == "tcp" else None,
            packet_bytes=self.source.packet_bytes * growth,
            growth=growth,
            item=self.frames.item_bytes,
            body=None if answering is None else answering.body,
            look=watch.look,
        )

    def _title(self, receiver: ingest.Receiver) -> str:
        target = receiver.address if self.source.target is None else self.source.target
        on = f" ({receiver.interface})" if receiver.interface else ""
        frame = bytes_text(self.source.frame_bytes)
        notes = "".join(f", {note}" for note in self.source.notes)
        return f"{self.source.doing} {target}{on}: frames of {frame} to {self.frames.device().name}{notes}"

    def _print_line(self, now: Figures, total: Figures) -> None:
        if self.output.as_json:
            typer.echo(json.dumps(now.as_dict() | {"at": total.seconds, "total": total.as_dict()}))
        else:
            show.stdout().print(ingest_show.line(now, total), markup=False, soft_wrap=True)

    def _print_totals(self, title: str, receiver: ingest.Receiver, taker: Taker, total: Figures, ended_by: str) -> None:
        streams = list(taker.streams.values())
        if not self.output.as_json:
            counters = receiver.counters()
            found = ingest_notes.notes(counters, self.source.name, self.source.via)
            notes = follow_notes(counters["follow"]) if self.source.follow else found
            notes += _forgotten(taker) + fragment_notes(counters["fragments"])
            ingest_show.print_totals(show.stdout(), title, total, streams, notes)
            return
        content = {
            "source": self.source.name,
            "address": receiver.address,
            "interface": receiver.interface,
            "device": self.frames.device().name,
            "frame_bytes": self.source.frame_bytes,
            "control": self.source.control,
            "ended_by": ended_by,
            "interrupted": ended_by == "interrupt",
            **total.as_dict(),
            "streams": [stream.as_dict() for stream in streams],
            "stream_totals": taker.totals.as_dict(),
            "counters": receiver.counters(),
        }
        typer.echo(json.dumps(content, indent=None if self.output.interval is not None else 2))
