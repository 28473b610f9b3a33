"""Figures from a receiver's counters: rates, Prometheus text, frames with filled gaps."""

import re
import urllib.request
from pathlib import Path

import pytest

import headrace
from headrace import ingest
from headrace.exporter import Exporter
from headrace.ingest.figures import Counters, figures
from headrace.ingest.gaps import present
from headrace.ingest.prometheus import ReceiverCollector


@pytest.fixture
def counters() -> Counters:
    """The counters of a receiver that has run."""
    with ingest.synthetic(100, packets=1000, frame=10_000, to="cpu") as source:
        for frame in source:
            frame.release()
        source.stop()  # counters may be stale before
        return source.counters()


def test_figures_are_differences(counters: Counters):
    whole = figures(None, counters, 2.0)
    assert whole.bytes == 100_000
    assert whole.packets == 1000
    assert whole.frames == 10
    assert whole.gigabits_per_second == pytest.approx(100_000 * 8 / 2 / 1e9)
    assert whole.packets_per_second == 500
    nothing = figures(counters, counters, 1.0)
    assert (nothing.bytes, nothing.packets, nothing.frames) == (0, 0, 0)
    assert figures(None, counters, 0.0).gigabits_per_second == 0


def test_what_is_sent_again_and_lost_is_counted(counters: Counters):
    later = {part: dict(values) for part, values in counters.items()}
    later["tcp"] |= {"late": 3, "duplicates": 4, "gaps": 5, "round_trip_ns": 2_000_000, "no_room": 1}
    later["datagrams"]["missing"] += 7
    later["source"]["dropped"] += 9
    now = figures(counters, later, 1.0)
    assert now.sent_again == 7
    assert now.gaps == 12
    assert now.dropped == 10
    assert now.round_trip == pytest.approx(0.002)
    assert now.as_dict()["packets_per_second"] == 0


def _samples(text: str) -> dict[str, float]:
    """Parses Prometheus text by its rules: name{labels} value."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r'(\w+)\{address="a\\"b",source="synthetic"\} ([0-9.e+-]+)', line)
        assert match is not None, line
        found[match[1]] = float(match[2])
    return found


def test_prometheus_over_http(counters: Counters):
    labels = {"source": "synthetic", "address": 'a"b'}
    exporter = Exporter("0", ReceiverCollector(lambda: counters, labels))
    assert exporter.address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(exporter.address, timeout=60) as answer:
        text = answer.read().decode()
    samples = _samples(text)
    assert samples["headrace_ingest_source_packets_total"] == 1000
    assert samples["headrace_ingest_datagrams_bytes_total"] == 100_000
    assert samples["headrace_ingest_frames_frames_total"] == 10
    assert samples["headrace_ingest_streams_open_streams"] == counters["streams"]["open_streams"]
    assert "headrace_ingest_tcp_round_trip_seconds" in samples
    assert "# TYPE headrace_ingest_streams_open_streams gauge" in text
    assert "# TYPE headrace_ingest_source_packets_total counter" in text
    assert len(samples) == sum(len(values) for values in counters.values())
    with pytest.raises(headrace.SystemError, match="in use"):
        Exporter(exporter.address.removeprefix("http://").removesuffix("/metrics"))
    exporter.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(exporter.address, timeout=60)


def test_prometheus_file(counters: Counters, tmp_path: Path):
    path = tmp_path / "headrace.prom"
    now = [counters]
    labels = {"source": "synthetic", "address": 'a"b'}
    exporter = Exporter(str(path), ReceiverCollector(lambda: now[0], labels))
    assert _samples(path.read_text())["headrace_ingest_source_packets_total"] == 1000
    now[0] = counters | {"source": counters["source"] | {"packets": 2000}}
    exporter.write()
    assert _samples(path.read_text())["headrace_ingest_source_packets_total"] == 2000
    exporter.close()
    assert [one.name for one in tmp_path.iterdir()] == ["headrace.prom"]


@pytest.mark.parametrize("target", ["headrace.txt", "70000", "host:port", ""])
def test_a_target_that_is_none(target: str):
    with pytest.raises(headrace.UsageError, match="neither a port"):
        Exporter(target)


def test_a_file_that_cannot_be_written(tmp_path: Path):
    with pytest.raises(headrace.SystemError, match="there is no folder"):
        Exporter(str(tmp_path / "no" / "x.prom"))


def test_presence_is_a_bit_for_each_packet():
    assert present([0b101], 5).tolist() == [True, False, True, False, False]
    assert present([0, 1 << 63], 128).nonzero()[0].tolist() == [127]
