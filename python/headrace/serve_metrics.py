"""Exports the activity of a server as Prometheus metrics.

Names that begin with nv_ are Triton's and have Triton's meaning, so Triton's dashboards show them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from headrace import _core
from headrace.device import Device
from headrace.errors import Error
from headrace.results import built
from headrace.units import MICROSECONDS
from headrace.wire import DurationHistogram, ModelStatistics, Outcomes, ProtocolStatistics, Server, ServerStatistics

if TYPE_CHECKING:
    from headrace.serve_traces import Tracing

PRIORITIES = ("high", "normal")
STAGES = ("read", "queue", "engine", "reply")
OUTCOMES = ("answered", "invalid", "refused", "late", "cancelled", "failed")

_MODEL = ("model", "version")
_PROTOCOL = (*_MODEL, "protocol")


class ServerCollector(Collector):
    """Metrics of a server and its models, of the answering device and of this process.

    Args:
        server: may have been stopped.
        device: device of the server's engines.
        tracing: writes the server's traces; None if there is none.
    """

    def __init__(self, server: Server, device: Device, tracing: "Tracing | None" = None) -> None:
        self._tracing = tracing
        self._server = server
        # Protocols that the server speaks, named as the attributes of the statistics.
        spoken = (("http", True), ("grpc", server.grpc_port is not None), ("shm", server.shm is not None))
        self._protocols = [name for name, is_spoken in spoken if is_spoken]
        self._device = device
        self._built = {"version": _core.version, **built()}
        # The prefix avoids a clash with the node exporter's own process_ metrics.
        self._process = ProcessCollector(namespace="headrace", registry=None)

    def collect(self) -> Iterable[Metric]:
        """Reads all metrics once."""
        yield from self._of_models(self._server.model_statistics())
        yield from self._of_server()
        if self._tracing is not None:
            yield from _of_traces(self._tracing)
        yield from self._of_device()
        yield from self._process.collect()
        info = GaugeMetricFamily("headrace_build_info", "How this build was made; always 1.", labels=list(self._built))
        info.add_metric(list(self._built.values()), 1)
        yield info

    def _of_models(self, models: Sequence[ModelStatistics]) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "headrace_serve_model_requests", "Requests for inference, by outcome.", labels=(*_PROTOCOL, "outcome")
        )
        queries = CounterMetricFamily(
            "headrace_serve_model_queries", "Queries, by the outcome of their request.", labels=(*_PROTOCOL, "outcome")
        )
        durations = HistogramMetricFamily(
            "headrace_serve_model_request_duration_seconds",
            "Answered requests, from the request being read to its reply being ready to send.",
            labels=_PROTOCOL,
        )
        stages = HistogramMetricFamily(
            "headrace_serve_model_stage_duration_seconds",
            "Answered requests, by stage: read (first byte to checked), queue, engine and reply, which add up to "
            "headrace_serve_model_request_duration_seconds.",
            labels=(*_PROTOCOL, "stage"),
        )
        for model in models:
            for protocol, done in self._by_protocol(model):
                labels = (model.name, model.version, protocol)
                _add_outcomes(requests, labels, done.requests, OUTCOMES)
                _add_outcomes(queries, labels, done.queries, OUTCOMES)
                durations.add_metric(labels, _buckets(done.durations), done.durations.sum)
                for stage, counted in _stages(protocol, done):
                    stages.add_metric((*labels, stage), _buckets(counted), counted.sum)
        yield from (requests, queries, durations, stages)
        yield from _of_priorities(models)
        yield _gauge("headrace_serve_model_ready", "1 while it is loaded and its engine works.", models, "ready")
        waiting = "Queries that wait for a slot of the engine."
        yield _gauge("headrace_serve_model_queries_waiting", waiting, models, "queries_waiting")
        in_flight = "Queries that the engine has."
        yield _gauge("headrace_serve_model_queries_in_flight", in_flight, models, "queries_in_flight")
        yield from _of_bounds([model for model in models if model.loaded])
        yield from _triton(models)

    def _by_protocol(self, model: ModelStatistics) -> list[tuple[str, ProtocolStatistics]]:
        return [(name, getattr(model, name)) for name in self._protocols]

    def _of_server(self) -> Iterator[Metric]:
        done = self._server.statistics()
        requests = CounterMetricFamily(
            "headrace_serve_requests",
            "Requests of every kind, by outcome; of a stream of gRPC, each message.",
            labels=("protocol", "outcome"),
        )
        replied = [one for one in OUTCOMES if one != "cancelled"]
        for protocol in self._protocols:
            _add_outcomes(requests, (protocol,), getattr(done, protocol), replied)
        yield requests
        accepted, closed = done.connections, done.connections - done.connections_open
        yield CounterMetricFamily("headrace_serve_connections_accepted", "Connections accepted.", value=accepted)
        yield CounterMetricFamily("headrace_serve_connections_closed", "Accepted connections that ended.", value=closed)
        yield CounterMetricFamily(
            "headrace_serve_connections_refused",
            "Connections closed because too many were open: those idle longest, or else new ones.",
            value=done.connections_refused,
        )
        yield GaugeMetricFamily("headrace_serve_connections_open", "Connections open.", value=done.connections_open)
        yield from _of_clients(done)
        yield GaugeMetricFamily(
            "headrace_serve_memory_bytes", "Memory used by requests and replies.", value=done.memory_bytes
        )
        yield GaugeMetricFamily(
            "headrace_serve_memory_limit_bytes",
            "Limit of the memory of requests and replies.",
            value=done.memory_limit_bytes,
        )

    def _of_device(self) -> Iterator[Metric]:
        try:
            memory = self._device.memory()
        except Error:  # a failed device does not report its memory
            return
        for name, means, value in (
            ("used", "Memory of the device in use, by any process.", memory.total_bytes - memory.free_bytes),
            ("limit", "Memory of the device.", memory.total_bytes),
        ):
            metric = GaugeMetricFamily(f"headrace_device_memory_{name}_bytes", means, labels=("device",))
            metric.add_metric((self._device.name,), value)
            yield metric


def _of_bounds(models: Sequence[ModelStatistics]) -> Iterator[Metric]:
    """What may change while the server runs, as it is now."""
    for attribute, unit, means in (
        ("share", "", "Share of the device that the engine has."),
        ("latency_max", "_seconds", "Bound on the latency of its queries; 0 if there is none."),
        ("in_flight_max", "", "Queries that the engine takes from each thread."),
        ("waiting_max", "", "Queries that may wait for slots of the engine, for each thread."),
    ):
        yield _gauge(f"headrace_serve_model_{attribute}{unit}", means, models, attribute)


def _of_priorities(models: Sequence[ModelStatistics]) -> Iterator[Metric]:
    """Outcomes of requests by priority, over HTTP and gRPC."""
    labels = (*_MODEL, "priority")
    requests = CounterMetricFamily(
        "headrace_serve_model_priority_requests",
        "Requests for inference over HTTP and gRPC, by priority and outcome.",
        labels=(*labels, "outcome"),
    )
    waiting = GaugeMetricFamily(
        "headrace_serve_model_priority_queries_waiting", "Queries that wait for a slot of the engine.", labels=labels
    )
    for model in models:
        for priority in PRIORITIES:
            counted = getattr(model, priority)
            _add_outcomes(requests, (model.name, model.version, priority), counted.requests, OUTCOMES)
            waiting.add_metric((model.name, model.version, priority), counted.queries_waiting)
    yield from (requests, waiting)


def _of_traces(tracing: "Tracing") -> Iterator[Metric]:
    """Destinations of request spans."""
    requests = CounterMetricFamily(
        "headrace_serve_traced_requests",
        "Requests of sampled traces, by where their spans went and whether they got there.",
        labels=("destination", "outcome"),
    )
    for destination, counts in tracing.counts.items():
        requests.add_metric((destination, "written"), counts.written)
        requests.add_metric((destination, "dropped"), counts.dropped)
    yield requests
    yield CounterMetricFamily(
        "headrace_serve_traces_dropped",
        "Requests of sampled traces that the server dropped, since too many waited to be written.",
        value=tracing.dropped_by_server,
    )


def _of_clients(done: ServerStatistics) -> Iterator[Metric]:
    """Requests without a valid token, and TLS handshakes if TLS is enabled."""
    yield CounterMetricFamily(
        "headrace_serve_unauthorized", "Requests without a token that the server accepts.", value=done.unauthorized
    )
    if done.certificate_ends == 0:
        return
    handshakes = CounterMetricFamily(
        "headrace_serve_tls_handshakes", "TLS handshakes, by outcome.", labels=("outcome",)
    )
    handshakes.add_metric(("done",), done.handshakes)
    handshakes.add_metric(("failed",), done.handshakes_failed)
    yield handshakes
    yield GaugeMetricFamily(
        "headrace_serve_tls_certificate_end_timestamp_seconds",
        "When the server's certificate expires, in seconds since 1970.",
        value=done.certificate_ends,
    )


def _add_outcomes(
    metric: CounterMetricFamily, labels: Sequence[str], counted: Outcomes, outcomes: Iterable[str]
) -> None:
    for outcome in outcomes:
        metric.add_metric((*labels, outcome), getattr(counted, outcome))


def _stages(protocol: str, done: ProtocolStatistics) -> list[tuple[str, DurationHistogram]]:
    """Histograms of the stages that the server observes for a protocol."""
    if protocol == "shm":  # starts when the engine takes a query
        return [("engine", done.durations)]
    return [(stage, getattr(done.stages, stage)) for stage in STAGES]


def _buckets(counted: DurationHistogram) -> list[tuple[str, float]]:
    """Prometheus buckets are cumulative, so the last one counts everything."""
    bounds = [*map(floatToGoString, counted.bounds), "+Inf"]
    return list(zip(bounds, accumulate(counted.counts), strict=True))


def _gauge(name: str, means: str, models: Iterable[ModelStatistics], attribute: str) -> Metric:
    metric = GaugeMetricFamily(name, means, labels=_MODEL)
    for model in models:
        metric.add_metric((model.name, model.version), getattr(model, attribute))
    return metric


def _triton(models: Sequence[ModelStatistics]) -> Iterator[Metric]:
    """Triton's metrics, over all protocols: counters without the ending _total, which the client library requires."""
    success = Metric("nv_inference_request_success", "Requests answered.", "unknown")
    count = Metric("nv_inference_count", "Queries of answered requests.", "unknown")
    duration = Metric("nv_inference_request_duration_us", "Microseconds that answered requests took.", "unknown")
    for model in models:
        labels = {"model": model.name, "version": model.version}
        every = (model.http, model.grpc, model.shm)
        success.add_sample(success.name, labels, sum(one.requests.answered for one in every))
        count.add_sample(count.name, labels, sum(one.queries.answered for one in every))
        seconds = sum(one.durations.sum for one in every)
        duration.add_sample(duration.name, labels, round(seconds * MICROSECONDS))
    yield from (success, count, duration)
