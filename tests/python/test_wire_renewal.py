"""Certificates and tokens that are renewed while a server runs, also under supervision and after a restart."""

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace import _core, base

if not base.built_with_tls:
    pytest.skip("built without OpenSSL", allow_module_level=True)
if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import certificates
import tritonclient.grpc as triton_grpc
from test_serve_supervised import free_port
from test_wire_command import command
from test_wire_tls import assert_answers, http_client, secured, spoken, triton_options
from wire_serving import SECONDS, Replies, request

if certificates.PROGRAM is None:
    pytest.skip("there is no openssl command", allow_module_level=True)

TOKEN = "0123456789abcdef-token"
HEADER = {"authorization": f"Bearer {TOKEN}"}
GET = request("/v2/models/light", headers=f"Authorization: Bearer {TOKEN}\r\n")


@pytest.fixture
def authority(tmp_path: Path) -> certificates.Authority:
    return certificates.Authority(tmp_path)


@pytest.fixture
def own(authority: certificates.Authority) -> certificates.Certificate:
    return authority.issue("server")


def put(new: certificates.Certificate, own: certificates.Certificate) -> None:
    """Replaces a certificate in the way of renewal tools: each file is complete at any time."""
    for source, at in ((new.key, own.key), (new.file, own.file)):
        shutil.copy(source, f"{at}.new")
        Path(f"{at}.new").replace(at)


