"""Traces of `headrace serve`: the options, and the writer that they configure."""

import ipaddress
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import SplitResult, urlsplit

import typer

from headrace.errors import UsageError
from headrace.text import printable

if TYPE_CHECKING:
    from headrace.serve_traces import Tracing
    from headrace.wire import Server

_PATH = "/v1/traces"  # path of OTLP over HTTP
_FORM = "http://127.0.0.1:4318/v1/traces"


def _collector(text: str) -> SplitResult:
    """Parses the URL of a collector. Raises UsageError for a malformed URL, or one of another machine."""
    shown = f"--trace-collector {printable(text)}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{shown}: {error}; a collector is {_FORM}") from None
    if parts.scheme != "http" or not parts.hostname or port is None or parts.query or parts.fragment:
        raise UsageError(f"{shown} is not of the form {_FORM}")
    if parts.username is not None or not _is_loopback(parts.hostname):
        raise UsageError(
            f"{shown}: traces are sent without TLS and only to this machine: use {_FORM}, and let a "
            "collector forward them"
        )
    return parts._replace(path=parts.path if parts.path not in {"", "/"} else _PATH)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Traces:
    """Traces of requests whose callers sample one (traceparent)."""

    trace_file: Annotated[
        Path | None,
        typer.Option(
            "--trace-file",
            metavar="FILE",
            help="Append the spans of sampled requests (traceparent) to a file, as lines of OTLP JSON.",
        ),
    ] = None
    trace_collector: Annotated[
        str | None,
        typer.Option(
            "--trace-collector",
            metavar="URL",
            help=f"Send the spans of sampled requests (traceparent) to a collector on this machine, such as {_FORM}.",
        ),
    ] = None

    @property
    def kept(self) -> int:
        """Number of requests that the server keeps, `traces_max` of headrace.wire.Server."""
        from headrace.serve_traces import KEPT  # noqa: PLC0415 - few servers trace

        self._where()
        return 0 if self.trace_file is None and self.trace_collector is None else KEPT

    def start(self, server: "Server", stack: ExitStack) -> "Tracing | None":
        """Writes the spans of a server's requests until `stack` ends; returns None if that was not requested."""
        from headrace.serve_traces import Tracing  # noqa: PLC0415 - as above

        if self.trace_file is None and self.trace_collector is None:
            return None
        tracing = Tracing(server, self.trace_file, self._where())
        stack.callback(tracing.close)
        return tracing

    def _where(self) -> SplitResult | None:
        return None if self.trace_collector is None else _collector(self.trace_collector)
