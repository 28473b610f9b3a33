"""The server side of iperf3: what `iperf3 -c` expects before and after it sends."""

import functools
import json
import math
import re
import struct
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from headrace._core import Receiver
from headrace.ingest.answering import Answering, ProtocolError, Talk, Wants

_COOKIE_BYTES = 37

# States of the control connection, one byte each (iperf_api.h of iperf 3).
_TEST_START = 1
_TEST_RUNNING = 2
_TEST_END = 4
_PARAM_EXCHANGE = 9
_CREATE_STREAMS = 10
_CLIENT_TERMINATE = 12
_EXCHANGE_RESULTS = 13
_DISPLAY_RESULTS = 14
_IPERF_DONE = 16
_ACCESS_DENIED = 255
_SERVER_ERROR = 254

_NOT_IMPLEMENTED = 13  # IEUNIMP

_NOT_SERVED = ("udp", "sctp", "reverse", "bidirectional")
_JSON_MOST = 1 << 16  # bytes: results of 128 streams take some 25,000
_JSON_DEPTH_MOST = 8
_DIGITS_MOST = 19
_STREAMS_MOST = 128  # the limit of iperf3 itself
_BYTES_MOST = (1 << 63) - 1


@dataclass
class _Test:
    control: int
    """Number of the stream of its control connection."""
    cookie: bytes
    parallel: int = 0
    """Requested number of data streams; 0: not known yet."""
    streams: list[int] = field(default_factory=list)
    """The data streams, in the order in which they were opened."""
    began: float = 0.0
    received: dict[int, int] = field(default_factory=dict)
    """Bytes of each stream that has been received completely."""
    results_wanted: bool = False


class Iperf3Server(Answering):
    """Serves `iperf3 -c` like `iperf3 -s`, one test at a time: TCP towards this side, over one or several streams (-P).

    Tests in which the server would send (-R, --bidir), and those of UDP and SCTP, are refused. The data of a stream
    begins after its cookie. The results sent to the client count every byte that it sent.
    """

    def __init__(self, receiver: Receiver) -> None:
        super().__init__(receiver)
        self._test: _Test | None = None

    @property
    def busy(self) -> bool:
        """Whether a test is running."""
        return self._test is not None

    def talk(self, stream: int) -> Talk:
        """Identifies a connection: one of a new test, one of a running test, or one too many."""
        cookie = yield _COOKIE_BYTES
        test = self._test
        if test is None:
            yield from self._serve(_Test(stream, cookie))
        elif cookie == test.cookie and len(test.streams) < test.parallel:
            self._join(test, stream)
        else:
            self._state(stream, _ACCESS_DENIED)
            self.receiver.close(stream)

    def _serve(self, test: _Test) -> Talk:
        """The conversation on the control connection."""
        self._test = test
        self._state(test.control, _PARAM_EXCHANGE)
        parameters = yield from _json()
        if any(parameters.get(name) for name in _NOT_SERVED):
            self.say(test.control, struct.pack(">BII", _SERVER_ERROR, _NOT_IMPLEMENTED, 0))
            self._end_test(test)
            return
        test.parallel = _count(parameters.get("parallel", 1), _STREAMS_MOST)
        if test.parallel == 0:
            raise ProtocolError
        self._state(test.control, _CREATE_STREAMS)
        while True:
            (state,) = yield 1
            if state == _TEST_END and test.began and not test.results_wanted:
                self._state(test.control, _EXCHANGE_RESULTS)
                self._wait_for_rest(test, _sent((yield from _json())))
            elif state in (_IPERF_DONE, _CLIENT_TERMINATE):
                self._end_test(test)
                return

    def _join(self, test: _Test, stream: int) -> None:
        self.open_body(stream).add(_COOKIE_BYTES, None)
        test.streams.append(stream)
        if len(test.streams) == test.parallel:
            test.streams.sort()
            test.began = time.monotonic()
            self._state(test.control, _TEST_START)
            self._state(test.control, _TEST_RUNNING)

    def _wait_for_rest(self, test: _Test, sent: dict[int, int]) -> None:
        """Waits for data that may still be in flight on the other connections."""
        test.results_wanted = True
        for place, stream in enumerate(test.streams):
            count = sent.get(_id(place), 0)
            if stream not in test.received:
                self.when(stream, _COOKIE_BYTES + count, functools.partial(self._arrived, test, stream))
        self._tell_results(test)

    def _arrived(self, test: _Test, stream: int) -> None:
        test.received[stream] = self.seen(stream) - _COOKIE_BYTES
        self._tell_results(test)

    def _tell_results(self, test: _Test) -> None:
        if self._test is not test or not test.results_wanted or len(test.received) < test.parallel:
            return
        test.results_wanted = False
        seconds = time.monotonic() - test.began
        streams = [
            {
                "id": _id(place),
                "bytes": test.received[stream],
                "retransmits": -1,
                "jitter": 0,
                "errors": 0,
                "packets": 0,
                "start_time": 0,
                "end_time": seconds,
            }
            for place, stream in enumerate(test.streams)
        ]
        usage = dict.fromkeys(("cpu_util_total", "cpu_util_user", "cpu_util_system"), 0)
        text = json.dumps(usage | {"sender_has_retransmits": -1, "streams": streams}).encode()
        self.say(test.control, struct.pack(">I", len(text)) + text)
        self._state(test.control, _DISPLAY_RESULTS)

    def ended(self, stream: int) -> None:
        """A test ends with its control connection; an ended stream has delivered everything."""
        test = self._test
        if test is None:
            return
        if stream == test.control:
            self._test = None
        elif stream in test.streams and stream not in test.received:
            self._arrived(test, stream)

    def _end_test(self, test: _Test) -> None:
        self._test = None
        self.receiver.close(test.control)

    def _state(self, stream: int, state: int) -> None:
        self.say(stream, bytes([state]))


def _json() -> Generator[Wants, bytes, dict[str, Any]]:
    """A JSON object preceded by its length. What no iperf3 sends is a protocol error: deep nesting, endless numbers."""
    (length,) = struct.unpack(">I", (yield 4))
    if length > _JSON_MOST:
        raise ProtocolError
    text = yield length
    if _depth(text) > _JSON_DEPTH_MOST:
        raise ProtocolError
    try:
        found = json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_float)
    except (ValueError, RecursionError):
        raise ProtocolError from None
    if not isinstance(found, dict):
        raise ProtocolError
    return found


def _depth(text: bytes) -> int:
    """Upper bound on the nesting of arrays and objects: brackets in strings count as well."""
    depth = deepest = 0
    for bracket in re.finditer(rb"[\[\]{}]", text):
        depth += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _DIGITS_MOST:
        raise ValueError("a number has more digits than any iperf3 count")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _count(value: object, most: int) -> int:
    """A whole number of 0 or more; iperf3 writes large ones like 1.5e+16."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ProtocolError
    return value


def _id(place: int) -> int:
    """iperf3's number of its first, second, third stream: 1, 3, 4, ..."""
    return 1 if place == 0 else place + 2


def _sent(results: dict[str, Any]) -> dict[int, int]:
    """Sent bytes by iperf3's stream numbers, as reported by the client."""
    streams = results.get("streams")
    if not isinstance(streams, list) or len(streams) > _STREAMS_MOST:
        raise ProtocolError
    sent: dict[int, int] = {}
    for stream in streams:
        if not isinstance(stream, dict):
            raise ProtocolError
        sent[_count(stream.get("id"), _BYTES_MOST)] = _count(stream.get("bytes"), _BYTES_MOST)
    return sent
