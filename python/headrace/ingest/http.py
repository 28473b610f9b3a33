"""Uploads by HTTP: what `curl --upload-file` sends, and the answer that it waits for."""

import re

from headrace.ingest.answering import Answering, Talk

_DIGITS_MOST = 18


class HttpUploads(Answering):
    """The server's end of HTTP/1.1, for PUT and POST with a Content-Length: one upload a connection.

    Whatever the path is. An upload is answered with 200 once all of it has come, and the connection closed.
    """

    def talk(self, stream: int) -> Talk:
        """Reads one head, and answers when its body has come."""
        head = yield b"\r\n\r\n"
        request, _, rest = head.decode("latin-1").partition("\r\n")
        fields = (line.partition(":") for line in rest.splitlines())
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        length = headers.get("content-length", "")
        method = re.fullmatch(r"([A-Z]+) \S+ HTTP/1\.\d", request)
        if method is None:
            self._answer(stream, "400 Bad Request", "this is no request of HTTP/1.1\n")
        elif method[1] not in ("PUT", "POST"):
            self._answer(stream, "405 Method Not Allowed", "uploads alone are taken: PUT, POST\n", "Allow: PUT, POST")
        elif not re.fullmatch(r"[0-9]+", length) or len(length) > _DIGITS_MOST or "transfer-encoding" in headers:
            self._answer(stream, "411 Length Required", "an upload must say its Content-Length\n")
        else:
            end = len(head) + int(length)
            self.set_body(stream, len(head), end)
            if "100-continue" in headers.get("expect", "").lower():
                self.say(stream, b"HTTP/1.1 100 Continue\r\n\r\n")
            self.when(stream, end, lambda: self._answer(stream, "200 OK", f"{int(length)} bytes\n"))

    def _answer(self, stream: int, status: str, text: str, *more: str) -> None:
        head = [f"HTTP/1.1 {status}", "Content-Type: text/plain", f"Content-Length: {len(text)}", "Connection: close"]
        self.say(stream, "\r\n".join([*head, *more, "", text]).encode())
        self.receiver.close(stream)
