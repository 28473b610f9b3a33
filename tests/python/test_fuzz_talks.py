"""Almost valid HTTP and iperf3 conversations, in arbitrary pieces: each ends only itself."""

import json
import logging
import random
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import mutation
import pytest

from headrace.ingest import HttpUploads, Iperf3Server, answering

ROUNDS = 3000


@dataclass
class Opened:
    stream: int


@dataclass
class Ended:
    stream: int
    reason: str = "finished"


class Piece:
    """Bytes of a stream from an offset, as part of a frame."""

    def __init__(self, stream: int, stream_offset: int, data: bytes) -> None:
        self.stream = stream
        self.stream_offset = stream_offset
        self.bytes = len(data)
        self._data = data

    def to_host(self, at: int) -> "Piece":
        return Piece(self.stream, self.stream_offset + at, self._data[at:])

    @property
    def data(self) -> memoryview:
        return memoryview(self._data)


@dataclass
class Told:
    """What was sent on one connection."""

    said: bytearray = field(default_factory=bytearray)
    closed: bool = False
    reset: bool = False
    body: tuple[tuple[int, int], ...] = ()
    whole: bool | None = None


class FakeReceiver:
    """A fake receiver that records answers, and delivers bytes like a real one."""

    def __init__(self) -> None:
        self.told: dict[int, Told] = {}
        self._came: dict[int, int] = {}

    def serve(self, make: Callable[["FakeReceiver"], answering.Answering]) -> None:
        self.protocol = make(self)

    def peek(self, stream: int, offset: int, least: int = 0) -> None:
        assert offset >= 0
        assert least >= 0
        assert stream in self.told

    def send(self, stream: int, data: bytes) -> None:
        assert not self.told[stream].closed
        self.told[stream].said += data

    def close(self, stream: int) -> None:
        self.told[stream].closed = True

    def reset(self, stream: int) -> None:
        self.told[stream].reset = True

    def open(self, stream: int) -> None:
        self.told[stream] = Told()
        self._came[stream] = 0
        self.protocol.take(Opened(stream))  # type: ignore[arg-type]

    def bring(self, stream: int, data: bytes) -> None:
        if self.told[stream].reset:
            return
        piece = Piece(stream, self._came[stream], data)
        self._came[stream] += len(data)
        self.protocol.take(piece)  # type: ignore[arg-type]

    def end(self, stream: int) -> None:
        body = self.protocol.body(stream)
        if body is not None:
            self.told[stream].body = tuple(map(tuple, body.within(0, 1 << 62).tolist()))
            self.told[stream].whole = body.whole
        self.protocol.take(Ended(stream))  # type: ignore[arg-type]
        self.protocol.take(None)


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "StreamOpened", Opened)
    monkeypatch.setattr(answering, "StreamEnded", Ended)


