"""bench/wire_attackers.py and bench/wire_soak.py: attacks do what they say, and rows count what went wrong."""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import certificates
import http2_frames as h2
import pytest
from programs import load_program
from wire_serving import connect, samples, serving, third

import headrace

_ATTACKERS = Path(__file__).parents[2] / "bench" / "wire_attackers.py"
_UNPRIVILEGED = {"half_open"} if os.geteuid() != 0 else set()


@pytest.fixture(scope="module")
def attackers() -> ModuleType:
    return load_program("bench/wire_attackers.py")


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    return load_program("bench/wire_soak.py")


def _light() -> headrace.Operator:
    return headrace.light(query_bytes=1024, threads=1, steps=1)


def test_what_honest_looking_requests_ask_is_answered(attackers):
    """An attack by requests that the server refuses at once would show nothing."""
    with serving(_light(), grpc_port=0) as (server, _):
        with connect(server) as peer:
            peer.sendall(attackers._json_request())
            assert peer.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        with attackers._connect(server.grpc_port) as peer:
            call = attackers._call_head(1) + attackers._frame(h2.DATA, h2.END_STREAM, 1, attackers._message())
            peer.sendall(h2.PREFACE + h2.frame(h2.SETTINGS, 0, 0) + call)
            kinds = []
            for one in h2.frames(peer):
                kinds.append(one.kind)
                if one.flags & h2.END_STREAM and one.stream == 1:
                    break
        assert h2.DATA in kinds
        assert server.statistics().grpc.answered == 1


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 254, 255, 300, 4000, 14_000])
def test_lengths_of_hpack_are_those_of_the_tests(attackers, length):
    assert attackers._text(b"x" * length) == h2.text("x" * length)


@pytest.mark.skipif(certificates.PROGRAM is None, reason="openssl is not installed")
def test_every_attack_attacks_until_its_input_ends_and_honest_clients_are_answered(attackers, tmp_path):
    light = _light()
    own = certificates.Authority(tmp_path).issue("server")
    name = f"test-attacks-{os.getpid()}"
    files = {"tls_certificate": own.file, "tls_key": own.key}
    with (
        serving(light, grpc_port=0, shm=name, idle_max=1.0, request_max=1.0) as (server, _),
        serving(_light(), grpc_port=0, **files) as (secure, _),
    ):
        ports = (server.http_port, server.grpc_port, secure.grpc_port, name)
        running = {
            kind: subprocess.Popen(
                [sys.executable, _ATTACKERS, kind, *map(str, ports)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for kind in attackers.ATTACKS.keys() - _UNPRIVILEGED
        }
        queries = samples(light, 64)
        with headrace.Client(f"shm://{name}/light") as client:
            for process in running.values():
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            for _ in range(20):
                answers, status = client.ask_many(queries)
                assert not status.any()
                for query, answer in zip(queries, answers, strict=True):
                    assert bytes(answer) == bytes(light.answer_on_host(query))
        for kind, process in running.items():
            out, _ = process.communicate(timeout=60)
            done = json.loads(out)
            assert process.returncode == 0
            assert any(done.values()), (kind, done)


def _rows(
    soak: ModuleType, *, answered: int = 1000, unsent: int = 0, left: int = 0, failures: tuple[str, ...] = ()
) -> list[dict]:
    found = SimpleNamespace(
        requests=Counter(answered=answered, refused=1000 - answered - unsent, unsent=unsent),
        failures=[],
        p99=[5.0, 7.0],
        resident=[100, 100, 104],
        growth=lambda: 1.04,
    )
    shorts = SimpleNamespace(count=3, failures=list(failures))
    given = argparse.Namespace(minutes=1.0, bound=2.0)
    others = soak._Others(shorts, SimpleNamespace(compared=2, failures=[]))
    return list(soak._rows(found, others, left, 50.0, given))


def test_a_soak_is_verified_where_nothing_failed_and_nothing_is_left(soak):
    memory, p99 = _rows(soak, answered=999, unsent=1)  # one request waited for a stream when its client left
    assert (memory["value"], p99["value"]) == (1.04, 6.0)
    assert memory["conditions"]["verified"]
    assert memory["conditions"]["resident_bytes_most"] == 104
    never_sent = {"answered": 990, "unsent": 10}
    for bad in ({"answered": 999}, never_sent, {"left": 1}, {"failures": ("a short connection failed",)}):
        assert not any(row["conditions"]["verified"] for row in _rows(soak, **bad))


def test_growth_compares_the_last_tenth_with_the_second(soak):
    some = object.__new__(soak.Soak)
    some.resident = [50] * 10 + [100] * 10 + [300] * 70 + [102] * 10
    assert some.growth() == pytest.approx(1.02)


def test_a_short_connection_says_what_went_wrong():
    served = load_program("bench/wire_served.py")
    with serving(_light()) as (server, _):
        served.short_connection(server.http_port, reads=True)
        served.short_connection(server.http_port, reads=False)
    with pytest.raises(OSError, match="refused"):
        served.short_connection(server.http_port, reads=True)
    with serving(third()) as (server, _), pytest.raises(ValueError, match="status 404"):
        served.short_connection(server.http_port, reads=True)
