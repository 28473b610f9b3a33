"""Datagrams whose number counts groups, such as SPEAD heaps, with a byte offset in the group."""

import json
from pathlib import Path

import pytest
from captures import capture, write_datagrams
from conftest import Run

from headrace import ingest

SPEAD = ("--number-offset", 10, "--number-width", 6, "--part-offset", 26, "--part-width", 6)


def spead(heap: int, offset: int, payload: bytes) -> bytes:
    """A packet of a heap of 5,000 bytes, with its four items: counter, size, offset, and payload length."""
    items = ((1, heap), (2, 5000), (3, offset), (4, len(payload)))
    words = b"".join((1 << 63 | item << 48 | value).to_bytes(8, "big") for item, value in items)
    return b"\x53\x04\x02\x06\x00\x00\x00\x04" + words + payload


def test_heaps_of_spead_are_said_by_options(run: Run, tmp_path: Path):
    path = tmp_path / "spead.pcap"
    sent = {heap: bytes(ingest.stream_bytes(heap, 0, 5000)) for heap in range(100, 120)}
    parts = [(heap, at) for heap in sent for at in range(0, 5000, 1000)]
    order = list(range(len(parts)))
    order[10:20] = reversed(order[10:20])  # two heaps, as many as the window
    write_datagrams(path, [spead(*parts[i], sent[parts[i][0]][parts[i][1] :][:1000]) for i in order])
    how = (*SPEAD, "--group-bytes", 5000, "--header-bytes", 40, "--payload", 1000)
    done = run("ingest", "pcap", path, "--out", tmp_path / "out", "--json", *how, "--to", "cpu")
    assert done.returncode == 0, done.stderr
    (stream,) = json.loads(done.stdout)["streams"]
    assert stream["missing_bytes"] == 0
    assert (tmp_path / "out").read_bytes() == b"".join(sent.values())
    with ingest.pcap(
        path, to="cpu", payload_bytes=1000, header_bytes=40, frame=5000,
        number_offset=10, number_width=6, part_offset=26, part_width=6, group_bytes=5000,
    ) as receiver:  # fmt: skip
        frames = []
        for item in receiver:
            if isinstance(item, ingest.Frame):
                frames.append(item.to_host().tobytes())
                item.release()
    assert frames == list(sent.values())


def test_parts_without_a_place_are_refused_by_name(run: Run, tmp_path: Path):
    path = tmp_path / "spead.pcap"
    write_datagrams(path, [spead(1, offset, bytes(100)) for offset in (0, 999, 5000)])
    how = (*SPEAD, "--group-bytes", 5000, "--header-bytes", 40, "--payload", 1000)
    done = run("ingest", "pcap", path, *how, "--json", "--to", "cpu")
    assert json.loads(done.stdout)["counters"]["refused"]["no_place"] == 2
    said = " ".join(run("ingest", "pcap", path, *how, "--to", "cpu").stdout.split())
    assert "had a part that is not a multiple of the payload or lies beyond --group-bytes" in said


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (("--part-width", 6), "--part-width and --group-bytes go together"),
        (("--group-bytes", "1MiB"), "--part-width and --group-bytes go together"),
        (("--part-offset", 4), "--part-offset needs --part-width and --group-bytes"),
        (("--part-width", 6, "--part-offset", 1470, "--group-bytes", "1MiB"), "fills a datagram of 1,472"),
    ],
)
def test_parts_that_cannot_be_are_usage_errors(run: Run, tmp_path: Path, how: tuple[object, ...], says: str):
    path = tmp_path / "some.pcap"
    capture(path, [0])
    done = run("ingest", "pcap", path, *how)
    assert done.returncode == 2
    assert says in done.stderr
