"""Spans: placements, rights, moves, and arrays over their memory."""

import gc
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import numpy as np
import pytest

import headrace
from headrace import Placement, Span
from headrace.span import PAGE_BYTES, Place, Right

HOST = Place.host()
CPU = Place.parse("cpu")


def small_span(**options: object) -> Span:
    return Span("cpu", 3 * PAGE_BYTES - 100, Placement.interleaved([("cpu", 2), ("host", 1)]), **options)


@pytest.fixture
def span() -> Iterator[Span]:
    made = small_span()
    yield made
    made.release()


def test_places_are_values():
    assert Place.parse("cpu") == Place.on("cpu:0") == Place.on(headrace.Device.parse("cpu"))
    assert HOST.is_host
    assert HOST.device is None
    assert CPU.device == headrace.Device.parse("cpu")
    assert {HOST, Place.parse("host"), CPU} == {HOST, CPU}
    assert repr(CPU) == "headrace.span.Place.parse('cpu:0')"
    with pytest.raises(headrace.UsageError, match="'moon'"):
        Place.parse("moon")


def test_placements_take_names():
    assert Placement.all("cpu").pages(2) == [CPU, CPU]
    assert Placement.interleaved([("cpu", 2), (HOST, 1)]).pages(6) == [CPU, CPU, HOST, CPU, CPU, HOST]
    assert [place.name for place in Placement.blocked(["cpu:1", "host"]).pages(3)] == ["cpu:1", "cpu:1", "host"]
    assert Placement.map(["host", CPU]).pages(2) == [HOST, CPU]
    assert Placement.budget("cpu", 2 * PAGE_BYTES).pages(4).count(CPU) == 2
    assert Placement.budget("cpu", PAGE_BYTES, heat=[1, 9, 3]).pages(3) == [HOST, CPU, HOST]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Placement.interleaved([]), "need at least one share"),
        (lambda: Placement.interleaved([("host", 0)]), "weight 0"),
        (lambda: Placement.map(["cpu"]).pages(2), "for 1 pages"),
        (lambda: Placement.blocked(["cuda:99"]), "cuda:99"),
        (lambda: Span("cpu", 0, Placement.all("cpu")), "needs at least one byte"),
        (lambda: Span("cpu", 9, Placement.map(["cpu", "cpu"])), "for 2 pages"),
    ],
)
def test_what_cannot_be_is_a_usage_error(make, why: str):
    with pytest.raises(headrace.UsageError, match=why):
        make()


def test_more_than_there_is_is_a_device_error():
    free = headrace.Device.parse("cpu").memory().free_bytes
    with pytest.raises(headrace.DeviceError, match="free") as caught:
        Span("cpu", free + (1 << 40), Placement.all("cpu"))
    assert caught.value.code is headrace.Errc.out_of_memory


def test_a_span_says_what_lies_where(span: Span):
    assert span.bytes == len(span) == 3 * PAGE_BYTES - 100
    assert span.page_count == 3
    assert span.address % PAGE_BYTES == 0
    assert span.places == [CPU, CPU, HOST]
    assert [(use.place, use.page_count, use.bytes) for use in span.statistics().places] == [
        (CPU, 2, 2 * PAGE_BYTES),
        (HOST, 1, PAGE_BYTES),
    ]
    assert repr(span) == "<headrace.Span of 6 MiB on cpu:0: 3 pages>"


def test_numpy_is_a_view(span: Span):
    array = span.numpy()
    assert array.shape == (span.bytes,)
    assert array.ctypes.data == span.address
    array[:] = np.arange(span.bytes, dtype=np.uint8)
    assert np.array_equal(np.frombuffer(span, dtype=np.uint8), array)
    assert bytes(memoryview(span)[254:258]) == b"\xfe\xff\x00\x01"
    del array


