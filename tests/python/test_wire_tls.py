"""A server with TLS: independent clients, versions and protocols, large bodies, and data that is not TLS."""

import asyncio
import contextlib
import json
import random
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import _core, base

if not base.built_with_tls:
    pytest.skip("built without OpenSSL", allow_module_level=True)
if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import certificates
import http2_frames as h2
import tritonclient.grpc as triton_grpc
import tritonclient.grpc.aio as triton_grpc_aio
import tritonclient.http as triton_http
import tritonclient.http.aio as triton_http_aio
from wire_serving import SECONDS, Replies, request, serving, third

from headrace import wire

if certificates.PROGRAM is None:
    pytest.skip("there is no openssl command", allow_module_level=True)

LIVE = request("/v2/health/live")
WIDE = 1024  # numbers in a query: 8 KiB, so that 1,024 queries are 8 MiB


@headrace.operator(query=[("x", "f8", (WIDE,))], answer=[("y", "f8", (WIDE,))])
def halves(_group, query, answer):
    """Half of each number, which is exact."""
    for i in range(WIDE):
        answer.y[i] = query.x[i] / 2


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> certificates.Authority:
    return certificates.Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def own(authority: certificates.Authority) -> certificates.Certificate:
    return authority.issue("server")


@contextlib.contextmanager
def secured(own: certificates.Certificate, *operators: headrace.Operator, **options: Any) -> Iterator[wire.Server]:
    """A server with TLS at free ports."""
    options = {"grpc_port": 0, "tls_certificate": own.file, "tls_key": own.key, **options}
    with serving(*(operators or (third(),)), **options) as (server, _):
        yield server


