"""Ctrl-C during a fetch: it ends between two chunks, with status 130, and leaves nothing on any level."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_interrupt import interrupted

from headrace import _core

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

# Uninterrupted, this takes hours; the limit leaves enough time on a busy machine.
SOON = 60.0


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    numbers = np.random.default_rng(5).integers(0, 1 << 40, 1 << 21)
    pq.write_table(pa.table({f"c{i}": numbers + i for i in range(4)}), path, row_group_size=1 << 17)
    return path


@pytest.mark.parametrize(
    ("options", "when"),
    [
        (("--runs", "1000"), "Run 2 of"),
        (("--runs", "1000", "--device-budget", "6MiB"), "streaming"),
        (("--runs", "1000", "--mode", "sync", "--host-memory", "pageable", "--threads", "1"), "Run 2 of"),
    ],
)
def test_the_verb_ends(table: Path, options: tuple[str, ...], when: str):
    result = interrupted("fetch", str(table), "--to", "cpu", *options, when=when)
    assert result.returncode == 130
    measured = when == "Run 2 of"  # during the first streaming run there are no results yet
    assert ("2,097,152 rows, 4 columns, 16 fragments" in result.stdout) == measured
    assert bool(result.stdout) == measured
    assert "Traceback" not in result.stderr


def code_of(act: str) -> str:
    """A source with chunks of 20 ms each, enough for hours, and its use."""
    return f"""
import signal, threading, time
import pyarrow as pa
import headrace
from headrace import _core
from headrace.fetch.fetched import FetchedTable

reads = 0
first = threading.Event()

def read(fragment, columns):
    global reads
    reads += 1
    first.set()
    time.sleep(0.02)
    return pa.record_batch({{"a": [fragment] * 1000}})

count = 1 << 20
schema = pa.schema([pa.field("a", pa.int64(), False)])
source = _core.FetchSource.of_reader(schema, [("", i, 1000) for i in range(count)], [([], 8000)] * count, read)
levels = headrace.fetch.Levels("cpu", cpu_bytes=64 << 20, device_bytes=64 << 20, slab_bytes=1 << 20)
how = headrace.fetch.FetchOptions(threads=3)

def press():
    first.wait()
    time.sleep(0.2)
    signal.raise_signal(signal.SIGINT)

threading.Thread(target=press).start()
started = time.monotonic()
try:
{act}
except KeyboardInterrupt:
    seconds = time.monotonic() - started
else:
    raise SystemExit("it came to its end")
pinned = [levels.statistics(level).pinned for level in ("disk", "cpu", "device")]
before = reads
time.sleep(0.2)
levels.forget(source)
used = [levels.statistics(level).used_bytes for level in ("disk", "cpu", "device")]
print(pinned, used, reads - before, before > 0, seconds < {SOON})
"""


@pytest.mark.parametrize(
    "act",
    [
        "    _core.Fetch(levels, source, [0], options=how).wait()",
        "    _core.Fetch(levels, source, [0], to='cpu', options=how).wait()",
        "    _core.Fetch(levels, source, [0], options=_core.FetchOptions(threads=3, timeline_spans=100)).wait()",
        "    FetchedTable(_core.Fetch(levels, source, [0], options=how), None, ['a'], [0]).wait(lambda progress: None)",
        "    fetched = _core.Fetch(levels, source, [0], options=how)\n    fetched.chunk(0, 0)",
    ],
)
def test_a_fetch_of_python_ends_and_frees_everything(act: str):
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code_of(act)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == "[0, 0, 0] [0, 0, 0] 0 True True\n", done.stdout + done.stderr
    assert time.monotonic() - started < 2 * SOON
