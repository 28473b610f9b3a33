"""A receiver's counters for Prometheus: asked for over HTTP, or written for the node exporter's textfile collector."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace import outputs
from headrace.errors import SystemError, UsageError  # noqa: A004
from headrace.ingest.figures import Counters
from headrace.ingest.metrics_server import MetricsServer
from headrace.units import NANO

_PORT_MOST = 65535

_GAUGES = {
    ("streams", "open_streams"): "Streams that are open now.",
    ("tcp", "connections_waiting"): "Connections that wait for a place for their stream.",
    ("tcp", "connections_silent"): "Connections that may send, and have not sent a byte.",
    ("streams", "deliveries_waiting"): "Frames and events that the consumer has not taken.",
    ("streams", "window_least_bytes"): "The smallest window that an open connection is offered.",
    ("tcp", "round_trip_ns"): "The latest round trip of any connection.",
    ("tcp", "round_trip_least_ns"): "The shortest round trip of any connection.",
}


class ReceiverCollector(Collector):
    """Metrics headrace_ingest_<part>_<name>: a counter each, but for what is a state.

    Args:
        read: gives the counters; called for each collection, by any thread.
        labels: of every metric.
    """

    def __init__(self, read: Callable[[], Counters], labels: dict[str, str]) -> None:
        self._read = read
        self._labels = labels

    def collect(self) -> Iterable[Metric]:
        """Reads once."""
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


def _registry(read: Callable[[], Counters], labels: dict[str, str]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(ReceiverCollector(read, labels))
    return registry


class Exporter:
    """Gives a receiver's counters to Prometheus.

    Args:
        target: "9100" (of this machine alone) or "0.0.0.0:9100", a port that answers HTTP; or "headrace.prom", a file
            of the textfile collector, which wants that ending.

    Raises:
        UsageError: for a target that is neither.
        SystemError: for a port that is in use or not allowed, and a file that cannot be written.
    """

    def __init__(self, target: str, read: Callable[[], Counters], labels: dict[str, str]) -> None:
        self._registry = _registry(read, labels)
        self._file: Path | None = None
        self._server: MetricsServer | None = None
        match = re.fullmatch(r"(?:(?:\[([^\]]+)\]|([^:\[\]]*)):)?(\d+)", target)
        if match is not None and int(match[3]) <= _PORT_MOST:
            host = match[1] or match[2] or "127.0.0.1"
            try:
                self._server = MetricsServer(host, int(match[3]), self._registry)
            except OSError as error:
                raise SystemError(f"--prometheus {target}: {error.strerror}", native=error.errno or 0) from None
            name = f"[{host}]" if ":" in host else host
            self.address = f"http://{name}:{self._server.server_port}/metrics"
        elif match is None and target.endswith(".prom"):
            self._file = Path(target)
            self.address = target
            self.write()
        else:
            raise UsageError(f"'{target}' is neither a port, as 9100 or 0.0.0.0:9100, nor a file that ends in .prom")

    def write(self) -> None:
        """Writes the file anew, in one step; does nothing for a port."""
        if self._file is None:
            return
        outputs.write(self._file, generate_latest(self._registry))

    def close(self) -> None:
        """Writes the last figures, or stops answering."""
        self.write()
        if self._server is not None:
            self._server.close()
            self._server = None
