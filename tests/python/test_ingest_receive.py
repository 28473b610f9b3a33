"""headrace.ingest's receivers: synthetic packets, a UDP socket, captures, and this machine's TCP over TUN."""

import _thread
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import DataError, Error, MissingFileError, SystemError, UsageError, ingest  # noqa: A004

PAYLOAD = 1000
SEED = 5


@pytest.fixture(scope="module")
def tun() -> None:
    """Skips where TUN devices cannot be made."""
    try:
        ingest.tcp(":9000", frame="1MiB", to="cpu").stop()
    except SystemError as error:
        pytest.skip(str(error))


def content(frames: Iterator[ingest.Frame]) -> bytes:
    return b"".join(np.from_dlpack(frame).tobytes() for frame in frames)


def test_frames_carry_what_is_known_of_them() -> None:
    with ingest.synthetic(PAYLOAD, frame=20 * PAYLOAD, buffers=3, to="cpu", packets=50, seed=SEED) as receiver:
        opened = receiver.next()
        assert isinstance(opened, ingest.StreamOpened)
        assert opened.peer == "198.18.0.1:9000"
        want = ingest.stream_bytes(SEED, 0, 50 * PAYLOAD)
        for number in range(3):
            frame = receiver.next()
            assert isinstance(frame, ingest.Frame)
            assert (frame.stream, frame.number, frame.peer) == (0, number, opened.peer)
            assert frame.stream_offset == number * 20 * PAYLOAD
            came = (20 if number < 2 else 10) * PAYLOAD
            assert (frame.bytes, frame.missing_bytes, frame.presence) == (came, 0, [])
            assert np.from_dlpack(frame).tobytes() == want[frame.stream_offset :][:came]
            assert frame.to_host(5, 10).tobytes() == want[frame.stream_offset + 5 :][:10]
            with pytest.raises(UsageError, match="does not have"):
                frame.to_host(5, 20 * PAYLOAD)
            del frame
        ended = receiver.next()
        assert isinstance(ended, ingest.StreamEnded)
        assert (ended.reason, ended.bytes) == ("finished", 50 * PAYLOAD)
        assert receiver.next() is None
        assert receiver.ended
        counters = receiver.counters()
        assert counters["datagrams"]["accepted"] == 50
        assert counters["datagrams"]["missing"] == 0
        assert counters["frames"]["with_gaps"] == 0
        assert counters["frames"]["missing_bytes"] == 0


def test_a_frame_goes_back_with_its_last_array() -> None:
    with ingest.synthetic(PAYLOAD, frame=20 * PAYLOAD, buffers=2, to="cpu", seed=SEED) as receiver:
        kept = [np.from_dlpack(next(receiver)) for _ in range(2)]
        assert receiver.next(0.2) is None, "both frames are with the consumer"
        kept.pop(0)
        assert next(receiver).number == 2
        receiver.stop()
        assert kept[0].tobytes() == ingest.stream_bytes(SEED, 20 * PAYLOAD, 20 * PAYLOAD), "after the end as well"


def test_ctrl_c_ends_waiting() -> None:
    with ingest.udp("127.0.0.1:0", to="cpu") as receiver:
        threading.Timer(0.3, _thread.interrupt_main).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            next(receiver)
        assert time.monotonic() - began < 30


def test_udp_with_a_gap() -> None:
    with ingest.udp("127.0.0.1:0", frame=8 * 100, to="cpu", payload_bytes=100, timeout=0.2) as receiver:
        host, port = ingest.resolve(receiver.address)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in (0, 2, 1, 3, 7, 5, 4):  # 6 is lost
                sender.sendto(struct.pack(">Q", number) + bytes([number]) * 100, (host, port))
        frame = next(receiver)
        assert frame.missing_bytes == 100
        assert frame.presence == [0b10111111]
        rows = np.from_dlpack(frame).reshape(8, 100)
        assert [int(row[0]) for row in np.delete(rows, 6, axis=0)] == [0, 1, 2, 3, 4, 5, 7]
    assert receiver.counters()["datagrams"]["missing"] == 1


