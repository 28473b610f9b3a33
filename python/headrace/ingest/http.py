"""HTTP uploads: what `curl --upload-file` sends, and the answer that it waits for."""

import re
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from headrace._core import Receiver, http_chunks
from headrace.ingest.answering import Answering, Skip, Some, Talk, Wants
from headrace.ingest.body import Body

_UPLOAD_MOST = 1 << 62
_LINE_OF_CHUNK_MOST = 4096
_CHUNKS_MOST = 1 << 19
"""Maximum number of chunks whose places are kept: those of one frame."""
_FIELDS_MOST = 128
"""Maximum number of header fields or trailers: each costs microseconds, during which all other senders wait."""
_LINGER_SECONDS = 30.0
"""Time for a client to close its end after the answer."""

_REQUEST = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")

Reading = Generator[Wants, bytes, bytes]
Places = NDArray[np.uint64]


class _RefusedError(Exception):
    """The answer to an invalid or unsupported request."""

    def __init__(self, status: str, text: str, *more: str) -> None:
        super().__init__(status)
        self.status = status
        self.text = text
        self.more = more


class _Input:
    """The bytes of one connection, by lines (RFC 9112 2.2: lines end with CRLF and nothing else)."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._at = 0
        self.offset = 0
        """Stream offset of the next byte."""
        self.at_once = 1 << 12
        """Maximum bytes taken at once."""

    def line(self, most: int, too_long: str) -> Reading:
        """The next line without its end, at most `most` bytes."""
        searched = self._at
        while True:
            found = _CONTROL.search(self._kept, searched)
            if (len(self._kept) if found is None else found.start()) - self._at > most:
                raise _RefusedError(too_long, f"a line has more than {most} bytes\n")
            if found is not None and found[0] != b"\r":
                raise _RefusedError("400 Bad Request", "a line must end with CRLF and contain no control characters\n")
            if found is not None and found.end() < len(self._kept):
                break
            searched = len(self._kept) if found is None else found.start()
            searched -= yield from self._fill()
        if self._kept[found.end()] != ord("\n"):
            raise _RefusedError("400 Bad Request", "a line must end with CRLF, not with CR alone\n")
        line = bytes(self._kept[self._at : found.start()])
        self._pass(found.end() + 1 - self._at)
        return line

    def skip(self, count: int) -> Generator[Wants, bytes, None]:
        """Skips this many bytes once they have arrived."""
        here = min(count, len(self._kept) - self._at)
        self._pass(here)
        if here < count:
            yield Skip(count - here)
            self.offset += count - here

    def whole_chunks(self) -> tuple[Places, Places]:
        """Skips completely received chunks, except the last, empty one; returns the begins and ends of their data.

        Reading chunks of one byte line by line would cost a hundred times as much, and all other senders wait
        meanwhile.
        """
        with memoryview(self._kept) as kept, kept[self._at :] as rest:
            taken, begins, ends = http_chunks(rest, self.offset)
        self._pass(taken)
        return begins, ends

    def exactly(self, count: int) -> Reading:
        """The next `count` bytes."""
        while len(self._kept) - self._at < count:
            yield from self._fill()
        taken = bytes(self._kept[self._at : self._at + count])
        self._pass(count)
        return taken

    def _pass(self, count: int) -> None:
        self._at += count
        self.offset += count

    def _fill(self) -> Generator[Wants, bytes, int]:
        """Waits for more bytes; returns by how much the kept bytes have moved."""
        moved, self._at = self._at, 0
        del self._kept[:moved]
        self._kept += yield Some(self.at_once)
        return moved


class HttpUploads(Answering):
    """The server side of HTTP/1.1 for PUT and POST: one upload per connection, with a Content-Length or in chunks.

    Any path is accepted. Once all of an upload has arrived, it is answered with 200, and the connection is closed.

    Args:
        receiver: its connections are served.
        head_bytes: maximum size of a request's head; a longer one is answered with 431.
        head_seconds: time in which the head must arrive; otherwise it is answered with 408.
    """

    def __init__(self, receiver: Receiver, *, head_bytes: int = 32 << 10, head_seconds: float = 20.0) -> None:
        super().__init__(receiver)
        self._head_bytes = head_bytes
        self._head_seconds = head_seconds

    def talk(self, stream: int) -> Talk:
        """Reads one request, and answers when all of it has arrived."""
        try:
            self.deadline(stream, self._head_seconds)
            count = yield from self._upload(stream)
            self._answer(stream, "200 OK", f"{count} bytes\n")
        except _RefusedError as refused:
            self._answer(stream, refused.status, refused.text, *refused.more)
        except TimeoutError:
            self._answer(stream, "408 Request Timeout", f"a head must arrive within {self._head_seconds:g} s\n")

    def _upload(self, stream: int) -> Generator[Wants, bytes, int]:
        """Reads a complete request; returns the number of bytes of its body."""
        reader = _Input()
        too_long = "431 Request Header Fields Too Large"
        request = yield from reader.line(self._head_bytes, too_long)
        if not request:  # RFC 9112 2.2: some clients send an empty line first
            request = yield from reader.line(self._head_bytes, too_long)
        method = _REQUEST.fullmatch(request)
        if method is None:
            raise _RefusedError("400 Bad Request", "this is not an HTTP/1.1 request\n")
        fields = yield from self._fields(reader, self._head_bytes - len(request))
        if method[1] not in (b"PUT", b"POST"):
            raise _RefusedError("405 Method Not Allowed", "only uploads are accepted: PUT, POST\n", "Allow: PUT, POST")
        length = _length(fields, version_1_0=method[3] == b"0")
        self.deadline(stream, None)
        if any(b"100-continue" in value.lower() for value in fields.get(b"expect", [])) and method[3] != b"0":
            self.say(stream, b"HTTP/1.1 100 Continue\r\n\r\n")
        if length is None:
            return (yield from self._chunks(stream, reader))
        body = self.open_body(stream)
        body.add(reader.offset, reader.offset + length)
        body.whole = False
        yield from reader.skip(length)
        body.whole = True
        return length

    @staticmethod
    def _fields(reader: _Input, room: int) -> Generator[Wants, bytes, dict[bytes, list[bytes]]]:
        """Values of each header field or trailer, by lower-case name, up to the empty line."""
        fields: dict[bytes, list[bytes]] = {}
        count = 0
        while line := (yield from reader.line(max(room, 0), "431 Request Header Fields Too Large")):
            room -= len(line) + 2
            count += 1
            if count > _FIELDS_MOST:
                text = f"more than {_FIELDS_MOST} header fields\n"
                raise _RefusedError("431 Request Header Fields Too Large", text)
            found = _FIELD.fullmatch(line)
            if found is None:  # includes a space before the colon, and a line that continues the previous one
                raise _RefusedError(
                    "400 Bad Request", "a header has the form 'Name: value', without blanks before the colon\n"
                )
            fields.setdefault(found[1].lower(), []).append(found[2])
        return fields

    def _chunks(self, stream: int, reader: _Input) -> Generator[Wants, bytes, int]:
        """Reads a body in chunks (RFC 9112 7.1); returns its number of bytes."""
        body = self.open_body(stream)
        body.whole = False
        reader.at_once = 1 << 16  # Python reads the incomplete chunk at the end
        total = 0
        while True:
            total = _add_chunks(body, total, *reader.whole_chunks())
            size = _chunk_size((yield from reader.line(_LINE_OF_CHUNK_MOST, "400 Bad Request")))
            if size == 0:
                break
            begin = np.array([reader.offset], np.uint64)
            total = _add_chunks(body, total, begin, begin + np.uint64(size))
            yield from reader.skip(size)
            if (yield from reader.exactly(2)) != b"\r\n":
                raise _RefusedError("400 Bad Request", "a chunk is longer than its stated size\n")
        self.deadline(stream, self._head_seconds)
        yield from self._fields(reader, self._head_bytes)
        self.deadline(stream, None)
        body.whole = True
        return total

    def _answer(self, stream: int, status: str, text: str, *more: str) -> None:
        head = [f"HTTP/1.1 {status}", "Content-Type: text/plain", f"Content-Length: {len(text)}", "Connection: close"]
        self.say(stream, "\r\n".join([*head, *more, "", text]).encode())
        self.receiver.close(stream)
        self.deadline(stream, _LINGER_SECONDS)


def _chunk_size(line: bytes) -> int:
    found = _CHUNK.fullmatch(line)
    if found is None:
        raise _RefusedError("400 Bad Request", "a chunk must begin with its size in hexadecimal digits\n")
    return int(found[1], 16)


def _add_chunks(body: Body, total: int, begins: Places, ends: Places) -> int:
    """Adds the bytes of further chunks to the body; returns its total number of bytes."""
    total += int((ends - begins).sum())
    if total > _UPLOAD_MOST:
        raise _RefusedError("413 Content Too Large", f"an upload may have at most {_UPLOAD_MOST} bytes\n")
    if len(body) + len(begins) > _CHUNKS_MOST:
        raise _RefusedError("413 Content Too Large", f"more than {_CHUNKS_MOST} chunks in one frame\n")
    body.extend(begins, ends)
    return total


def _length(fields: dict[bytes, list[bytes]], *, version_1_0: bool) -> int | None:
    """The length of a body (RFC 9112 6); None if it comes in chunks."""
    codings = fields.get(b"transfer-encoding")
    lengths = fields.get(b"content-length")
    if codings is not None:
        if lengths is not None:
            raise _RefusedError("400 Bad Request", "Content-Length and Transfer-Encoding exclude each other\n")
        if version_1_0:
            raise _RefusedError("400 Bad Request", "HTTP/1.0 has no Transfer-Encoding\n")
        if [coding.lower() for coding in codings] != [b"chunked"]:
            raise _RefusedError("501 Not Implemented", "the only supported Transfer-Encoding is chunked\n")
        return None
    if lengths is None:
        raise _RefusedError("411 Length Required", "an upload needs a Content-Length or chunks\n")
    if len(lengths) != 1 or re.fullmatch(rb"[0-9]+", lengths[0]) is None:
        raise _RefusedError("400 Bad Request", "a Content-Length must be a single number\n")
    if len(lengths[0]) > len(str(_UPLOAD_MOST)) or int(lengths[0]) > _UPLOAD_MOST:
        raise _RefusedError("413 Content Too Large", f"an upload may have at most {_UPLOAD_MOST} bytes\n")
    return int(lengths[0])
