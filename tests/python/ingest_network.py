"""Shared by tests of receivers that receive what this machine's kernel sends."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import headrace
from headrace import ingest

GUARD_SECONDS = 240  # long enough for any machine
BYTES = headrace.base.parse_bytes(os.environ.get("HEADRACE_INGEST_BYTES", "64MiB"))
"""Number of bytes that tests of complete streams send."""
SMALL = ("--frame", "256KiB", "--to", "cpu", "--ring", "16MiB")


@contextmanager
def receiver(**options: Any) -> Iterator[ingest.Receiver]:
    """A TCP receiver on the CPU with small frames; skips the test without the necessary rights."""
    given = {"frame": "1MiB", "buffers": 4, "to": "cpu", "ring": "16MiB"} | options
    try:
        made = ingest.tcp(":9000", **given)
    except headrace.Error as error:
        if error.code in (headrace.Errc.no_permission, headrace.Errc.not_supported):
            pytest.skip(str(error))
        raise
    with made:
        yield made


class Started:
    """The verb as a process, which prints the address it listens on."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "headrace", "ingest", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "80"}
        )
        assert self.process.stderr is not None
        self.title = self.process.stderr.readline()
        if "CAP_" in self.title:
            self.process.wait()
            pytest.skip(self.title.strip())
        assert self.title.startswith("Listening on "), self.title

    @property
    def address(self) -> str:
        return self.title.split()[2].rstrip(":")

    def finish(self) -> subprocess.CompletedProcess[str]:
        out, err = self.process.communicate(timeout=GUARD_SECONDS)
        return subprocess.CompletedProcess([], self.process.returncode, out, err)


@contextmanager
def started(*arguments: object) -> Iterator[Started]:
    made = Started(*arguments)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def without(*capabilities: str) -> list[str]:
    """The prefix that runs a command without some capabilities; skips the test if none can be dropped."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("not root, or no setpriv: rights cannot be given up")
    lacks = ",".join(f"-{capability}" for capability in capabilities)
    return ["setpriv", f"--bounding-set={lacks}", f"--inh-caps={lacks}"]
