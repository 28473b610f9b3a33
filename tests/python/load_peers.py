"""Servers of the Open Inference Protocol over HTTP and gRPC, whose answers a test controls."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

INPUTS = [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]


class HttpPeer(ThreadingHTTPServer):
    """Describes a model `fake`, and answers request `i` as `answer(i, head, tensors)` says.

    A status, or None to close the connection without a reply.
    """

    daemon_threads = True
    request_queue_size = 1024

    def __init__(
        self, answer: Callable[[int, dict[str, Any], bytes], int | None], inputs: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.inputs = INPUTS if inputs is None else inputs
        self.lock = threading.Lock()
        self.asked = 0

    @property
    def url(self) -> str:
        """The model's URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/fake"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores errors: a load that ends may close connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: HttpPeer

    def do_GET(self) -> None:
        """Describes the model."""
        known = self.path == "/v2/models/fake"
        self._reply(200 if known else 404, {"name": "fake", "inputs": self.server.inputs} if known else {"error": "no"})

    def do_POST(self) -> None:
        """Answers."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        split = int(self.headers["Inference-Header-Content-Length"])
        with self.server.lock:
            index = self.server.asked
            self.server.asked += 1
        status = self.server.answer(index, json.loads(body[:split]), body[split:])
        if status is None:
            self.close_connection = True
        else:
            self._reply(status, {"outputs": []} if status == 200 else {"error": f"as the test says: {status}"})

    def _reply(self, status: int, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        head = f"HTTP/1.1 {status} Reason\r\nContent-Length: {len(text)}\r\n\r\n".encode()
        self.wfile.write(head + text)  # sent in one piece


@contextmanager
def http_peer(
    answer: Callable[[int, dict[str, Any], bytes], int | None], inputs: list[dict[str, Any]] | None = None
) -> Iterator[HttpPeer]:
    """The server, running in threads."""
    with HttpPeer(answer, inputs) as peer:
        thread = threading.Thread(target=peer.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield peer
        finally:
            peer.shutdown()
            thread.join()


class GrpcPeer(service_pb2_grpc.GRPCInferenceServiceServicer):
    """The same over gRPC with the gRPC library: `answer(i, request, context)` returns a status code."""

    def __init__(self, answer: Callable[[int, Any, Any], grpc.StatusCode]) -> None:
        self.answer = answer
        self.lock = threading.Lock()
        self.asked = 0
        self.url = ""

    def ModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's names
        """Describes the model."""
        if request.name != "fake":
            context.abort(grpc.StatusCode.NOT_FOUND, "no such model")
        reply = service_pb2.ModelMetadataResponse(name="fake")
        for one in INPUTS:
            reply.inputs.add(name=one["name"], datatype=one["datatype"], shape=one["shape"])
        return reply

    def ModelInfer(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Answers."""
        with self.lock:
            index = self.asked
            self.asked += 1
        status = self.answer(index, request, context)
        if status is not grpc.StatusCode.OK:
            context.abort(status, f"as the test says: 100% {status.name}")
        return service_pb2.ModelInferResponse(model_name="fake")


@contextmanager
def grpc_peer(answer: Callable[[int, Any, Any], grpc.StatusCode]) -> Iterator[GrpcPeer]:
    """The server, running in threads."""
    peer = GrpcPeer(answer)
    server = grpc.server(ThreadPoolExecutor(8))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(peer, server)
    peer.url = f"grpc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}/fake"
    server.start()
    try:
        yield peer
    finally:
        server.stop(0).wait()