@contextlib.contextmanager
def spoken(server: wire.Server, context: ssl.SSLContext, *, grpc: bool = False) -> Iterator[ssl.SSLSocket]:
    """A TLS connection. An end that the server does not announce is an error."""
    port = server.grpc_port if grpc else server.http_port
    with (
        socket.create_connection(("127.0.0.1", port or 0), timeout=SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as peer,
    ):
        yield peer


class HandMade:
    """TLS whose records a test can see and change before they are sent."""

    def __init__(self, server: wire.Server, context: ssl.SSLContext) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.http_port), timeout=SECONDS)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")

    def greet(self) -> None:
        """Does the handshake."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.socket.sendall(self._out.read())
                self._in.write(self.socket.recv(1 << 16))
            else:
                return self.socket.sendall(self._out.read())

    def records(self, content: bytes) -> bytes:
        """The bytes that would be sent over the network."""
        self._tls.write(content)
        return self._out.read()

    def ended(self) -> bool:
        """Waits until the server closes the connection, and returns whether it does."""
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(1 << 16):
                pass
        self.socket.close()
        return True


def assert_answers(server: wire.Server, context: ssl.SSLContext) -> None:
    with spoken(server, context) as peer:
        peer.sendall(LIVE)
        assert Replies(peer).next().status == 200


def wait_until(done: Any) -> None:
    end = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < end
        time.sleep(0.005)


def triton_options(authority: certificates.Authority, own: certificates.Certificate | None = None) -> dict[str, Any]:
    """Arguments for tritonclient.grpc, also aio."""
    more = {} if own is None else {"private_key": str(own.key), "certificate_chain": str(own.file)}
    return {"ssl": True, "root_certificates": str(authority.file), **more}


def http_client(
    server: wire.Server, authority: certificates.Authority, own: certificates.Certificate | None = None
) -> Any:
    files = {} if own is None else {"certfile": str(own.file), "keyfile": str(own.key)}
    return triton_http.InferenceServerClient(
        f"localhost:{server.http_port}",
        ssl=True,
        ssl_options={"ca_certs": str(authority.file), **files},
        network_timeout=SECONDS,
        connection_timeout=SECONDS,
    )


def numbers(queries: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((queries, WIDE))


def tensor(module: Any, values: np.ndarray[Any, Any]) -> Any:
    return module.InferInput("x", list(values.shape), "FP64").set_data_from_numpy(values)


@pytest.mark.parametrize("mutual", [False, True], ids=["tls", "mutual"])
def test_clients_of_triton_get_the_bytes_that_they_get_without_tls(
    authority: certificates.Authority, own: certificates.Certificate, mutual: bool
):
    shown = authority.issue("client") if mutual else None
    values = numbers(64)
    found: list[np.ndarray[Any, Any]] = []

    async def ask(server: wire.Server) -> None:
        grpc = triton_grpc_aio.InferenceServerClient(
            f"localhost:{server.grpc_port}", **triton_options(authority, shown)
        )
        http = triton_http_aio.InferenceServerClient(
            f"localhost:{server.http_port}", ssl=True, ssl_context=authority.context(shown)
        )
        for client, module in ((grpc, triton_grpc), (http, triton_http)):
            found.append((await client.infer("halves", [tensor(module, values)])).as_numpy("y"))
            await client.close()

    with secured(own, halves(), tls_clients=authority.file if mutual else None) as server:
        options = triton_options(authority, shown)
        with triton_grpc.InferenceServerClient(f"localhost:{server.grpc_port}", **options) as client:
            assert client.is_server_ready()
            found.append(client.infer("halves", [tensor(triton_grpc, values)]).as_numpy("y"))
        http = http_client(server, authority, shown)
        assert http.is_server_ready()
        found.append(http.infer("halves", [tensor(triton_http, values)]).as_numpy("y"))
        http.close()
        asyncio.run(ask(server))
        assert server.statistics().handshakes_failed == 0
    with serving(halves()) as (plain, _):
        client = triton_http.InferenceServerClient(f"127.0.0.1:{plain.http_port}", network_timeout=SECONDS)
        expected = client.infer("halves", [tensor(triton_http, values)]).as_numpy("y")
        client.close()
    assert np.array_equal(expected, values / 2)
    assert len(found) == 4
    for one in found:
        assert one.tobytes() == expected.tobytes()


def test_eight_mebibytes_go_both_ways_over_both_protocols(
    authority: certificates.Authority, own: certificates.Certificate
):
    values = numbers(1024)
    with secured(own, halves()) as server:
        address = f"localhost:{server.grpc_port}"
        with triton_grpc.InferenceServerClient(address, **triton_options(authority)) as client:
            for _ in range(3):
                got = client.infer("halves", [tensor(triton_grpc, values)]).as_numpy("y")
                assert np.array_equal(got, values / 2)
        http = http_client(server, authority)
        for _ in range(3):
            assert np.array_equal(http.infer("halves", [tensor(triton_http, values)]).as_numpy("y"), values / 2)
        http.close()


def binary(values: np.ndarray[Any, Any]) -> bytes:
    """A request with a binary tensor that asks for a binary answer."""
    described = {"name": "x", "datatype": "FP64", "shape": list(values.shape)}
    described["parameters"] = {"binary_data_size": values.nbytes}
    head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [described]}).encode()
    headers = f"Inference-Header-Content-Length: {len(head)}\r\n"
    return request("/v2/models/halves/infer", head + values.tobytes(), headers=headers)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_pipelined_requests_whose_replies_are_read_late_come_whole_and_in_order(
    authority: certificates.Authority, own: certificates.Certificate, version: ssl.TLSVersion
):
    """The server runs out of room in the middle of a record, and later continues there."""
    context = authority.context()
    context.minimum_version = context.maximum_version = version
    parts = [numbers(512, seed) for seed in range(4)]  # 4 MiB each, with equally large replies
    content = b"".join(binary(part) for part in parts)
    with secured(own, halves()) as server, spoken(server, context) as peer:
        assert peer.version() == version.name.replace("v1_", "v1.")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        sender = threading.Thread(target=peer.sendall, args=(content,))
        sender.start()
        wait_until(lambda: server.statistics().requests == 1)  # and its reply finds no room
        replies = Replies(peer)
        got = [replies.next() for _ in parts]
        sender.join()
    for part, reply in zip(parts, got, strict=True):
        assert reply.status == 200, reply
        head = int(reply.headers["inference-header-content-length"])
        assert np.array_equal(np.frombuffer(reply.body[head:]).reshape(part.shape), part / 2)


def test_a_request_may_come_byte_by_byte_each_in_its_record(
    authority: certificates.Authority, own: certificates.Certificate
):
    with secured(own) as server, spoken(server, authority.context()) as peer:
        for byte in LIVE + LIVE:
            peer.sendall(bytes([byte]))
        replies = Replies(peer)
        assert [replies.next().status for _ in range(2)] == [200, 200]


def test_the_end_of_a_connection_is_announced(authority: certificates.Authority, own: certificates.Certificate):
    """A client can distinguish an end from a reply that was cut short."""
    with secured(own) as server, spoken(server, authority.context()) as peer:
        peer.sendall(request("/v2/health/live", headers="Connection: close\r\n"))
        replies = Replies(peer)
        assert replies.next().headers["connection"] == "close"
        assert replies.ended()
    with secured(own, idle_max=0.3) as server, spoken(server, authority.context()) as peer:
        assert peer.recv(1) == b""  # idle for too long; spoken() makes an unannounced end an error


def test_draining_ends_connections_once_they_are_answered(
    authority: certificates.Authority, own: certificates.Certificate
):
    with secured(own) as server, contextlib.ExitStack() as stack:
        idle = stack.enter_context(spoken(server, authority.context()))
        idle.sendall(LIVE)
        assert Replies(idle).next().status == 200
        address = f"localhost:{server.grpc_port}"
        client = stack.enter_context(triton_grpc.InferenceServerClient(address, **triton_options(authority)))
        assert client.is_server_live()
        half = stack.enter_context(socket.create_connection(("127.0.0.1", server.http_port), timeout=SECONDS))
        assert server.drain(SECONDS)
        assert idle.recv(1) == b""
        assert half.recv(1) == b""


def s_client(port: int | None, *arguments: object, typed: bytes = b"") -> tuple[int, str]:
    """The status of `openssl s_client`, and its output."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *map(str, arguments)],
        input=typed,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def test_versions_and_ciphers(authority: certificates.Authority, own: certificates.Certificate):
    with secured(own) as server:
        for option, works in (("-tls1", False), ("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)):
            low = ("-cipher", "ALL:@SECLEVEL=0") if not works else ()
            status, said = s_client(server.http_port, option, *low, "-CAfile", authority.file, "-verify_return_error")
            assert (status == 0) == works, (option, said)
            assert not works or "Compression: NONE" in said
        status, said = s_client(server.http_port, "-tls1_2", "-cipher", "AES128-SHA:ECDHE-ECDSA-AES128-SHA")
        assert status != 0, said  # neither without forward secrecy nor without authenticated encryption
        assert_answers(server, authority.context())


def test_protocols_are_agreed_by_alpn(own: certificates.Certificate):
    with secured(own) as server:
        for grpc, offered, agreed in (
            (False, "h2,http/1.1", "http/1.1"),
            (True, "http/1.1,h2", "h2"),
            (True, "h2", "h2"),
            (False, "http/1.1", "http/1.1"),
        ):
            port = server.grpc_port if grpc else server.http_port
            assert f"ALPN protocol: {agreed}" in s_client(port, "-alpn", offered)[1]
        for port, offered in ((server.http_port, "h2"), (server.grpc_port, "http/1.1"), (server.http_port, "ftp")):
            status, said = s_client(port, "-alpn", offered)
            assert status != 0
            assert "no application protocol" in said
        status, said = s_client(server.http_port)
        assert status == 0
        assert "No ALPN negotiated" in said


def test_a_client_does_not_renegotiate(own: certificates.Certificate):
    with secured(own) as server:
        _, said = s_client(server.http_port, "-tls1_2", "-crlf", typed=b"R\nGET /v2/health/live HTTP/1.1\nHost: a\n\n")
    assert "no renegotiation" in said
    assert "HTTP/1.1 200" not in said


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_sessions_are_resumed_also_with_certificates_of_clients(
    authority: certificates.Authority, own: certificates.Certificate, tmp_path: Path, version: str
):
    shown = authority.issue("client")
    mine = ("-cert", shown.file, "-key", shown.key, "-CAfile", authority.file)
    kept = tmp_path / "session"
    asked = b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with secured(own, tls_clients=authority.file) as server:
        ask = ("-ign_eof", version, *mine)
        first = s_client(server.http_port, *ask, "-sess_out", kept, typed=asked)[1]
        again = s_client(server.http_port, *ask, "-sess_in", kept, typed=asked)[1]
        assert "HTTP/1.1 200" in first
        assert "HTTP/1.1 200" in again
        assert "New, TLS" in first
        assert "Reused, TLS" in again
        # Reloading the files invalidates sessions of the previous ones.
        server.reload_credentials()
        later = s_client(server.http_port, *ask, "-sess_in", kept, typed=asked)[1]
        assert "HTTP/1.1 200" in later
        assert "Reused, TLS" not in later


def curl(*arguments: object) -> tuple[int, str]:
    """curl's status, and its output of headers and body."""
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--include", "--max-time", str(SECONDS), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_curl_asks_with_and_without_a_certificate(
    authority: certificates.Authority, own: certificates.Certificate, tmp_path: Path
):
    with secured(own) as server:
        url = f"https://localhost:{server.http_port}/v2/models/third"
        assert "HTTP/1.1 200 OK" in curl("--cacert", authority.file, url)[1]
        assert "HTTP/1.1 200 OK" in curl("--http2", "--cacert", authority.file, url)[1]
        # A gRPC port speaks HTTP/2 to every client, and says that this is not a call.
        grpc = f"https://localhost:{server.grpc_port}/"
        assert "HTTP/2 405" in curl("--http2", "--cacert", authority.file, grpc)[1]
        assert curl(url)[0] == 60  # curl trusts no authority for it
        elsewhere = ("--resolve", f"elsewhere:{server.http_port}:127.0.0.1", url.replace("localhost", "elsewhere"))
        assert curl("--cacert", authority.file, *elsewhere)[0] == 60  # it is for another host
    shown, strange = authority.issue("curl"), certificates.Authority(tmp_path, "strange").issue("curl")
    with secured(own, tls_clients=authority.file) as server:
        url = f"https://localhost:{server.http_port}/v2/models/third"
        mine = ("--cert", shown.file, "--key", shown.key)
        assert "HTTP/1.1 200 OK" in curl("--cacert", authority.file, *mine, url)[1]
        assert curl("--cacert", authority.file, url)[0] != 0
        assert curl("--cacert", authority.file, "--cert", strange.file, "--key", strange.key, url)[0] != 0


def refused_for(server: wire.Server, context: ssl.SSLContext, *, grpc: bool = False) -> str:
    """Why the server ended a connection, as its client sees it."""
    try:
        with spoken(server, context, grpc=grpc) as peer:
            peer.sendall(LIVE)
            peer.recv(1)  # in TLS 1.3 a client finishes before the server has checked it
    except ssl.SSLError as refused:
        return str(refused)
    raise AssertionError("the server took it")


def test_clients_without_the_right_certificate_are_refused_and_others_answered(
    authority: certificates.Authority, own: certificates.Certificate, tmp_path: Path
):
    shown, ended = authority.issue("client"), authority.issue("late", days=-1)
    strange = certificates.Authority(tmp_path, "strange").issue("client")
    with secured(own, tls_clients=authority.file) as server:
        for grpc in (False, True):
            for given, client_hears, server_says in (
                (None, "CERTIFICATE_REQUIRED", "peer did not return a certificate"),
                (ended, "EXPIRED", "certificate has expired"),
                (strange, "UNKNOWN_CA", "unable to get local issuer certificate"),
            ):
                before = server.statistics().handshakes_failed
                heard = refused_for(server, authority.context(given), grpc=grpc)
                assert client_hears in heard.upper().replace(" ", "_"), heard
                wait_until(lambda failed=before + 1: server.statistics().handshakes_failed == failed)
                wait_until(lambda says=server_says: server.statistics().handshake_failure == says)
        assert_answers(server, authority.context(shown))
        assert server.statistics().requests == 1
        address = f"localhost:{server.grpc_port}"
        client = triton_grpc.InferenceServerClient(address, **triton_options(authority))
        with client, pytest.raises(triton_grpc.InferenceServerException, match="UNAVAILABLE"):
            client.is_server_live(client_timeout=SECONDS)


def test_what_is_no_tls_is_refused_and_others_answered(
    authority: certificates.Authority, own: certificates.Certificate
):
    with secured(own) as server:
        for port in (server.http_port, server.grpc_port):
            with socket.create_connection(("127.0.0.1", port or 0), timeout=SECONDS) as peer:
                peer.sendall(LIVE)
                replies = Replies(peer)
                reply = replies.next()
                assert (reply.status, json.loads(reply.body)["error"]) == (400, "this port speaks TLS: ask by https://")
                assert replies.ended()
            for content in (
                h2.PREFACE,
                b"\0" * 1000,
                b"\x16\x03\x01\x00\x05abcde",
                b"\x16\x03\x01\xff\xff" + b"a" * 70_000,
            ):
                peer = socket.create_connection(("127.0.0.1", port or 0), timeout=SECONDS)
                with peer, contextlib.suppress(ConnectionError):
                    peer.sendall(content)
                    while peer.recv(4096):
                        pass  # an alert with the reason
        stats = server.statistics()
        assert (stats.handshakes, stats.handshakes_failed, stats.requests) == (0, 10, 0)
        assert_answers(server, authority.context())
    with serving(third(), grpc_port=0) as (plain, _):
        for port in (plain.http_port, plain.grpc_port):
            assert s_client(port)[0] != 0


def test_who_only_tries_whether_a_port_is_open_is_no_handshake_that_failed(own: certificates.Certificate):
    with secured(own) as server:
        for port in (server.http_port, server.grpc_port):
            socket.create_connection(("127.0.0.1", port or 0), timeout=SECONDS).close()
        wait_until(lambda: server.statistics().connections == 2 and server.statistics().connections_open == 0)
        assert server.statistics().handshakes_failed == 0


def test_records_that_are_changed_cut_or_followed_by_others_end_their_connection_alone(
    authority: certificates.Authority, own: certificates.Certificate
):
    draw = random.Random(11)
    with secured(own) as server, spoken(server, authority.context()) as other:
        replies = Replies(other)
        for _ in range(40):
            peer = HandMade(server, authority.context())
            peer.greet()
            record = bytearray(peer.records(LIVE))
            kind = draw.choice(("flipped", "cut", "garbage", "plain", "too long"))
            if kind == "flipped":
                record[draw.randrange(5, len(record))] ^= 1 << draw.randrange(8)
            elif kind == "cut":
                del record[draw.randrange(1, len(record)) :]
            elif kind == "garbage":
                record += draw.randbytes(draw.randrange(5, 2000))
            elif kind == "plain":
                record = bytearray(LIVE)
            else:
                record = bytearray(b"\x17\x03\x03" + struct.pack(">H", 1 << 15) + bytes(1 << 15))
            with contextlib.suppress(OSError):  # the server may already have closed it
                peer.socket.sendall(record)
                peer.socket.shutdown(socket.SHUT_WR)
            assert peer.ended(), kind
            other.sendall(LIVE)
            assert replies.next().status == 200
        assert server.statistics().handshakes_failed == 0


def test_a_handshake_that_does_not_end_is_cut_in_time_and_others_go_on(
    authority: certificates.Authority, own: certificates.Certificate
):
    with secured(own, request_max=0.5) as server, contextlib.ExitStack() as stack:
        began = time.monotonic()
        slow = []
        for port in (server.http_port, server.grpc_port):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", port or 0), timeout=SECONDS))
            peer.sendall(b"\x16\x03\x01")
            slow.append(peer)
        assert_answers(server, authority.context())
        with contextlib.suppress(ConnectionError):  # an occasional byte does not keep it open
            while time.monotonic() - began < SECONDS:
                slow[0].sendall(b"\x02")
                time.sleep(0.05)
        for peer in slow:
            with contextlib.suppress(ConnectionError):
                while peer.recv(100):
                    pass
        assert time.monotonic() - began >= 0.5
        wait_until(lambda: server.statistics().handshakes_failed == 2)


def test_silent_handshakes_give_way_to_clients_that_ask(
    authority: certificates.Authority, own: certificates.Certificate
):
    with secured(own, connections_max=20) as server, contextlib.ExitStack() as stack:
        for _ in range(200):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", server.http_port), timeout=SECONDS))
            peer.sendall(b"\x16\x03\x01\x02")
        for _ in range(20):
            assert_answers(server, authority.context())
        assert server.statistics().connections_open <= 20


def test_two_hundred_connections_ask_at_the_same_time(authority: certificates.Authority, own: certificates.Certificate):
    context = authority.context()
    with secured(own, threads=2, plan=headrace.Plan(clients_max=2)) as server, contextlib.ExitStack() as stack:
        peers = [stack.enter_context(spoken(server, context)) for _ in range(200)]
        for _ in range(3):
            for peer in peers:
                peer.sendall(LIVE * 5)
            for peer in peers:
                replies = Replies(peer)
                assert [replies.next().status for _ in range(5)] == [200] * 5
        assert server.statistics().handshakes == 200
        assert server.statistics().connections_open == 200


def test_frames_of_http2_come_over_tls(authority: certificates.Authority, own: certificates.Certificate):
    context = authority.context(protocol="h2")
    with secured(own) as server, spoken(server, context, grpc=True) as peer:
        assert peer.selected_alpn_protocol() == "h2"
        peer.sendall(h2.PREFACE + h2.frame(h2.SETTINGS, 0, 0) + h2.call(1))
        come = b""
        while b"grpc-status" not in come and b"\0\0\0\0\2\x08\1" not in come:
            more = peer.recv(4096)
            assert more
            come += more


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tls_certificate": "OWN"}, "needs both a certificate and its key"),
        ({"tls_key": "KEY"}, "needs both a certificate and its key"),
        ({"tls_clients": "CA"}, "need TLS"),
        ({"tls_certificate": "absent.pem", "tls_key": "KEY"}, "reading absent.pem: No such file"),
        ({"tls_certificate": "OWN", "tls_key": "absent.pem"}, "reading absent.pem: No such file"),
        ({"tls_certificate": "KEY", "tls_key": "KEY"}, "not a PEM certificate"),
        ({"tls_certificate": "OWN", "tls_key": "OWN"}, "not an unencrypted PEM key"),
        ({"tls_certificate": "OWN", "tls_key": "OTHER"}, "key values mismatch"),
        ({"tls_certificate": "OWN", "tls_key": "LOCKED"}, "not an unencrypted PEM key for this certificate"),
        ({"tls_certificate": "OWN", "tls_key": "KEY", "tls_clients": "KEY"}, "no PEM certificates"),
    ],
)
def test_files_that_will_not_do_are_named(
    authority: certificates.Authority,
    own: certificates.Certificate,
    tmp_path: Path,
    options: dict[str, str],
    says: str,
):
    locked = tmp_path / "locked.key"
    hide = ["openssl", "pkcs8", "-topk8", "-in", own.key, "-out", locked, "-passout", "pass:secret"]
    subprocess.run(hide, check=True)
    files = {"OWN": own.file, "KEY": own.key, "CA": authority.file, "OTHER": authority.issue("other").key}
    given = {name: files.get(value, locked if value == "LOCKED" else value) for name, value in options.items()}
    with pytest.raises(headrace.Error) as refused, serving(third(), **given):
        pass
    assert says in str(refused.value)
