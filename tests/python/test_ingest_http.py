"""HTTP uploads: valid ones by curl, and invalid requests."""

import hashlib
import http.client
import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from ingest_network import BYTES, GUARD_SECONDS, SMALL, receiver, started
from ingest_serving import connect, exactly, serving, until
from network_namespace import isolated

from headrace import ingest

COUNT = BYTES // 4


def curl(*arguments: object, data: bytes | None = None) -> str:
    """curl's output of the answer, including its head."""
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    command = ["curl", "--silent", "--show-error", "--include", "--max-time", str(GUARD_SECONDS)]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, check=True, input=data)
    return done.stdout.decode()


@isolated
def test_uploads_by_curl_are_answered(tmp_path: Path):
    path = tmp_path / "upload"
    path.write_bytes(ingest.stream_bytes(5, 0, COUNT + 77))
    with receiver() as source, serving(source, ingest.HttpUploads(source)) as served:
        where = f"http://{source.address}/a/b?c"
        put = curl("--upload-file", path, where)
        post = curl("--data-binary", "abc", where)
        empty = curl("--data-binary", "", where)
        until(lambda: served.taker.ended == 3)
    assert re.search(r"^HTTP/1.1 100 Continue", put)
    assert re.search(r"^HTTP/1.1 200 OK", put, re.MULTILINE)
    assert put.endswith(f"\n{COUNT + 77} bytes\n")
    assert post.startswith("HTTP/1.1 200 OK")
    assert empty.endswith("\n0 bytes\n")
    streams = list(served.taker.streams.values())
    assert [stream.bytes for stream in streams] == [COUNT + 77, 3, 0]
    assert streams[0].hash.hexdigest() == ingest.digest(5, COUNT + 77)
    assert streams[1].hash.hexdigest() == hashlib.sha256(b"abc").hexdigest()
    assert {stream.end for stream in streams} == {"finished"}


@pytest.mark.parametrize("frame", ["64KiB", "1MiB"])
@isolated
def test_uploads_in_chunks_by_curl(frame: str):
    """Reading from a pipe, curl does not know the length."""
    data = ingest.stream_bytes(6, 0, COUNT + 5)
    with receiver(frame=frame) as source, serving(source, ingest.HttpUploads(source)) as served:
        answer = curl("--upload-file", "-", f"http://{source.address}/x", data=data)
        post = curl("-H", "Transfer-Encoding: chunked", "-d", "abc", f"http://{source.address}/y")
        until(lambda: served.taker.ended == 2)
    assert answer.endswith(f"\n{COUNT + 5} bytes\n")
    assert post.endswith("\n3 bytes\n")
    first, second = served.taker.streams.values()
    assert first.bytes == COUNT + 5
    assert first.hash.hexdigest() == ingest.digest(6, COUNT + 5)
    assert second.hash.hexdigest() == hashlib.sha256(b"abc").hexdigest()
    assert (first.end, second.end) == ("finished", "finished")


@isolated
def test_chunks_of_every_size(tmp_path: Path):
    """Sent by Python's client to the command."""
    random = np.random.default_rng(3)
    sizes = [1, 2, 1, 15, 16, 17, 4095, 4096, 4097, *random.integers(1, 3000, 3000), 300_000, 1]
    data = ingest.stream_bytes(8, 0, int(sum(sizes)))
    out = tmp_path / "out"
    with started("tcp", ":9000", "--answer", "http", "--streams", 1, "--out", out, "--json", *SMALL) as verb:
        host, port = verb.address.rsplit(":", 1)
        client = http.client.HTTPConnection(host, int(port), timeout=GUARD_SECONDS)
        ends = np.cumsum(sizes)
        pieces = (data[end - size : end] for size, end in zip(sizes, ends, strict=True))
        client.request("PUT", "/x", body=pieces, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, f"{len(data)} bytes\n".encode())
        client.close()
        done = verb.finish()
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == data


@isolated
def test_a_pause_between_chunks_is_no_failure():
    with receiver() as source, serving(source, ingest.HttpUploads(source, head_seconds=0.1)) as served:
        with connect(source) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nTransfer-Encoding: CHUNKED\r\n\r\n")
            for _ in range(3):
                time.sleep(0.2)
                connection.sendall(b"3 ; name=value\r\nabc\r\n")
            connection.sendall(b"0\r\nSome-Trailer: x\r\n\r\n")
            assert exactly(connection, 1000).endswith(b"9 bytes\n")
        until(lambda: served.taker.ended == 1)
    assert served.taker.streams.popitem()[1].hash.hexdigest() == hashlib.sha256(b"abc" * 3).hexdigest()


