"""A headless browser for tests of pages: Chromium, controlled over a pipe (DevTools protocol)."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)

_SECONDS = 120  # time limit for each operation on a busy machine
_LOOK_SECONDS = 0.1
_IN, _OUT = 3, 4  # descriptors that --remote-debugging-pipe reads and writes
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
    *("--disable-background-networking", "--no-first-run", "--hide-scrollbars", "--no-proxy-server"),
)


class Tab:
    """A tab of the browser. Errors that its page logs or throws are collected in `errors`."""

    def __init__(self, browser: "_Browser", session: str) -> None:
        self._browser = browser
        self._session = session
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> Any:
        """The result of a protocol command."""
        return self._browser.command(method, self._session, parameters)

    def open(self, url: str) -> None:
        """Opens a page, which may still be loading afterwards."""
        self.command("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, or of the promise that it returns."""
        found = self.command("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def text(self, selector: str) -> str:
        """The text of the first element that matches the selector; empty if there is none."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def wait(self, selector: str, holds: Callable[[str], bool]) -> str:
        """Waits until the text of an element satisfies the condition, and returns it."""
        return wait_for(lambda: self.text(selector), holds)

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Sets the screen size that the page sees."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path) -> None:
        """Writes a PNG of the whole page."""
        taken = self.command("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(taken["data"]))

    def events(self, method: str) -> list[dict[str, Any]]:
        """The parameters of all events of a kind so far."""
        self.run("0")  # by its answer, all earlier events have been read
        seen = self._browser.seen
        return [one["params"] for one in seen if one["method"] == method and one.get("sessionId") == self._session]


def wait_for(look: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """Calls `look` until its result satisfies the condition."""
    end = time.monotonic() + _SECONDS
    while not holds(found := look()):
        assert time.monotonic() < end, f"there is still {found!r}"
        time.sleep(_LOOK_SECONDS)
    return found


class _Browser:
    def __init__(self, to: int, back: int) -> None:
        self._to = to
        self._back = back
        self._rest = b""
        self._number = 0
        self.seen: list[dict[str, Any]] = []

    def command(self, method: str, session: str | None, parameters: dict[str, Any]) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, (method, said["error"])
                return said["result"]
            self.seen.append(said)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._back], [], [], _SECONDS)[0], "the browser says nothing"
            more = os.read(self._back, 1 << 16)
            assert more, "the browser has ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Callable[[], Tab]]:
    """Starts the browser; the function opens a tab.

    Args:
        folder: where the browser writes.
    """
    assert PROGRAM is not None
    (theirs_in, to), (back, theirs_out) = os.pipe(), os.pipe()
    command = [PROGRAM, *_OPTIONS, f"--user-data-dir={folder / 'browser'}", "about:blank"]
    script = f'exec "$@" {_IN}<&{theirs_in} {_OUT}>&{theirs_out} 2>"$LOG"'
    process = subprocess.Popen(
        ["bash", "-c", script, "browser", *command],
        pass_fds=(theirs_in, theirs_out),
        env={**os.environ, "LOG": str(folder / "browser.log")},
    )
    os.close(theirs_in)
    os.close(theirs_out)
    running = _Browser(to, back)

    def tab() -> Tab:
        target = running.command("Target.createTarget", None, {"url": "about:blank"})["targetId"]
        attached = running.command("Target.attachToTarget", None, {"targetId": target, "flatten": True})
        return Tab(running, attached["sessionId"])

    try:
        yield tab
    finally:
        process.kill()
        process.wait()
        os.close(to)
        os.close(back)