def capture(path: Path, payloads: list[bytes]) -> Path:
    """A pcap file of UDP packets over raw IPv4 (link type 101)."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    for payload in payloads:
        udp = struct.pack(">HHHH", 1234, 9000, 8 + len(payload), 0) + payload
        head = bytearray(
            struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\n\0\0\1", b"\n\0\0\2")
        )
        total = sum(struct.unpack(">10H", head))
        head[10:12] = struct.pack(">H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
        parts.append(struct.pack("<IIII", 0, 0, len(head) + len(udp), len(head) + len(udp)) + bytes(head) + udp)
    path.write_bytes(b"".join(parts))
    return path


def test_pcap_waits_for_a_slow_consumer(tmp_path: Path) -> None:
    whole = ingest.stream_bytes(SEED, 0, 400 * 100)
    path = capture(tmp_path / "a.pcap", [struct.pack("<I", n) + whole[n * 100 : (n + 1) * 100] for n in range(400)])
    how = ingest.Numbering(number_width=4, big_endian=False)
    with ingest.pcap(path, frame=2000, buffers=2, to="cpu", port=9000, payload_bytes=100, **how) as receiver:
        time.sleep(0.1)
        assert content(receiver) == whole
    assert receiver.counters()["datagrams"]["no_space"] == 0
    with pytest.raises(MissingFileError, match=r"no\.pcap"):
        ingest.pcap(tmp_path / "no.pcap", to="cpu")


def test_the_last_frame_ends_with_the_last_datagram(tmp_path: Path) -> None:
    whole = ingest.stream_bytes(SEED, 0, 30 * 100)
    numbers = [n for n in range(28) if n not in {3, 21, 24}]  # and 28, 29, if they were sent
    path = capture(tmp_path / "a.pcap", [struct.pack(">Q", n) + whole[n * 100 : (n + 1) * 100] for n in numbers])
    with ingest.pcap(path, frame=2000, buffers=2, to="cpu", port=9000, payload_bytes=100) as receiver:
        first, last = receiver
        assert (first.bytes, first.missing_bytes, first.presence) == (2000, 100, [(1 << 20) - 1 - (1 << 3)])
        assert (last.bytes, last.missing_bytes, last.presence) == (800, 200, [0b11101101])
        rows = np.from_dlpack(last).reshape(8, 100)
        assert [n for n in range(8) if rows[n].tobytes() == whole[2000 + n * 100 :][:100]] == [0, 2, 3, 5, 6, 7]
        counters = receiver.counters()
    assert counters["datagrams"]["missing"] == 3
    assert counters["datagrams"]["frames_complete"] == 0
    assert counters["frames"]["with_gaps"] == 2
    assert counters["frames"]["missing_bytes"] == 300


def test_a_frame_is_cut_where_a_sender_pauses() -> None:
    with ingest.udp("127.0.0.1:0", frame=8 * 100, to="cpu", payload_bytes=100, timeout=0.2) as receiver:
        to = ingest.resolve(receiver.address)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number in (0, 2):
                sender.sendto(struct.pack(">Q", number) + bytes([1]) * 100, to)
            frame = next(receiver)
            assert (frame.number, frame.stream_offset) == (0, 0)
            assert (frame.bytes, frame.missing_bytes, frame.presence) == (300, 100, [0b101])
            assert not np.from_dlpack(frame)[100:200].any()
            sender.sendto(struct.pack(">Q", 3) + bytes([2]) * 100, to)  # in order, so never late
            sender.sendto(struct.pack(">Q", 8) + bytes([3]) * 60, to)
            second, third = next(receiver), next(receiver)
            assert (second.number, second.stream_offset) == (1, 300)
            assert (second.bytes, second.missing_bytes, second.presence) == (500, 400, [1])
            assert (third.number, third.stream_offset, third.bytes, third.lengths) == (2, 800, 100, [60])
            assert np.from_dlpack(third).tolist() == [3] * 60 + [0] * 40
        receiver.stop()
        while not isinstance(ended := receiver.next(), ingest.StreamEnded):
            pass
        assert (ended.reason, ended.bytes) == ("finished", 860)
    counters = receiver.counters()["datagrams"]
    assert (counters["missing"], counters["late"], counters["short_payloads"]) == (5, 0, 1)


def numbered(numbers: list[int], payload_bytes: int = 100) -> list[bytes]:
    """Datagrams with a number of 8 bytes, and the stream's bytes at their places."""
    return [struct.pack(">Q", n) + ingest.stream_bytes(SEED, n * payload_bytes, payload_bytes) for n in numbers]


