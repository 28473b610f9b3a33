"""Frames in Python from a ring that Python writes; the benchmark of the builder, small, on the CPU device."""

import gc
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace import UsageError, results
from headrace.ingest import FrameBuilder

PROGRAM = Path(__file__).parents[2] / "bench" / "ingest_build.py"
TINY = ("--device", "cpu", "--total", "1", "--ring", "1", "--frame", "1", "--flush", "256", "--runs", "2")


def packets(builder: FrameBuilder, count: int, length: int, stride: int = 256, header: int = 54) -> np.ndarray:
    """Writes random packets to the ring and places their payloads; returns the stream."""
    ring = builder.ring
    ring[: count * stride] = np.random.default_rng(7).integers(0, 256, count * stride, dtype=np.uint8)
    builder.place([(i * stride + header, i * length, length) for i in range(count)], count)
    return np.concatenate([ring[i * stride + header :][:length] for i in range(count)])


def test_frames_are_arrays_over_their_buffers():
    builder = FrameBuilder("cpu", frame_bytes=1000, frame_count=8, ring_bytes=1 << 16)
    stream = packets(builder, 40, 150)
    builder.finish(len(stream))
    seen = []
    for number, frame in enumerate(builder):
        assert (frame.number, frame.stream_offset) == (number, number * 1000)
        array = frame.numpy()
        assert np.array_equal(np.from_dlpack(frame), array)
        assert np.array_equal(np.frombuffer(frame, np.uint8), array)
        assert frame.__dlpack_device__() == (1, 0)
        assert not hasattr(frame, "__cuda_array_interface__")
        seen.append(array.copy())
        assert len(frame) == frame.bytes == len(array)
    assert np.array_equal(np.concatenate(seen), stream)
    assert builder.copied == 40


def test_a_frame_goes_back_with_the_last_array_over_it():
    builder = FrameBuilder("cpu", frame_bytes=100, frame_count=2, ring_bytes=4096)
    packets(builder, 2, 100)
    frame = next(builder)
    assert builder.reserved_end == 200
    array = frame.numpy()
    view = memoryview(frame)
    kept = array.copy()
    frame.release()
    with pytest.raises(UsageError, match="has been released"):
        frame.numpy()
    assert builder.reserved_end == 200
    view.release()
    assert builder.reserved_end == 200
    assert np.array_equal(array, kept)
    del array
    gc.collect()
    assert builder.reserved_end == 300
    with pytest.raises(UsageError, match="no space"):
        builder.place([(0, 300, 1)])
    frame = next(builder)
    del frame
    gc.collect()
    assert builder.reserved_end == 400


def test_arrays_outlive_the_builder():
    builder = FrameBuilder("cpu", frame_bytes=100, frame_count=2, ring_bytes=4096)
    stream = packets(builder, 1, 100)
    array = next(builder).numpy()
    ring = builder.ring
    del builder
    gc.collect()
    assert np.array_equal(array, stream)
    assert ring.size == 4096


@pytest.mark.parametrize(
    ("conversion", "of", "to"),
    [
        ("int16-to-float", "<i2", "<f4"),
        ("int16-big-endian-to-float", ">i2", "<f4"),
        ("int8-to-float", "|i1", "<f4"),
    ],
)
def test_conversion_is_numpys(conversion: str, of: str, to: str):
    builder = FrameBuilder("cpu", frame_bytes=500, frame_count=16, ring_bytes=1 << 16, conversion=conversion)
    stream = packets(builder, 50, 101)  # odd, so that pieces begin within items
    builder.finish(len(stream))
    found = np.concatenate([frame.numpy().copy() for frame in builder])
    assert found.dtype == np.dtype(to)
    assert np.array_equal(found, stream.view(of).astype(to))


@pytest.mark.parametrize(("conversion", "of"), [("swap2", "u2"), ("swap4", "u4"), ("swap8", "u8")])
def test_swapped_bytes_are_numpys(conversion: str, of: str):
    builder = FrameBuilder("cpu", frame_bytes=480, frame_count=16, ring_bytes=1 << 16, conversion=conversion)
    stream = packets(builder, 48, 101)
    builder.finish(len(stream))
    found = np.concatenate([frame.numpy().copy() for frame in builder])
    assert np.array_equal(found, stream.view(of).byteswap().view(np.uint8))


def test_frames_with_gaps_say_so():
    builder = FrameBuilder("cpu", frame_bytes=1000, frame_count=2, ring_bytes=4096)
    packets(builder, 4, 100)
    with pytest.raises(UsageError, match="cannot be closed"):
        builder.close(0, 100, [0b0111])
    builder.close(0, 100, [0b1111])
    frame = next(builder)
    assert frame.missing_bytes == 600
    assert frame.presence == [15]
    assert frame.lengths == []
    assert not frame.numpy()[400:].any()
    assert next(builder, None) is None


def test_wrong_use_is_refused():
    with pytest.raises(UsageError, match="'magic' is not a way"):
        FrameBuilder("cpu", way="magic")
    with pytest.raises(UsageError, match="does not support copy way 'cub'"):
        FrameBuilder("cpu", way="cub")
    with pytest.raises(UsageError, match="multiple of 2"):
        FrameBuilder("cpu", frame_bytes=1001, conversion="int16-to-float")
    with pytest.raises(UsageError, match="slots cannot have 100 bytes"):
        headrace.measure.device_build("cpu", slot_bytes=100)
    with pytest.raises(UsageError, match="payloads have 1 to"):
        headrace.measure.device_build("cpu", payload_bytes=0)


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_every_figure_is_verified_and_beside_its_roof():
    done = bench(*TINY, "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    for name in (
        "device.8000",
        "device.1460",
        "device.64",
        "device.mixed",
        "pinned.8000",
        "pinned.1460",
        "pinned.1460.ip",
        "resident.8000",
    ):
        assert f"ingest.{name}" in rows
    assert {"ingest.device.64.block", "ingest.device.8000.host-copy-32", "ingest.pinned.1460.payloads"} <= rows.keys()
    for identity, row in rows.items():
        assert row["conditions"]["verified"] is True, identity
        assert row["unit"] == "bit/s"
        assert row["roof"] > 0
        assert row["samples"] == 2
    assert "ingest.device.8000.cub: left out" in done.stderr


def test_the_results_file_is_written_and_rows_can_be_chosen(tmp_path: Path):
    machine = results.machine(headrace.Device.parse("cpu"))["name"]
    path = tmp_path / f"ingest.{machine}.json"
    done = bench(*TINY, "--only", "ingest.device.1460", "--ways", "automatic,gather", "--save", path)
    assert done.returncode == 0, done.stderr
    content = json.loads(path.read_text())
    assert [row["id"] for row in content["rows"]] == ["ingest.device.1460", "ingest.device.1460.gather"]
    assert content["command"].startswith("ingest_build.py --device cpu")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--device", "gpu:9"), 1, "gpu:9"),
        (("--ways", "sideways"), 2, "'sideways' is not a way"),
        (("--ring-access", "post"), 2, "'post' is not a way to read the ring"),
        (("--runs", "0"), 2, "--runs must be 1 or more"),
        (("--only", "nothing"), 1, "no figure could be measured"),
        (("--save", "wrong.json"), 1, "results of this machine go to"),
    ],
)
def test_the_benchmark_refuses_wrong_use(arguments: tuple[str, ...], status: int, says: str):
    done = bench("--device", "cpu", *arguments)
    assert done.returncode == status, done.stdout
    assert says in done.stderr
