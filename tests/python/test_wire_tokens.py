"""A server that requires tokens: which requests need one, what is valid, and that tokens are never revealed."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run

import headrace
from headrace import _core

if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import browser
import http2_frames as h2
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from test_wire_command import command
from test_wire_grpc_frames import OPEN, status_in, until_end_of
from test_wire_grpc_frames import connect as connect_grpc
from wire_serving import SECONDS, Replies, Reply, ask, connect, request, serving, third

from headrace import wire

TOKEN = "a-token.of_this~test+/0123456789=="
OTHER = "0123456789abcdef"
HEADER = f"Authorization: Bearer {TOKEN}\r\n"
JSON = b'{"inputs": [{"name": "query", "datatype": "FP64", "shape": [1], "data": [3]}]}'
INFER = "/v2/models/third/infer"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens"
    file.write_text(f"# who may ask\n\n{TOKEN} alice, of the team\r\n  {OTHER}\n")
    file.chmod(0o600)
    return file


def status(server: wire.Server, target: str, headers: str = "", body: bytes = b"", method: str = "") -> int:
    return ask(server, request(target, body, method, headers))[0].status


def error_of(reply: Reply) -> str:
    return str(json.loads(reply.body)["error"])


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/v2"),
        ("GET", "/v2/models/third"),
        ("GET", "/v2/models/third/ready"),
        ("GET", "/v2/models/third/config"),
        ("GET", "/v2/models/third/stats"),
        ("GET", "/v2/models/stats"),
        ("GET", "/status.json"),
        ("GET", "/nothing"),
        ("POST", INFER),
        ("POST", "/v2/repository/index"),
        ("POST", "/v2/repository/models/third/load"),
        ("GET", "/v2/systemsharedmemory/status"),
        ("POST", "/v2/systemsharedmemory/region/a/register"),
        ("POST", "/v2/cudasharedmemory/region/a/register"),
        # Paths that only look like those that need no token.
        ("POST", "/v2/health/live"),
        ("GET", "/v2/health/live/"),
        ("GET", "/v2/health/live?a=1"),
        ("GET", "/v2/health/live/../../models/third"),
        ("GET", "/v2/health%2Flive"),
        ("GET", "//"),
        ("GET", "http://here/v2/models/third"),
    ],
)
def test_everything_but_health_and_the_page_needs_a_token(tokens: Path, method: str, target: str):
    options: dict[str, Any] = {"shared_memory": True, "model_control": True}
    with serving(third(), token_file=tokens, **options) as (server, _):
        reply = ask(server, request(target, method=method))[0]
        assert (reply.status, reply.headers["www-authenticate"]) == (401, 'Bearer realm="headrace"')
        assert "Authorization: Bearer TOKEN" in error_of(reply)
        assert reply.headers["connection"] == "close"
        if "load" not in target:  # waits for the program
            assert status(server, target, HEADER, method=method) != 401
        assert server.statistics().unauthorized == 1


def test_health_and_the_page_need_no_token(tokens: Path):
    with serving(third(), token_file=tokens) as (server, _):
        for target in ("/v2/health/live", "/v2/health/ready", "/"):
            assert status(server, target) == 200
            assert status(server, target, f"Authorization: Bearer {OTHER}x\r\n") == 200
        with connect(server) as peer:
            peer.sendall(request("/v2/health/live", method="HEAD"))
            assert Replies(peer).next(of_head=True).status == 200
        page = ask(server, request("/"))[0].body
        assert b"third" not in page
        # Unauthenticated clients cannot fill memory.
        big = request("/v2/health/live", b"x" * 100, method="GET")
        assert ask(server, big)[0].status == 400
        chunked = (
            b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"
        )
        assert ask(server, chunked)[0].status == 400
        assert server.statistics().unauthorized == 0
    with serving(third(), token_file=tokens, page=False) as (server, _):
        assert status(server, "/") == 401


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (HEADER, 200),
        (HEADER.replace("Bearer", "bearer").replace("Authorization", "AUTHORIZATION"), 200),
        (HEADER.replace("Bearer ", "BEARER    "), 200),
        (f"Authorization: Bearer {OTHER}\r\n", 200),
        (f"Authorization: Bearer {OTHER}\t \r\n", 200),
        (f"Authorization: Bearer {OTHER[:-1]}\r\n", 401),
        (f"Authorization: Bearer {OTHER}0\r\n", 401),
        (f"Authorization: Bearer {OTHER}{TOKEN}\r\n", 401),
        (f"Authorization: Bearer {OTHER} {OTHER}\r\n", 401),
        (f"Authorization: Bearer {OTHER.upper()}\r\n", 401),
        (f"Authorization: Bearer {'a' * 34}\r\n", 401),
        (f"Authorization: Bearer {TOKEN} alice\r\n", 401),
        ("Authorization: Bearer alice\r\n", 401),
        ("Authorization: Bearer \r\n", 401),
        ("Authorization: Bearer\r\n", 401),
        ("Authorization: \r\n", 401),
        ("Authorization: Bearer #\r\n", 401),
        (f"Authorization: Basic {OTHER}\r\n", 401),
        (f"Authorization: {OTHER}\r\n", 401),
        (f"X-Authorization: Bearer {OTHER}\r\n", 401),
        (f"Authorization: Bearer {'a' * 1024}\r\n", 401),
        (f"Authorization: Bearer {'a' * 12_000}\r\n", 401),
        (f"Authorization: Bearer {'a' * 20_000}\r\n", 431),
        (HEADER + HEADER, 400),
        (HEADER + f"Authorization: Bearer {OTHER}x\r\n", 400),
    ],
)
def test_what_is_a_token(tokens: Path, headers: str, expected: int):
    with serving(third(), token_file=tokens) as (server, _):
        assert status(server, INFER, headers, JSON) == expected
        assert status(server, INFER, HEADER, JSON) == 200


def test_a_token_in_a_url_or_a_body_is_none(tokens: Path):
    with serving(third(), token_file=tokens) as (server, _):
        for target in (f"{INFER}?access_token={OTHER}", f"{INFER}?token={OTHER}", f"{INFER}#{OTHER}"):
            assert status(server, target, body=JSON) == 401
        assert status(server, f"http://{OTHER}@here{INFER}", body=JSON) == 401
        body = f"access_token={OTHER}".encode()
        assert status(server, INFER, "Content-Type: application/x-www-form-urlencoded\r\n", body) == 401


def test_a_body_is_refused_before_it_comes(tokens: Path):
    head = f"POST {INFER} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 60000000\r\n\r\n".encode()
    with serving(third(), token_file=tokens) as (server, _), connect(server) as peer:
        peer.sendall(head)
        replies = Replies(peer)
        assert replies.next().status == 401
        assert replies.ended()
        assert server.statistics().memory_bytes == 0


def test_each_request_of_a_connection_has_to_carry_it(tokens: Path):
    with serving(third(), token_file=tokens) as (server, _):
        replies = ask(server, request(INFER, JSON, headers=HEADER) * 3 + request(INFER, JSON), 4)
    assert [one.status for one in replies] == [200, 200, 200, 401]


def test_clients_of_triton_carry_one(tokens: Path):
    given = {"authorization": f"Bearer {TOKEN}"}
    with serving(third(), token_file=tokens, grpc_port=0) as (server, _):
        http = triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}", network_timeout=SECONDS)
        for module, client in (
            (triton_http, http),
            (triton_grpc, triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")),
        ):
            query = module.InferInput("query", [2], "FP64").set_data_from_numpy(np.array([3.0, 6.0]))
            assert client.infer("third", [query], headers=dict(given)).as_numpy("answer").tolist() == [1, 2]
            with pytest.raises(Exception, match="requires a token"):
                client.infer("third", [query])
            with pytest.raises(Exception, match="this server does not accept the token"):
                client.infer("third", [query], headers={"authorization": f"Bearer {TOKEN}x"})
            client.close()


def test_every_call_of_grpc_but_health_needs_one(tokens: Path):
    options: dict[str, Any] = {"shared_memory": True, "model_control": True, "grpc_port": 0}
    with serving(third(), token_file=tokens, **options) as (server, _):
        client = triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
        query = triton_grpc.InferInput("query", [1], "FP64").set_data_from_numpy(np.array([3.0]))
        calls: list[Callable[[dict[str, str]], object]] = [
            lambda headers: client.is_model_ready("third", headers=headers),
            lambda headers: client.get_server_metadata(headers=headers),
            lambda headers: client.get_model_metadata("third", headers=headers),
            lambda headers: client.get_model_config("third", headers=headers),
            lambda headers: client.get_inference_statistics("third", headers=headers),
            lambda headers: client.get_model_repository_index(headers=headers),
            lambda headers: client.get_system_shared_memory_status(headers=headers),
            lambda headers: client.infer("third", [query], headers=headers),
        ]
        wrong = ({}, {"authorization": f"Bearer {OTHER}x"}, {"authorization": OTHER}, {"x-authorization": TOKEN})
        for call in calls:
            for headers in wrong:
                with pytest.raises(triton_grpc.InferenceServerException, match="UNAUTHENTICATED"):
                    call(headers)
            call({"authorization": f"Bearer {TOKEN}"})
        with pytest.raises(triton_grpc.InferenceServerException, match="UNAUTHENTICATED"):
            client.load_model("third")
        assert client.is_server_live()
        assert client.is_server_ready()
        client.close()
        assert server.statistics().unauthorized == len(calls) * len(wrong) + 1


def test_calls_of_health_take_no_bytes_without_a_token(tokens: Path):
    with serving(third(), token_file=tokens, grpc_port=0) as (server, _):
        path = {**h2.GRPC, ":path": "/inference.GRPCInferenceService/ModelMetadata", "content-type": "application/grpc"}
        twice = h2.block(path) + h2.fields(authorization=f"Bearer {TOKEN}") * 2
        for content, expected in (
            (h2.call(1), b"0"),
            (h2.call(1, message=b"x"), b"8"),
            (h2.call(1, message=b"x", authorization=f"Bearer {TOKEN}"), b"8"),
            (h2.call(1, "ModelMetadata", authorization=f"Bearer {TOKEN}"), b"3"),  # names no model
            (h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, 1, twice), b"16"),
        ):
            with connect_grpc(server) as peer:
                peer.sendall(OPEN + content)
                assert status_in(until_end_of(1, peer)) == expected


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "has no token"),
        ("# nothing\n\n", "has no token"),
        ("short\n", "line 1: a token must have at least 16 characters"),
        (f"{OTHER}\n{TOKEN}, alice\n", "line 2: a token may have only ASCII letters"),
        (f"{OTHER}\n{'a' * 1025}\n", "line 2: a token may have at most 1024 characters"),
        (f"{OTHER}\n# again\n{OTHER} bob\n", "line 3: an earlier line has the same token"),
        ("".join(f"{i:016}\n" for i in range(1001)), "at most 1000 tokens"),
        ("0123456789abcdé0\n", "line 1: a token may have only ASCII letters"),
        ("#" * (5 << 20), "too long"),
    ],
)
def test_files_that_will_not_do_are_named_and_no_token_of_them(tmp_path: Path, content: str, says: str):
    file = tmp_path / "tokens"
    file.write_text(content)
    with pytest.raises(headrace.UsageError) as refused, serving(third(), token_file=file):
        pass
    assert str(file) in str(refused.value)
    assert says in str(refused.value)
    for token in content.split():
        assert len(token) < 16 or token not in str(refused.value)
    with pytest.raises(headrace.Error, match="No such file"), serving(third(), token_file=tmp_path / "absent"):
        pass
    with pytest.raises(headrace.Error, match="directory"), serving(third(), token_file=tmp_path):
        pass


def test_a_thousand_tokens_are_all_known(tmp_path: Path):
    file = tmp_path / "tokens"
    file.write_text("".join(f"{'x' * (i % 40)}{i:016}\n" for i in range(1000)))
    with serving(third(), token_file=file) as (server, _), connect(server) as peer:
        for line in file.read_text().split():
            peer.sendall(request("/v2", headers=f"Authorization: Bearer {line}\r\n"))
        replies = Replies(peer)
        assert [replies.next().status for _ in range(1000)] == [200] * 1000


def test_tokens_are_read_again_and_a_bad_file_leaves_the_former(tokens: Path):
    new = "a-new-token-0123"
    with serving(third(), token_file=tokens, threads=2, plan=headrace.Plan(clients_max=2)) as (server, _):
        with connect(server) as peer:
            replies = Replies(peer)

            def said(token: str) -> int:
                peer.sendall(request("/v2", headers=f"Authorization: Bearer {token}\r\n"))
                return replies.next().status

            assert said(TOKEN) == 200
            tokens.write_text("bad\n")
            with pytest.raises(headrace.UsageError, match="16 characters"):
                server.reload_credentials()
            assert said(TOKEN) == 200
            tokens.write_text(f"{new}\n")
            server.reload_credentials()
            assert said(new) == 200  # the connection is still the same
            assert said(TOKEN) == 401
        server.stop()
        with pytest.raises(headrace.UsageError, match="stopped"):
            server.reload_credentials()
    with serving(third()) as (server, _), pytest.raises(headrace.UsageError, match="no credential files"):
        server.reload_credentials()


def test_tokens_go_to_others_over_tls_alone_unless_that_is_asked_for(tokens: Path):
    for address in ("0.0.0.0", "::"):
        with (
            pytest.raises(headrace.UsageError, match="plain_tokens"),
            serving(third(), token_file=tokens, address=address),
        ):
            pass
    for options in ({"address": "0.0.0.0", "plain_tokens": True}, {"address": "127.0.0.9"}, {"address": "::1"}):
        with serving(third(), token_file=tokens, **options) as (server, _):
            assert server.http_port > 0


def infer_status(url: str, token: str | None) -> int:
    host, port = url.removeprefix("http://").split(":")
    headers = "" if token is None else f"Authorization: Bearer {token}\r\n"
    with socket.create_connection((host, int(port)), timeout=SECONDS) as peer:
        peer.sendall(request("/v2/models/light", headers=headers))
        return Replies(peer).next().status


@pytest.mark.parametrize("form", ["text", "json", None])
def test_no_token_is_in_what_the_command_says(tokens: Path, form: str | None):
    wrong = "a-wrong-token-0123456789"
    more = () if form is None else ("--log", form)
    with command("light", "--token-file", tokens, *more) as (process, said):
        assert said["tokens"]
        assert infer_status(said["url"], TOKEN) == 200
        assert infer_status(said["url"], wrong) == infer_status(said["url"], None) == 401
        tokens.write_text(f"{wrong} {TOKEN}!\nbad\n")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        lines = []
        while not re.search("could not be reloaded", line := process.stderr.readline()):
            assert line
            lines.append(line)
        tokens.write_text(f"{wrong}\n")
        process.send_signal(signal.SIGHUP)
        while not re.search("were reloaded", line := process.stderr.readline()):
            assert line
            lines.append(line)
        assert infer_status(said["url"], wrong) == 200
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    everything = "".join(lines) + out + err
    assert TOKEN not in everything
    assert wrong not in everything
    if form is not None:
        assert "unauthorized" in everything
        assert "requests=2" in everything or '"requests": 2' in everything


def test_mistakes_and_warnings_of_the_command(tokens: Path, run: Run):
    for arguments, says in (
        (("--token-file", tokens, "--address", "0.0.0.0"), "--plain-tokens"),
        (("--plain-tokens",), "--token-file"),
        (("--tls-certificate", tokens), "go together"),
        (("--tls-clients", tokens), "--tls-clients needs TLS"),
    ):
        done = run("serve", "light", "--device", "cpu", *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert says in done.stderr
    tokens.chmod(0o640)
    options = ("--token-file", tokens, "--address", "0.0.0.0", "--plain-tokens")
    with command("light", *options) as (process, said):
        assert said["url"].startswith("http://localhost:")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    assert "Other users can read" in err
    assert "not even tokens: anyone on the network path to 0.0.0.0 can read all traffic" in err


@pytest.mark.skipif(browser.PROGRAM is None, reason="there is no Chromium here")
def test_the_page_asks_for_a_token_and_keeps_it_nowhere(tokens: Path, tmp_path: Path):
    with browser.browser(tmp_path) as new_tab, serving(third(), token_file=tokens) as (server, _):
        tab = new_tab()
        tab.open(f"http://127.0.0.1:{server.http_port}/")
        tab.wait("#state", "Token needed".__eq__)
        asked = server.statistics().requests

        def give(token: str) -> None:
            tab.run(f"$('token').value = {json.dumps(token)}")
            tab.run("document.querySelector('#token-form button').click()")

        give(f"{OTHER}x")
        tab.wait("#token-wrong", "The server does not accept this token.".__eq__)
        assert tab.text("#state") == "Token needed"
        give("é")
        tab.wait("#token-wrong", bool)
        assert server.statistics().requests == asked + 1, "it leaves the server alone until it has a token"
        give(TOKEN)
        tab.wait("#state", "Live".__eq__)
        assert tab.run("$('who').hidden")
        tab.wait("#model option", "third".__eq__)
        tab.run("$('input-0').value = '6'; document.querySelector('#ask button').click()")
        assert "2" in tab.wait("#answer td", bool)
        assert "$TOKEN" in tab.run("$('request').textContent")
        kept = tab.run("document.documentElement.outerHTML + location.href + document.cookie + $('token').value")
        assert TOKEN not in kept
        assert tab.run("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
        # Another server's tokens, as after a restart: the client sends the new one.
        tokens.write_text("another-token-of-it\n")
        server.reload_credentials()
        tab.wait("#state", "Token needed".__eq__)
        tab.open(f"http://127.0.0.1:{server.http_port}/")
        tab.wait("#state", "Token needed".__eq__)
        errors = tab.events("Runtime.exceptionThrown")
    assert errors == []


def test_a_build_without_openssl_says_so(tmp_path: Path):
    """`--tls-certificate` is refused there too; with the library, missing files are the error."""
    code = (
        "import headrace, headrace.base as base; base.built_with_tls = False\n"
        "from headrace.cli import main; import sys\n"
        f"sys.argv = ['headrace', 'serve', 'light', '--device', 'cpu', '--tls-certificate', {str(tmp_path)!r}, "
        f"'--tls-key', {str(tmp_path)!r}]\nsys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert "libssl-dev" in done.stderr, done.stderr
    assert done.returncode == 2