def stream_of(path: Path, **how: Any) -> dict[int, bytes]:
    """The content of each stream of a capture."""
    found: dict[int, bytes] = {}
    with ingest.pcap(path, to="cpu", payload_bytes=100, **how) as receiver:
        for frame in receiver:
            assert frame.stream_offset == len(found.get(frame.stream, b""))
            found[frame.stream] = found.get(frame.stream, b"") + frame.to_host().tobytes()
            frame.release()
    return found


def test_a_capture_gives_one_digest_however_many_buffers_there_are(tmp_path: Path) -> None:
    """Gaps beyond all buffers, and datagrams out of order, short, missing and repeated: ten times at full speed."""
    numbers = [n for n in [*range(3000), *range(9000, 12000)] if n % 100 > 9]
    for i in range(0, len(numbers), 20):
        numbers[i], numbers[i + 5] = numbers[i + 5], numbers[i]
    datagrams = numbered(numbers)
    datagrams = [one[:-30] if i % 11 == 3 else one for i, one in enumerate(datagrams)]
    datagrams[700:700] = datagrams[640:660]
    path = capture(tmp_path / "gaps.pcap", datagrams)
    want = np.zeros((12000, 100), np.uint8)
    for datagram in datagrams:
        want[int.from_bytes(datagram[:8], "big"), : len(datagram) - 8] = np.frombuffer(datagram[8:], np.uint8)
    for buffers in (2, 4, 64):
        for _ in range(10):
            found = stream_of(path, frame=10_000, buffers=buffers)
            assert list(found) == [0]
            assert found[0] == want.tobytes()


@pytest.mark.parametrize("jump", [2, 3001, 4000, 70_000])
def test_a_jump_forward_is_a_gap(tmp_path: Path, jump: int) -> None:
    numbers = [*range(500), *range(499 + jump, 999 + jump)]
    path = capture(tmp_path / "jump.pcap", numbered(numbers))
    for frame in (2000, 64 << 20):
        with ingest.pcap(path, frame=frame, to="cpu", payload_bytes=100) as receiver:
            missing = sum(part.missing_bytes for part in receiver)
            counters = receiver.counters()["datagrams"]
        assert missing == (jump - 1) * 100
        assert (counters["accepted"], counters["missing"], counters["restarts"]) == (1000, jump - 1, 0)


def test_numbers_of_two_bytes_follow_rfc_3550(tmp_path: Path) -> None:
    def rtp(number: int) -> bytes:
        return struct.pack(">HHII", 0x8060, number % 65536, number, 1) + struct.pack(">I", number) * 25

    how: dict[str, Any] = {"number_offset": 2, "number_width": 2, "header_bytes": 12}
    wraps = capture(tmp_path / "wraps.pcap", [rtp(n) for n in [*range(65000, 66500), *range(69000, 69100)]])
    frames = stream_of(wraps, **how)
    first = 65000 // 16384 * 16384
    words = np.frombuffer(frames[0], ">u4").reshape(-1, 25)[:, 0]
    assert len(words) == 69100 - first
    assert [int(words[n - first]) for n in (65000, 65536, 66499, 67000, 69000, 69099)] == [
        65000,
        65536,
        66499,
        0,
        69000,
        69099,
    ]
    begins_anew = capture(tmp_path / "anew.pcap", [rtp(n) for n in [*range(500), *range(20000, 20300)]])
    assert [len(one) for one in stream_of(begins_anew, frame=10_000, **how).values()] == [50_000, 30_000]