def test_array_has_type_and_shape(span: Span):
    span.numpy()[:] = 0
    matrix = span.array(np.float32, (10, 7), offset=8)
    matrix[3, 4] = 1.5
    assert span.numpy()[8 + 4 * 25 : 8 + 4 * 26].tobytes() == np.float32(1.5).tobytes()
    assert span.array("<u8").shape == (span.bytes // 8,)
    assert span.array(np.uint8, (0, 5), offset=span.bytes).shape == (0, 5)
    for shape, offset in [((1 << 62, 4), 0), (-1, 0), (span.bytes + 1, 0), (None, span.bytes + 1), (1, span.bytes)]:
        with pytest.raises(headrace.UsageError, match="not in the span"):
            span.array(np.uint8, shape, offset)
    del matrix


def test_dlpack_is_a_view(span: Span):
    assert span.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(span)
    assert array.ctypes.data == span.address
    assert array.dtype == np.uint8
    array[5] = 77
    assert span.numpy()[5] == 77
    del array


def test_a_cpu_span_is_no_cuda_array(span: Span):
    assert not hasattr(span, "__cuda_array_interface__")


def test_arrays_keep_the_span():
    gc.collect()  # leftovers of earlier tests
    before = headrace.Device.parse("cpu").memory().free_bytes
    array = small_span().numpy()
    view = memoryview(small_span())
    tensor = np.from_dlpack(small_span())
    gc.collect()
    array[:] = 3
    assert headrace.Device.parse("cpu").memory().free_bytes < before
    assert int(array.sum()) == 3 * array.size
    del array, view, tensor
    gc.collect()
    assert headrace.Device.parse("cpu").memory().free_bytes == before


@pytest.mark.parametrize("look", [Span.numpy, memoryview, np.from_dlpack])
def test_a_span_is_not_taken_from_under_an_array(span: Span, look):
    array = look(span)
    with pytest.raises(headrace.UsageError, match="1 arrays or operators use the span"):
        span.release()
    with pytest.raises(headrace.UsageError, match="host arrays use the span"):
        span.allow_host(Right.none)
    del array
    gc.collect()
    span.release()


def test_the_host_sees_only_what_it_may_read(span: Span):
    span.allow_host(Right.read, range(1, 2))
    assert not span.numpy().flags.writeable
    assert memoryview(span).readonly
    assert not np.from_dlpack(span).flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.frombuffer(span, dtype=np.uint8).setflags(write=True)
    span.allow_host(Right.none, range(2, 3))
    assert span.host_right(1) is Right.read
    assert not span.host_readable
    with pytest.raises(BufferError, match="the host cannot read page 2"):
        memoryview(span)
    for look in (Span.numpy, np.from_dlpack):
        with pytest.raises(headrace.UsageError, match="the host cannot read page 2"):
            look(span)


def test_rights(span: Span):
    assert span.right("cpu", 0) is Right.read_write
    assert span.right("cpu:1", 0) is Right.none
    span.allow("cpu", Right.read, range(2))
    assert [span.right("cpu", page) for page in range(3)] == [Right.read, Right.read, Right.read_write]
    for pages in (range(4), range(0, 4, 2), range(-1, 2), range(5, 6)):
        with pytest.raises(headrace.UsageError):
            span.allow("cpu", Right.read, pages)
    with pytest.raises(TypeError, match="range"):
        span.allow("cpu", Right.read, (0, 1))  # type: ignore[arg-type]
    with pytest.raises(headrace.UsageError, match="no page 3"):
        span.right("cpu", 3)


def test_moves_keep_content_and_arrays(span: Span):
    array = span.numpy()
    array[:] = np.random.default_rng(1).integers(0, 256, span.bytes, dtype=np.uint8)
    before = array.copy()
    span.move("host")
    assert span.places == [HOST] * 3
    span.move("cpu:1", range(1, 3))
    span.move(Placement.blocked(["cpu", "cpu:1", "host"]))
    assert [place.name for place in span.places] == ["cpu:0", "cpu:1", "host"]
    assert np.array_equal(array, before)
    statistics = span.statistics()
    assert statistics.pages_moved == 2 + 2 + 2
    assert statistics.bytes_moved == 6 * PAGE_BYTES
    assert statistics.spare_pages > 0
    span.trim()
    assert span.statistics().spare_pages == 0
    with pytest.raises(headrace.UsageError, match="not in a span of 3 pages"):
        span.move("host", range(2, 4))
    del array


def test_spare_pages_are_kept_as_asked(span: Span):
    span.keep_spare_pages(2)
    span.move("host")
    assert span.statistics().spare_pages == 2
    span.keep_spare_pages(1)
    assert span.statistics().spare_pages == 1
    span.keep_spare_pages(headrace.span.SPARE_PAGES)
    span.move("cpu")
    assert span.statistics().spare_pages == 3
    with pytest.raises(TypeError):
        span.keep_spare_pages(-1)


def test_pages_may_be_larger():
    large = 4 * PAGE_BYTES
    span = Span("cpu", 3 * large - 7, Placement.all("host"), page_bytes=large)
    assert (span.page_bytes, span.page_count) == (large, 3)
    span.numpy()[:] = 5
    span.move("cpu", range(1, 3))
    assert span.places == [HOST, CPU, CPU]
    assert span.statistics().bytes_moved == 2 * large
    assert [use.bytes for use in span.statistics().places] == [large, 2 * large]
    assert (span.numpy() == 5).all()
    span.move(Placement.budget("cpu", 2 * large - 1))
    assert span.places.count(CPU) == 1
    assert Placement.budget("cpu", 2 * large).pages(3, large).count(CPU) == 2
    span.release()
    assert span.page_bytes == 0
    for size in (0, PAGE_BYTES - 1, 3 * PAGE_BYTES):
        with pytest.raises(headrace.UsageError, match="power of two"):
            Span("cpu", 1, Placement.all("cpu"), page_bytes=size)


def test_larger_pages_are_shared():
    large = 2 * PAGE_BYTES
    span = Span("cpu", 2 * large, Placement.all("cpu"), shareable=True, page_bytes=large)
    span.numpy()[:] = 3
    shared = span.share()
    assert shared.page_bytes == large
    again = Span.from_shared(headrace.span.SharedPages(2 * large, "cpu", shared.descriptors, page_bytes=large))
    assert (again.numpy() == 3).all()
    with pytest.raises(headrace.UsageError, match="4 pages, but there are 2 descriptors"):
        Span.from_shared(headrace.span.SharedPages(2 * large, "cpu", shared.descriptors))
    for descriptor in shared.descriptors:
        os.close(descriptor)


def test_sharing_with_another_process():
    span = Span("cpu", 2 * PAGE_BYTES, Placement.all("cpu"), shareable=True)
    span.numpy()[:] = 9
    mine, other = socket.socketpair()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _, descriptors, _, _ = socket.recv_fds(other, 1, 2)
            taken = Span.from_shared(headrace.span.SharedPages(2 * PAGE_BYTES, "cpu", descriptors))
            status = 0 if (taken.numpy() == 9).all() else 2
            taken.numpy()[-1] = 10
        finally:
            os._exit(status)
    shared = span.share()
    assert shared.device == headrace.Device.parse("cpu")
    socket.send_fds(mine, [b"x"], shared.descriptors)
    for descriptor in shared.descriptors:
        os.close(descriptor)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert span.numpy()[-1] == 10
    mine.close()
    other.close()


def test_host_pages_are_not_shared():
    with pytest.raises(headrace.UsageError, match="host pages cannot be exported"):
        small_span(shareable=True).share()
    with pytest.raises(headrace.UsageError, match="not made shareable"):
        Span("cpu", 1, Placement.all("cpu")).share()


def test_released_it_has_nothing():
    span = small_span()
    span.release()
    assert (span.address, span.bytes, span.page_count) == (0, 0, 0)
    assert repr(span) == "<headrace.Span, released>"
    with pytest.raises(headrace.UsageError, match="released"):
        span.numpy()
    with pytest.raises(BufferError, match="released"):
        memoryview(span)
    with pytest.raises(headrace.UsageError, match="released"):
        span.move("host")


@pytest.mark.parametrize("device", [d for d in headrace.Device.list() if d.kind == headrace.device.DeviceKind.cuda])
def test_on_cuda(device: headrace.Device):
    span = Span(device, 2 * PAGE_BYTES, Placement.all(device))
    assert span.__dlpack_device__() == (2, device.ordinal)
    interface = span.__cuda_array_interface__
    assert interface["data"] == (span.address, False)
    assert interface["shape"] == (span.bytes,)
    with pytest.raises(BufferError, match="the host cannot read page 0"):
        memoryview(span)
    span.move("host")
    span.numpy()[:] = 4
    span.move(device)
    span.move("host")
    assert (span.numpy() == 4).all()


def test_spare_pages_of_one_span_make_no_other_fail() -> None:
    program = textwrap.dedent("""
        import headrace
        from headrace import Placement, Span
        page = headrace.span.PAGE_BYTES
        first = Span("cpu:0", 40 * page, Placement.all("cpu:0"))
        first.keep_spare_pages(40)
        first.move("host")
        assert first.statistics().spare_pages == 40
        other = Span("cpu:0", 60 * page, Placement.all("cpu:0"))  # 24 are free beside the spare ones
        assert first.statistics().spare_pages == 0
        del other
        first.move("cpu:0")
        first.move("host")
        other = Span("cpu:0", 60 * page, Placement.all("host"))
        other.move("cpu:0")
        try:
            Span("cpu:0", 60 * page, Placement.all("cpu:0"))
        except headrace.DeviceError as error:
            print(error)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HEADRACE_CPU_MEMORY": "128MiB", "HEADRACE_DEVICES": "cpu"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "120 MiB on cpu:0 (8 MiB free)" in done.stdout
