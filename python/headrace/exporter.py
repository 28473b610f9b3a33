"""Exports metrics to Prometheus, over HTTP or through the node exporter's textfile collector."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from headrace import outputs
from headrace.errors import SystemError, UsageError  # noqa: A004
from headrace.metrics_server import MetricsServer

FILE_SECONDS = 5.0
"""Interval at which a file is written."""

_PORT_MOST = 65535


class Exporter:
    """Exports metrics to Prometheus.

    Args:
        target: "9100" (this machine only) or "0.0.0.0:9100", a port to answer HTTP on; or "headrace.prom", a file of
            the textfile collector, which requires that ending.
        collectors: called for each answer, from any thread.

    Raises:
        UsageError: for a target that is neither.
        SystemError: for a port that is in use or not allowed, or a file that cannot be written.
    """

    def __init__(self, target: str, *collectors: Collector) -> None:
        self._registry = CollectorRegistry()
        for collector in collectors:
            self._registry.register(collector)
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
            raise UsageError(
                f"'{target}' is neither a port, such as 9100 or 0.0.0.0:9100, nor a file that ends in .prom"
            )

    def write(self) -> None:
        """Replaces the file atomically; does nothing for a port."""
        if self._file is None:
            return
        outputs.write(self._file, generate_latest(self._registry))

    def close(self) -> None:
        """Writes the final figures, or stops answering."""
        self.write()
        if self._server is not None:
            self._server.close()
            self._server = None