def test_a_sender_that_begins_anew_is_another_stream(tmp_path: Path) -> None:
    path = capture(tmp_path / "anew.pcap", numbered([*range(1000), *range(600)]))
    with ingest.pcap(path, frame=10_000, to="cpu", payload_bytes=100) as receiver:
        seen: list[Any] = []
        while (item := receiver.next()) is not None:
            if not isinstance(item, ingest.Frame):
                seen.append(item)
    first, ended, second, last = seen
    assert (first.stream, ended.stream, second.stream, last.stream) == (0, 0, 1, 1)
    assert (ended.reason, ended.bytes) == ("restarted", 100_000)
    assert (last.reason, last.bytes) == ("finished", 60_000)
    assert receiver.counters()["datagrams"]["restarts"] == 1


def test_two_senders_to_a_socket_are_two_streams() -> None:
    for only in (False, True):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
        ):
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            names = [f"127.0.0.1:{sender.getsockname()[1]}" for sender in (one, other)]
            wanted = names[1:] if only else names
            how = {"from_senders": wanted} if only else {}
            with ingest.udp("127.0.0.1:0", frame=400, to="cpu", payload_bytes=100, **how) as receiver:  # type: ignore[arg-type]
                to = ingest.resolve(receiver.address)
                for number in range(4):
                    for mark, sender in enumerate((one, other)):
                        sender.sendto(struct.pack(">Q", number) + bytes([mark]) * 100, to)
                frames = {frame.peer: frame.to_host().tolist() for _, frame in zip(wanted, receiver, strict=False)}
                assert sorted(frames) == sorted(wanted)
                assert [frames[name] for name in wanted] == [[names.index(name)] * 400 for name in wanted]
                receiver.stop()
                assert receiver.counters()["refused"]["other_sender"] == (4 if only else 0)


def test_a_slow_sender_loses_nothing_to_the_timeout() -> None:
    """Datagrams in order, each later after the last than the timeout."""
    with ingest.udp("127.0.0.1:0", frame=1 << 20, to="cpu", payload_bytes=100, timeout=0.02) as receiver:
        to = ingest.resolve(receiver.address)
        found = b""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for datagram in numbered([*range(12)]):
                sender.sendto(datagram, to)
                frame = next(receiver)  # delivered because of its age
                assert frame.stream_offset == len(found)
                found += frame.to_host().tobytes()
                frame.release()
        assert found == ingest.stream_bytes(SEED, 0, 1200)
        receiver.stop()
        counters = receiver.counters()["datagrams"]
        assert (counters["accepted"], counters["late"], counters["missing"]) == (12, 0, 0)


def test_what_precedes_damage_is_delivered(tmp_path: Path) -> None:
    path = capture(tmp_path / "cut.pcap", numbered([*range(30)]))
    path.write_bytes(path.read_bytes()[:-7])
    with ingest.pcap(path, to="cpu", payload_bytes=100) as receiver:
        opened, frame, ended = (receiver.next() for _ in range(3))
        with pytest.raises(DataError, match=r"cut\.pcap"):
            receiver.next()
        assert isinstance(opened, ingest.StreamOpened)
        assert isinstance(frame, ingest.Frame)
        assert isinstance(ended, ingest.StreamEnded)
        assert frame.to_host().tobytes() == ingest.stream_bytes(SEED, 0, 2900)
        assert (ended.reason, ended.bytes) == ("cut", 2900)


def test_checksums_of_a_capture_may_be_trusted(tmp_path: Path) -> None:
    path = capture(tmp_path / "offload.pcap", numbered([*range(30)]))
    data = bytearray(path.read_bytes())
    for packet in range(30):
        at = 24 + packet * (16 + 28 + 108) + 16
        data[at + 2 : at + 4] = bytes(2)  # IP's length and checksum, as a network card would fill them in
        data[at + 10 : at + 12] = bytes(2)
        data[at + 26 : at + 28] = b"\x12\x34"
    path.write_bytes(data)
    assert stream_of(path) == {}
    assert stream_of(path, trust_checksums=True) == {0: ingest.stream_bytes(SEED, 0, 3000)}


