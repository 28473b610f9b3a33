"""Exports a receiver's counters as Prometheus metrics."""

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.ingest.figures import Counters
from headrace.units import NANO

_GAUGES = {
    ("streams", "open_streams"): "Streams that are open now.",
    ("tcp", "connections_waiting"): "Connections that wait for a free stream.",
    ("tcp", "connections_silent"): "Connections that may send but have not sent a byte.",
    ("streams", "deliveries_waiting"): "Frames and events that the consumer has not taken.",
    ("streams", "window_least_bytes"): "The smallest window that an open connection is offered.",
    ("tcp", "round_trip_ns"): "The latest round trip of any connection.",
    ("tcp", "round_trip_least_ns"): "The shortest round trip of any connection.",
}


class ReceiverCollector(Collector):
    """Metrics headrace_ingest_<part>_<name>: counters, except for states.

    Args:
        read: returns the counters; called for each collection, from any thread.
        labels: labels of every metric.
    """

    def __init__(self, read: Callable[[], Counters], labels: dict[str, str]) -> None:
        self._read = read
        self._labels = labels

    def collect(self) -> Iterable[Metric]:
        """Reads the counters once."""
        for part, counters in self._read().items():
            for name, value in counters.items():
                yield self._metric(part, name, value)

    def _metric(self, part: str, name: str, value: float) -> Metric:
        means = _GAUGES.get((part, name))
        if name.endswith("_ns"):
            name, value = name.removesuffix("ns") + "seconds", value * NANO
        full, labels = f"headrace_ingest_{part}_{name}", list(self._labels)
        made: CounterMetricFamily | GaugeMetricFamily
        if means is None:
            made = CounterMetricFamily(full, f"Counter {name} of the {part}: see docs/ingest.md.", labels=labels)
        else:
            made = GaugeMetricFamily(full, means, labels=labels)
        made.add_metric(list(self._labels.values()), value)
        return made