class Failures(logging.Handler):
    """Conversations that failed with an unexpected exception."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


@pytest.fixture
def failures() -> Failures:
    made = Failures()
    logger = logging.getLogger("headrace.ingest")
    logger.addHandler(made)
    try:
        yield made
    finally:
        logger.removeHandler(made)


REQUESTS = (
    b"PUT /a HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc",
    b"POST /b?c HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 12\r\n\r\nabcdefghijkl",
    b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5;x=y\r\ndefgh\r\n0\r\nTrailer: t\r\n\r\n",
    b"\r\nPUT / HTTP/1.0\r\nContent-Length:\t0 \r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
)
HTTP_TOKENS = (
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "\r\n\r\n",
    " :",
    "0\r\n",
)
ANSWER = re.compile(
    rb"(?:HTTP/1\.1 100 Continue\r\n\r\n)?HTTP/1\.1 (\d{3}) [^\r\n]*\r\n(?:[^\r\n]+\r\n)+\r\n(.*)", re.DOTALL
)


def http(parts: list[bytes]) -> Told:
    receiver = FakeReceiver()
    receiver.serve(HttpUploads)  # type: ignore[arg-type]
    receiver.open(0)
    for part in parts:
        receiver.bring(0, part)
    receiver.end(0)
    return receiver.told[0]


def test_requests_are_answered_alike_however_they_are_cut(failures: Failures):
    mutator = mutation.Mutator(REQUESTS, HTTP_TOKENS)
    statuses = set()
    for number, choose in mutation.cases(ROUNDS):
        request = mutator.make(choose)
        whole = http([request])
        cut = http(mutation.pieces(request, choose))
        assert whole == cut, (number, request)
        assert not failures.seen, (number, request, failures.seen)
        assert not whole.reset, (number, request)
        statuses.add(check_answer(request, whole))
    assert statuses >= {None, b"200", b"400", b"405", b"411", b"413", b"501"}


def check_answer(request: bytes, told: Told) -> bytes | None:
    """Checks that there is an answer, and that it is right as far as this shows without parsing the request."""
    found = ANSWER.fullmatch(bytes(told.said))
    if found is None:
        assert bytes(told.said) in (b"", b"HTTP/1.1 100 Continue\r\n\r\n"), request
        assert not told.closed, request
        return None
    assert told.closed, request
    if found[1] == b"200":
        head = request.partition(b"\r\n\r\n")[0]
        count = sum(end - begin for begin, end in told.body)
        assert found[2] == b"%d bytes\n" % count, request
        assert told.whole is True, request
        assert all(end <= len(request) for _, end in told.body), request
        assert not re.search(rb"\r(?!\n)|(?<!\r)\n", head), request
        lengths = re.findall(rb"(?im)^content-length:[ \t]*([0-9]+)[ \t]*\r?$", head)
        assert lengths == [] or (len(lengths) == 1 and int(lengths[0]) == count), request
    else:
        assert told.whole is not True, request
    return found[1]


PARAMETERS = b'{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":2,"len":131072,"client_version":"3.12"}'
RESULTS = b'{"cpu_util_total":0.1,"sender_has_retransmits":1,"streams":[{"id":1,"bytes":700},{"id":3,"bytes":0}]}'
JSON_TOKENS = (
    '"parallel":',
    '"bytes":',
    '"streams":',
    '{"id":1,"bytes":1.5e+16}',
    '"reverse":true,',
    "[[]]",
    "128",
    "129",
)
COOKIE = b"c" * 36 + b"\0"
TEST_DONE = b"\x10"


def message(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


class Talk:
    """A client of a server: a control connection and two data connections, each with its data per phase."""

    def __init__(self, receiver: FakeReceiver, choose: random.Random, parameters: bytes, results: bytes) -> None:
        self._receiver = receiver
        self._choose = choose
        self._parameters = parameters
        self._results = results

    def run(self, first: int, cookie: bytes = COOKIE) -> bytes:
        """Returns what the control connection was sent. All connections end, in any order."""
        receiver = self._receiver
        control, *data = streams = [first, first + 1, first + 2]
        receiver.open(control)
        self._bring(control, cookie + self._parameters)
        for stream in data:
            receiver.open(stream)
            self._bring(stream, cookie + bytes(700 if stream == data[0] else 0))
        self._bring(control, b"\x04" + self._results)
        self._bring(control, TEST_DONE)
        self._choose.shuffle(streams)
        for stream in streams:
            receiver.end(stream)
        assert not receiver.protocol.busy
        return bytes(receiver.told[control].said)

    def _bring(self, stream: int, data: bytes) -> None:
        for part in mutation.pieces(data, self._choose):
            self._receiver.bring(stream, part)


def test_tests_of_iperf3_end_alone_whatever_is_said(failures: Failures):
    mutator = mutation.Mutator((PARAMETERS, RESULTS), JSON_TOKENS)
    raw = mutation.Mutator((message(PARAMETERS), message(RESULTS), COOKIE))
    receiver = FakeReceiver()
    receiver.serve(Iperf3Server)  # type: ignore[arg-type]
    outcomes = set()
    for number, choose in mutation.cases(ROUNDS):
        hostile = [message(mutator.make(choose)), raw.make(choose), message(PARAMETERS), message(RESULTS)]
        parameters = message(PARAMETERS) if choose.random() < 0.5 else choose.choice(hostile)
        said = Talk(receiver, choose, parameters, choose.choice(hostile)).run(6 * number)
        outcomes.add(len(said) > 10)
        assert not failures.seen, (number, failures.seen)
        # The next client is served normally.
        right = Talk(receiver, choose, message(PARAMETERS), message(RESULTS)).run(6 * number + 3)
        assert right[:5] == b"\x09\x0a\x01\x02\x0d", (number, right)
        told = json.loads(right[9:-1])
        assert [stream["bytes"] for stream in told["streams"]] == [700, 0], number
        receiver.told.clear()
    assert outcomes == {False, True}