@pytest.mark.parametrize("control", ["host", "resident"])
@pytest.mark.usefixtures("tun")
def test_tcp_over_tun(control: str) -> None:
    count = 3_000_000
    with ingest.tcp(":9000", frame="1MiB", to="cpu", connections=2, control=control) as receiver:
        address, port = ingest.resolve(receiver.address)
        assert receiver.interface.startswith("headrace")
        sender = ingest.TcpSender(address, port, seed=SEED)
        ingest.send(sender, count, wait=False)
        sender.finish()
        came = b""
        while not isinstance(item := receiver.next(60), ingest.StreamEnded):
            assert item is not None
            if isinstance(item, ingest.Frame):
                came += np.from_dlpack(item).tobytes()
            del item
        assert item.reason == "finished"
        assert came == ingest.stream_bytes(SEED, 0, count)
    counters = receiver.counters()  # the final ones, of a stopped receiver
    assert counters["tcp"]["opened"] == 1
    assert counters["tcp"]["bytes"] == counters["frames"]["bytes"] == count
    assert counters["builder"]["bytes"] == (0 if control == "resident" else count)
    assert counters["streams"]["memory_failures"] == 0


@pytest.mark.parametrize("control", ["host", "resident"])
@pytest.mark.usefixtures("tun")
def test_messages_over_tcp(control: str) -> None:
    bodies = [b"", b"abc", b"end"]
    with ingest.tcp(":9000", frame=40_000, buffers=4, to="cpu", control=control) as receiver:
        found = ingest.messages(receiver, width=2, header_bytes=4, body_max=65_000)
        ask = ingest.resolve(receiver.address)
        with socket.create_connection(ask) as wrong, socket.create_connection(ask) as right:
            right.sendall(b"".join(struct.pack(">HH", len(body), 0) + body for body in bodies))
            right.shutdown(socket.SHUT_WR)
            got = [next(found) for _ in range(3)]
            assert [ingest.body(message).tobytes() for message in got] == bodies
            assert [message.begin for message in got] == [0, 4, 11]
            got.clear()
            wrong.sendall(struct.pack(">HH", 65_001, 0) + b"y" * 50_000)
            with pytest.raises(DataError, match=r"stream \d: the message at byte 0 gives its length as 65001 bytes"):
                next(found)
            wrong.settimeout(60)
            with pytest.raises(ConnectionResetError):
                wrong.recv(1)


@pytest.mark.usefixtures("tun")
def test_a_message_that_is_cut_off() -> None:
    with ingest.tcp(":9000", frame=40_000, to="cpu") as receiver:
        with socket.create_connection(ingest.resolve(receiver.address)) as sender:
            sender.sendall(struct.pack(">I", 10) + b"123")
        with pytest.raises(DataError, match="in the middle of a message, 7 bytes after"):
            next(ingest.messages(receiver))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"conversion": "swap2"}, "no conversion, not 4 frames of 67108864 bytes with conversion 'swap2'"),
        ({"frame": 1000}, "at least 4096 bytes"),
        ({"way": "gather"}, "leave them automatic instead of 'gather'"),
        ({"ring_access": "direct"}, "leave them automatic instead of 'automatic' and 'direct'"),
        ({"frame": "1TiB", "connections": 1}, "cpu:0"),
        ({"frame": "2GiB", "connections": 65536}, "65536 connections with 4 frames of 2 GiB each need 512 TiB"),
    ],
)
@pytest.mark.usefixtures("tun")
def test_what_resident_control_cannot(options: dict[str, Any], says: str) -> None:
    with pytest.raises(Error, match=says):
        ingest.tcp(":9000", to="cpu", control="resident", **options)


@pytest.mark.parametrize("address", ["9000", ":0", ":70000", "nowhere"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UsageError, match="is not an address with a port"):
        ingest.tcp(address, to="cpu")


def test_options_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="frame of 0 bytes"):
        ingest.tcp(":9000", frame=0, to="cpu")
    with pytest.raises(UsageError, match="conversion"):
        ingest.tcp(":9000", to="cpu", conversion="floats")
    with pytest.raises(UsageError, match="'moon' is not a control: host, resident"):
        ingest.tcp(":9000", to="cpu", control="moon")
    with pytest.raises(TypeError):
        ingest.udp(":9000", to="cpu", control="resident")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="way to receive packets"):
        ingest.udp(":9000", to="cpu", via="pigeon", interface="lo")
    with pytest.raises(TypeError):
        ingest.tcp(":9000", to="cpu", colour="red")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="width"):
        ingest.MessageReader(width=9)