@pytest.mark.parametrize("body", ["Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"])
@isolated
def test_an_upload_that_breaks_off_is_not_finished(body: str):
    with receiver() as source, serving(source, ingest.HttpUploads(source)) as served:
        with connect(source) as connection:
            connection.sendall(f"PUT / HTTP/1.1\r\n{body}".encode())
            connection.shutdown(socket.SHUT_WR)
            assert exactly(connection, 100) == b""
        until(lambda: served.taker.ended == 1)
    (stream,) = served.taker.streams.values()
    assert stream.bytes == 3
    assert stream.end == "incomplete"


PUT = "PUT /x HTTP/1.1\r\n"
CHUNKED = PUT + "Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (PUT + "Content-Length: 0\r\n\r\n", "200 OK"),
        ("\r\n" + PUT + "content-length:  3 \r\n\r\nabcdefg", "200 OK"),
        ("PUT /x HTTP/1.0\r\nContent-Length:3\r\n\r\nabc", "200 OK"),
        (PUT + "X: \x85\u00ff\r\nContent-Length: 0\r\n\r\n", "200 OK"),
        (CHUNKED + "0\r\n\r\n", "200 OK"),
        (CHUNKED + '00a;x="y"\r\n0123456789\r\nA\r\n0123456789\r\n000\r\nT: u\r\n\r\n', "200 OK"),
        ("GET /x HTTP/1.1\r\nHost: y\r\n\r\n", "405 Method Not Allowed"),
        (PUT + "\r\n", "411 Length Required"),
        (PUT + "Content-Length: -5\r\n\r\n", "400 Bad Request"),
        (PUT + "Content-Length: +3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "Content-Length: \r\n\r\n", "400 Bad Request"),
        (PUT + "Content-Length: 0x3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "Content-Length: 3, 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "Content-Length: 3\r\nContent-Length: 10\r\n\r\nabc", "400 Bad Request"),
        (PUT + "Content-Length: 10\r\nContent-Length: 3\r\n\r\nabcdefghij", "400 Bad Request"),
        (PUT + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Bad Request"),
        (PUT + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501 Not Implemented"),
        (PUT + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501 Not Implemented"),
        ("PUT /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Bad Request"),
        (PUT + f"Content-Length: {'9' * 30}\r\n\r\n", "413 Content Too Large"),
        (PUT + "Content-Length : 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + " Content-Length: 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "X: y\r\n Content-Length: 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + ": y\r\nContent-Length: 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "nothing\r\nContent-Length: 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "X: y\x85Content-Length: 3\r\n\r\nabc", "411 Length Required"),
        (PUT + "X: y\x0bContent-Length: 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "X: y\rContent-Length: 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "X: y\nContent-Length: 3\r\n\r\nabc", "400 Bad Request"),
        (PUT + "X: y\0\r\nContent-Length: 3\r\n\r\nabc", "400 Bad Request"),
        ("PUT /x HTTP/1.1\nContent-Length: 3\n\nabc", "400 Bad Request"),
        ("PUT /x HTTP/1.1\rContent-Length: 3\r\rabc", "400 Bad Request"),
        ("\x16\x03\x01\x02\x00\x01\x00", "400 Bad Request"),
        ("PUT  /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "400 Bad Request"),
        ("PUT /x\r\n", "400 Bad Request"),
        ("hello there\r\n\r\n", "400 Bad Request"),
        ("\r\n\r\n", "400 Bad Request"),
        (CHUNKED + "3\nabc\r\n0\r\n\r\n", "400 Bad Request"),
        (CHUNKED + "3\r\nabcd\r\n0\r\n\r\n", "400 Bad Request"),
        (CHUNKED + "-3\r\nabc\r\n0\r\n\r\n", "400 Bad Request"),
        (CHUNKED + "0x3\r\nabc\r\n0\r\n\r\n", "400 Bad Request"),
        (CHUNKED + " 3\r\nabc\r\n0\r\n\r\n", "400 Bad Request"),
        (CHUNKED + "\r\nabc\r\n0\r\n\r\n", "400 Bad Request"),
        (CHUNKED + "f" * 16 + "\r\nabc", "413 Content Too Large"),
        (CHUNKED + "f" * 17 + "\r\nabc", "400 Bad Request"),
        (CHUNKED + "3;" + "x" * 5000, "400 Bad Request"),
        (CHUNKED + "0\r\nContent-Length : 5\r\n\r\n", "400 Bad Request"),
        (PUT + "X: " + "y" * 40_000, "431 Request Header Fields Too Large"),
        ("PUT /" + "y" * 40_000, "431 Request Header Fields Too Large"),
        (PUT + "A: b\r\n" * 20_000, "431 Request Header Fields Too Large"),
        (CHUNKED + "0\r\n" + "A: b\r\n" * 20_000, "431 Request Header Fields Too Large"),
        (PUT + "A: b\r\n" * 127 + "Content-Length: 0\r\n\r\n", "200 OK"),
        (PUT + "A: b\r\n" * 128 + "Content-Length: 0\r\n\r\n", "431 Request Header Fields Too Large"),
    ],
    ids=range(54),
)
@isolated
def test_requests(request_text: str, status: str):
    data = request_text.encode("latin-1")
    with receiver() as source, serving(source, ingest.HttpUploads(source)):
        for cut in (0, 40):  # all at once, and cut anywhere
            with connect(source) as connection:
                for at in range(min(cut, len(data))):
                    connection.sendall(data[at : at + 1])
                connection.sendall(data[cut:])
                answer = exactly(connection, 1 << 20)
            assert answer.startswith(f"HTTP/1.1 {status}\r\n".encode())
            assert b"Connection: close\r\n" in answer
            head, _, text = answer.partition(b"\r\n\r\n")
            assert f"Content-Length: {len(text)}".encode() in head


@isolated
def test_a_head_that_trickles_has_a_deadline_and_others_go_on():
    uploads = receiver(open_at_first_byte=False)  # else one that is silent is no stream: its limit is the first byte's
    with uploads as source, serving(source, ingest.HttpUploads(source, head_seconds=0.5)):
        done = threading.Event()

        def trickle(connection: socket.socket) -> None:
            while not done.wait(0.002):
                try:
                    connection.sendall(b"y")
                except OSError:
                    return

        with connect(source) as slow, connect(source) as silent:
            slow.sendall(PUT.encode() + b"X: ")
            thread = threading.Thread(target=trickle, args=(slow,))
            thread.start()
            assert exactly(slow, 1000).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
            done.set()
            thread.join(GUARD_SECONDS)
            assert exactly(silent, 1000).startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        with connect(source) as honest:
            honest.sendall(f"{PUT}Content-Length: 3\r\n\r\nabc".encode())
            assert exactly(honest, 1000).endswith(b"3 bytes\n")


@isolated
def test_chunks_of_few_bytes_are_put_together():
    """Some come in parts, with an extension, or with more digits than necessary."""
    sizes = np.random.default_rng(5).integers(1, 40, 20_000)
    data = ingest.stream_bytes(8, 0, int(sizes.sum()))
    ends = np.cumsum(sizes)
    heads = [b"%x", b"%X;a=b", b"00%x", b"%x", b"%x"]
    chunks = [
        heads[i % len(heads)] % size + b"\r\n" + data[end - size : end] + b"\r\n"
        for i, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True))
    ]
    with receiver(frame="64KiB") as source, serving(source, ingest.HttpUploads(source)) as served:
        with connect(source) as connection:
            connection.sendall(CHUNKED.encode() + b"".join(chunks) + b"0\r\n\r\n")
            assert exactly(connection, 1000).endswith(b"\n%d bytes\n" % len(data))
        until(lambda: served.taker.ended == 1)
        stream = served.taker.streams.popitem()[1]
    assert stream.hash.hexdigest() == hashlib.sha256(data).hexdigest()


@isolated
def test_more_chunks_than_a_frame_may_have_are_refused():
    """Their places would take more memory than the frame."""
    with receiver(frame="16MiB") as source, serving(source, ingest.HttpUploads(source)) as served:
        with connect(source) as connection:
            connection.sendall(CHUNKED.encode() + b"1\r\nx\r\n" * ((1 << 19) + 1))
            assert exactly(connection, 1000).startswith(b"HTTP/1.1 413 Content Too Large\r\n")
        until(lambda: served.taker.ended == 1)
        assert served.taker.streams.popitem()[1].end == "incomplete"
        with connect(source) as connection:
            connection.sendall(CHUNKED.encode() + b"1\r\nx\r\n" * 1000 + b"0\r\n\r\n")
            assert exactly(connection, 1000).endswith(b"\n1000 bytes\n")
