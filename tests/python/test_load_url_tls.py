"""`headrace load --url` with TLS, client certificates and tokens, and its errors when they are invalid."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from headrace import _core, base

if not base.built_with_tls:
    pytest.skip("built without OpenSSL", allow_module_level=True)
if not _core.built_with_grpc:
    pytest.skip("built without the libraries of gRPC", allow_module_level=True)

import certificates
from test_load_url import loaded, loading, one_line
from wire_serving import halve, serving

from headrace import wire

if certificates.PROGRAM is None:
    pytest.skip("there is no openssl command", allow_module_level=True)

TOKEN = "0123456789abcdef-of-the-tests"
OTHER = "fedcba9876543210-of-another"
SCHEMES = {"grpcs": "grpc", "https": "http"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("secured")
    (made / "tokens").write_text(f"# those of the tests\n{TOKEN} tests\n")
    (made / "other").write_text(f"{OTHER}\n")
    (made / "text").write_text("no certificate and, as a token, wrong\n")
    return made


@pytest.fixture(scope="module")
def authority(folder: Path) -> certificates.Authority:
    return certificates.Authority(folder)


@pytest.fixture(scope="module")
def own(authority: certificates.Authority) -> certificates.Certificate:
    return authority.issue("server")


@pytest.fixture(scope="module")
def closed(authority: certificates.Authority, own: certificates.Certificate, folder: Path) -> Iterator[wire.Server]:
    """A server that requires a certificate and a token."""
    files = {"tls_certificate": own.file, "tls_key": own.key, "tls_clients": authority.file}
    with serving(halve(), grpc_port=0, token_file=folder / "tokens", **files) as (server, _):
        yield server


@pytest.fixture(scope="module")
def client(authority: certificates.Authority) -> certificates.Certificate:
    return authority.issue("client")


def url_of(server: wire.Server, scheme: str, host: str = "127.0.0.1") -> str:
    port = server.grpc_port if SCHEMES.get(scheme, scheme) == "grpc" else server.http_port
    return f"{scheme}://{host}:{port}/halve"


def shown(certificate: certificates.Certificate) -> tuple[object, ...]:
    """The options with which a client shows a certificate."""
    return ("--tls-certificate", certificate.file, "--tls-key", certificate.key)


def refused(run: Run, server: wire.Server, scheme: str, *options: object) -> "subprocess.CompletedProcess[str]":
    """A load that must be refused."""
    done = run("load", "--url", url_of(server, scheme), "--rate", 100, "--duration", "200ms", *options)
    assert done.stdout == ""
    assert TOKEN not in done.stderr
    assert OTHER not in done.stderr
    return done


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_load_with_a_certificate_and_a_token_is_answered(
    run: Run,
    closed: wire.Server,
    authority: certificates.Authority,
    client: certificates.Certificate,
    folder: Path,
    scheme: str,
    host: str,
):
    counted = getattr(closed.model_statistics()[0], SCHEMES[scheme]).requests.answered
    options = (*shown(client), "--tls-authority", authority.file, "--token-file", folder / "tokens")
    said = loaded(run, url_of(closed, scheme, host), "--rate", 500, "--duration", "300ms", "--connections", 4, *options)
    answered = getattr(closed.model_statistics()[0], SCHEMES[scheme]).requests.answered - counted
    assert said["requests"]["answered"] == answered > 50
    assert [said["requests"][name] for name in ("refused", "late", "failed", "lost")] == [0, 0, 0, 0]
    assert said["connections_lost"] == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_large_requests_go_through_tls(
    run: Run, authority: certificates.Authority, own: certificates.Certificate, scheme: str
):
    """1,000 queries of 20 bytes take several records in each direction."""
    files = {"tls_certificate": own.file, "tls_key": own.key}
    with serving(halve(), grpc_port=0, **files) as (server, _):
        words = ("--rate", "200K", "--queries-per-request", 1000, "--duration", "500ms", "--connections", 4)
        said = loaded(run, url_of(server, scheme), *words, "--tls-authority", authority.file)
        counted = getattr(server.model_statistics()[0], SCHEMES[scheme])
    assert said["requests"]["answered"] == counted.requests.answered > 10
    assert said["requests"]["failed"] == said["requests"]["lost"] == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_server_has_to_be_the_one_that_is_meant(
    run: Run,
    authority: certificates.Authority,
    own: certificates.Certificate,
    tmp_path: Path,
    scheme: str,
):
    ours = ("--tls-authority", authority.file)
    stranger = certificates.Authority(tmp_path, "stranger")
    with serving(halve(), grpc_port=0, tls_certificate=own.file, tls_key=own.key) as (server, _):
        one_line(refused(run, server, scheme), 1, "unable to get local issuer certificate")
        one_line(refused(run, server, scheme, "--tls-authority", stranger.file), 1, "the server's certificate is not")
        wrong = (*ours, "--tls-name", "elsewhere.example")
        one_line(refused(run, server, scheme, *wrong), 1, "not accepted for elsewhere.example: hostname mismatch")
        wrong = (*ours, "--tls-name", "127.0.0.2")
        one_line(refused(run, server, scheme, *wrong), 1, "not accepted for 127.0.0.2: IP address mismatch")
        said = loaded(
            run, url_of(server, scheme), "--rate", 200, "--duration", "200ms", *ours, "--tls-name", "localhost"
        )
        assert said["requests"]["answered"] > 0
        assert server.model_statistics()[0].http.requests.invalid == 0
    ended = authority.issue("ended", days=-1)
    with serving(halve(), grpc_port=0, tls_certificate=ended.file, tls_key=ended.key) as (server, _):
        one_line(refused(run, server, scheme, *ours), 1, "certificate has expired")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_server_that_asks_for_a_certificate_gets_the_right_one_or_none(
    run: Run,
    closed: wire.Server,
    authority: certificates.Authority,
    folder: Path,
    tmp_path: Path,
    scheme: str,
):
    options = ("--tls-authority", authority.file, "--token-file", folder / "tokens")
    one_line(refused(run, closed, scheme, *options), 1, "certificate required (TLS)")
    stranger = certificates.Authority(tmp_path, "stranger").issue("client")
    one_line(refused(run, closed, scheme, *options, *shown(stranger)), 1, "unknown ca (TLS)")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_server_that_asks_for_a_token_gets_the_right_one_or_none(
    run: Run,
    closed: wire.Server,
    authority: certificates.Authority,
    client: certificates.Certificate,
    folder: Path,
    scheme: str,
):
    options = ("--tls-authority", authority.file, *shown(client))
    one_line(refused(run, closed, scheme, *options), 2, "this server requires a token")
    wrong = refused(run, closed, scheme, *options, "--token-file", folder / "other")
    one_line(wrong, 2, "this server does not accept the token")


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_token_goes_without_tls_to_this_machine_alone(run: Run, folder: Path, scheme: str):
    with serving(halve(), grpc_port=0, token_file=folder / "tokens") as (server, _):
        words = ("--rate", 200, "--duration", "200ms", "--token-file", folder / "tokens")
        assert loaded(run, url_of(server, scheme), *words)["requests"]["answered"] > 0
    away = ("load", "--url", f"{scheme}://192.0.2.1:1/halve", "--rate", 100, "--token-file", folder / "tokens")
    one_line(run(*away), 2, "the token would reach 192.0.2.1")
    one_line(run(*away, "--plain-tokens", "--patience", "100ms"), 1, "connecting to 192.0.2.1:1")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_server_without_tls_is_told_apart(run: Run, authority: certificates.Authority, scheme: str):
    with serving(halve(), grpc_port=0) as (server, _):
        done = refused(run, server, scheme, "--tls-authority", authority.file, "--patience", "3s")
    one_line(done, 1, "does not speak TLS")


def test_mistakes_are_one_line(run: Run, own: certificates.Certificate, client: certificates.Certificate, folder: Path):
    url = ("load", "--rate", 100, "--url", "grpcs://127.0.0.1:1/halve")
    for options, status, says in [
        (("--tls-authority", folder / "none.pem"), 1, "none.pem"),
        (("--tls-authority", folder / "text"), 2, "no PEM certificates"),
        (("--tls-certificate", own.file), 2, "go together"),
        (("--tls-certificate", folder / "text", "--tls-key", own.key), 2, "not a PEM certificate"),
        (
            ("--tls-certificate", own.file, "--tls-key", client.key),
            2,
            "not an unencrypted PEM key for this certificate",
        ),
        (("--token-file", folder / "none"), 1, "none"),
        (("--token-file", folder / "text"), 2, "line 1"),
        (("--plain-tokens",), 2, "--token-file"),
    ]:
        one_line(run(*url, *options), status, says)
    plain = ("load", "--rate", 100, "--url", "http://127.0.0.1:1/halve")
    one_line(run(*plain, "--tls-authority", own.file), 2, "--tls-authority is for a server with TLS")
    one_line(run("load", "--rate", 100, "--tls-name", "x"), 2, "--tls-name is for a server")
    one_line(run("load", "--rate", 100, "--url", "shm://x", "--token-file", "x"), 2, "shared memory takes neither")


def test_a_server_that_comes_back_is_greeted_again(authority: certificates.Authority, own: certificates.Certificate):
    """A load continues over reopened connections, each with its own handshake."""
    files: dict[str, Any] = {"tls_certificate": own.file, "tls_key": own.key}
    with serving(halve(), **files) as (first, _):
        port = first.http_port
        url, options = url_of(first, "https"), ("--rate", 200, "--duration", "3s", "--tls-authority", authority.file)
        with loading(url, *options, "--connections", 8) as load:
            while first.model_statistics()[0].http.requests.answered < 100:
                assert load.poll() is None
            first.stop()
            with serving(halve(), **(files | {"http_port": port})) as (second, _):
                out, error = load.communicate(timeout=60)
                assert load.returncode == 0, error
                assert second.model_statistics()[0].http.requests.answered > 0
    assert json.loads(out)["connections_lost"] >= 1