@contextlib.contextmanager
def connected(port: int, context: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    """A TLS connection to a server in another process."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as peer,
    ):
        yield peer


def serial(port: int, context: ssl.SSLContext) -> str:
    """The serial number of the certificate that a server shows to a new connection."""
    with connected(port, context) as peer:
        return str((peer.getpeercert() or {})["serialNumber"])


def wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_renewed_certificate_is_shown_to_new_connections_and_old_ones_stay(
    authority: certificates.Authority, own: certificates.Certificate
):
    context = authority.context()
    with secured(own) as server, spoken(server, context) as before:
        first = serial(server.http_port, context)
        ends = server.statistics().certificate_ends
        put(authority.issue("renewed", days=60), own)
        assert serial(server.http_port, context) == first  # no reload was requested
        server.reload_credentials()
        assert serial(server.http_port, context) != first
        assert serial(server.grpc_port or 0, context) != first
        assert server.statistics().certificate_ends > ends + 20 * 24 * 3600
        before.sendall(request("/v2/health/live"))
        assert Replies(before).next().status == 200


def test_files_that_will_not_do_leave_the_former_ones(authority: certificates.Authority, own: certificates.Certificate):
    context = authority.context()
    with secured(own) as server:
        first = serial(server.http_port, context)
        other = authority.issue("other")
        shutil.copy(other.file, own.file)  # half of a renewal: the key is still the previous one
        with pytest.raises(headrace.UsageError, match="key values mismatch"):
            server.reload_credentials()
        own.file.write_text("nothing")
        with pytest.raises(headrace.UsageError, match="not a PEM certificate"):
            server.reload_credentials()
        own.file.unlink()
        with pytest.raises(headrace.Error, match="No such file"):
            server.reload_credentials()
        assert serial(server.http_port, context) == first
        assert_answers(server, context)


def test_authorities_of_clients_are_read_again(
    authority: certificates.Authority, own: certificates.Certificate, tmp_path: Path
):
    later = certificates.Authority(tmp_path, "later")
    trusted = tmp_path / "trusted.pem"
    shutil.copy(authority.file, trusted)
    mine, theirs = authority.issue("mine"), later.issue("theirs")
    with secured(own, tls_clients=trusted) as server:
        assert_answers(server, authority.context(mine))
        shutil.copy(later.file, trusted)
        server.reload_credentials()
        assert_answers(server, authority.context(theirs))
        with pytest.raises(ssl.SSLError):
            assert_answers(server, authority.context(mine))


class Clients:
    """Triton clients that ask all the time, over persistent and over new connections."""

    def __init__(self, http: int, grpc: int, authority: certificates.Authority) -> None:
        self.failed: list[str] = []
        self.answered = [0] * 3
        self._over = threading.Event()
        self._addresses = (http, grpc)
        self._authority = authority
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(len(self.answered))]

    def __enter__(self) -> "Clients":
        """Starts the clients."""
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the clients."""
        self._over.set()
        for one in self._threads:
            one.join()

    def _run(self, which: int) -> None:
        while not self._over.is_set():
            try:
                (self._by_grpc, self._by_new_grpc, self._by_http)[which](which)
            except Exception as error:
                self.failed.append(repr(error))
                return

    def _ask(self, client: triton_grpc.InferenceServerClient, which: int) -> None:
        query = triton_grpc.InferInput("query", [1, 256], "UINT32").set_data_from_numpy(np.ones((1, 256), np.uint32))
        assert client.infer("light", [query], headers=dict(HEADER), client_timeout=SECONDS).as_numpy("answer").size == 8
        self.answered[which] += 1

    def _by_grpc(self, which: int) -> None:
        with triton_grpc.InferenceServerClient(
            f"localhost:{self._addresses[1]}", **triton_options(self._authority)
        ) as client:
            while not self._over.is_set():
                self._ask(client, which)

    def _by_new_grpc(self, which: int) -> None:
        # gRPC shares a connection among channels with the same options, which must not happen here.
        options = [("grpc.use_local_subchannel_pool", 1)]
        address = f"localhost:{self._addresses[1]}"
        with triton_grpc.InferenceServerClient(
            address, **triton_options(self._authority), channel_args=options
        ) as client:
            self._ask(client, which)

    def _by_http(self, which: int) -> None:
        with connected(self._addresses[0], self._authority.context()) as peer:
            replies = Replies(peer)
            for _ in range(5):
                peer.sendall(GET)
                assert replies.next().status == 200
                self.answered[which] += 1


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_no_request_fails_while_certificates_and_tokens_are_renewed(
    authority: certificates.Authority, own: certificates.Certificate, tmp_path: Path
):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    options = ("--tls-certificate", own.file, "--tls-key", own.key, "--token-file", tokens, "--log", "json")
    pair = [authority.issue("one"), authority.issue("two")]
    with command("light", *options) as (process, said):
        assert said["url"].startswith("https://")
        http, grpc = port_of(said["url"]), port_of(said["grpc"])
        last = serial(http, authority.context())
        shown = {last}
        with Clients(http, grpc, authority) as clients:
            for i in range(20):
                put(pair[i % 2], own)
                (tmp_path / "new").write_text(f"{TOKEN} round {i}\n")
                (tmp_path / "new").replace(tokens)
                process.send_signal(signal.SIGHUP)
                before = sum(clients.answered)
                wait_until(lambda: sum(clients.answered) > before + 5 or bool(clients.failed))  # noqa: B023
                # Signals that arrive while one is handled are merged, so the next one waits until this one is done.
                wait_until(lambda: serial(http, authority.context()) != last)  # noqa: B023
                last = serial(http, authority.context())
                shown.add(last)
        assert clients.failed == []
        assert min(clients.answered) > 0
        assert len(shown) == 3
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert events.count("credentials_read") > 5  # some find half of a renewal, and keep the previous files
    assert "handshakes_failed" not in events
    assert TOKEN not in err
    assert json.loads(out)["failed"] == 0


@contextlib.contextmanager
def supervised(*options: object) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A supervised server, and its port."""
    port = free_port()
    command = ["serve", "light", "--http", port, "--grpc", "none", "--device", "cpu", "--json", "--supervise", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, port
    finally:
        process.kill()
        process.communicate()


def worker_of(process: "subprocess.Popen[str]") -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: bool(children.read_text().split()))
    return int(children.read_text().split()[0])


def ask(port: int, context: ssl.SSLContext) -> int | None:
    """The status of a request; None without an answer."""
    try:
        with connected(port, context) as peer:
            peer.sendall(GET)
            return Replies(peer).next().status
    except (OSError, AssertionError):
        return None


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_a_watched_server_asks_for_certificates_and_tokens_and_is_started_again(
    authority: certificates.Authority, own: certificates.Certificate, tmp_path: Path, harm: signal.Signals
):
    shown = authority.context(authority.issue("client"))
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    files = ("--tls-certificate", own.file, "--tls-key", own.key, "--tls-clients", authority.file)
    more = ("--token-file", tokens, "--unresponsive-after", "1s", "--connections", 2, "--request-time", "60s")
    with supervised(*files, *more) as (process, port), contextlib.ExitStack() as stack:
        assert ask(port, shown) == 200
        first = worker_of(process)
        # Silent clients do not lock the supervisor out.
        for _ in range(10):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
        assert ask(port, authority.context()) is None
        assert ask(port, shown) == 200
        put(authority.issue("renewed"), own)
        before = serial(port, shown)
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: serial(port, shown) != before)
        assert worker_of(process) == first
        os.kill(first, harm)
        wait_until(lambda: worker_of(process) != first and ask(port, shown) == 200)
        tokens.write_text("another-token-0123\n")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: ask(port, shown) == 401)
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=SECONDS)
    assert json.loads(out)["restarts"] == 1
    assert errors.count("restarting it") == 1
    assert process.returncode == 0


def test_without_files_sighup_ends_a_server_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    with command("light") as (process, _):
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=SECONDS) == -signal.SIGHUP
    with supervised() as (process, port):
        worker = worker_of(process)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=SECONDS) == -signal.SIGHUP
        wait_until(lambda: not Path(f"/proc/{worker}").exists())
        assert port
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))  # `systemctl reload` must not end a service
    with supervised() as (process, port):
        worker = worker_of(process)
        for one in (process.pid, worker):
            os.kill(one, signal.SIGHUP)
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as peer:
            peer.sendall(request("/v2/health/live"))
            assert Replies(peer).next().status == 200
        assert process.poll() is None
        assert worker_of(process) == worker


def test_the_http_client_of_triton_goes_on_over_its_connection(
    authority: certificates.Authority, own: certificates.Certificate
):
    with secured(own) as server:
        client = http_client(server, authority)
        for i in range(10):
            assert client.is_server_live()
            put(authority.issue(f"renewed-{i}"), own)
            server.reload_credentials()
        assert client.is_server_live()
        client.close()
        assert server.statistics().handshakes_failed == 0
