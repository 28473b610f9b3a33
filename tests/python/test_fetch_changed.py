"""Files that change while a table has them open give an error that names them, or one consistent state."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

import headrace
from headrace import DataError, UsageError, _core
from headrace.fetch import FetchOptions, Table, col, count

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

ROWS = 40_000
GROUP = 4_000
MIB = 1 << 20


def table_from(first: int, rows: int = ROWS) -> pa.Table:
    return pa.table({"x": np.arange(rows, dtype=np.int64) + first, "f": np.arange(rows) + first / 2})


def write(path, table: pa.Table, form: str) -> None:
    """In place: the same inode and, for these tables, the same size."""
    if form == "parquet":
        pq.write_table(table, path, row_group_size=GROUP, compression="none", use_dictionary=False)
    elif form == "stream":
        with pa.OSFile(str(path), "wb") as sink, ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=GROUP)
    else:
        compression = None if form == "ipc" else form.split("-")[1]
        options = ipc.IpcWriteOptions(compression=compression)
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=GROUP)


def levels(host: str = "pinned") -> "_core.Levels":
    return headrace.fetch.Levels("cpu", cpu_bytes=64 * MIB, device_bytes=64 * MIB, host=host, slab_bytes=MIB)


@pytest.mark.parametrize("host", ["pinned", "pageable"])
@pytest.mark.parametrize("form", ["parquet", "ipc", "ipc-lz4", "stream"])
def test_a_file_written_in_place_is_an_error_whatever_lies_in_the_caches(tmp_path, form, host):
    path = tmp_path / "table"
    write(path, table_from(0), form)
    size = path.stat().st_size
    with Table.open(path, levels=levels(host)) as table:
        table.fetch(["x"], fragments=[0, 3])
        write(path, table_from(5000), form)
        assert form == "ipc-lz4" or path.stat().st_size == size
        for ask in (
            lambda: table.agg(col("x").sum()).to_arrow(),
            lambda: table.fetch(["x"]),
            lambda: table.fetch(["x"], fragments=[0]),
            lambda: list(table.stream(["x"])),
            lambda: table.filter(col("x") >= ROWS).agg(count()).to_arrow(),  # statistics exclude every row group
            lambda: table.filter(col("x") >= ROWS).agg(count()).explain(),
        ):
            with pytest.raises(DataError, match=f"{path} has changed since it was opened: open it again"):
                ask()
    with Table.open(path, levels=levels(host)) as table:
        assert table.agg(col("x").sum()).to_arrow().to_pylist() == [{"sum(x)": ROWS * (ROWS - 1) // 2 + 5000 * ROWS}]


def test_a_write_within_the_same_tick_is_seen(tmp_path):
    path = tmp_path / "table.parquet"
    for first in range(20):
        write(path, table_from(first), "parquet")
        with Table.open(path, device="cpu:0") as table:
            write(path, table_from(first + 1), "parquet")
            with pytest.raises(DataError, match="has changed"):
                table.agg(col("x").sum()).to_arrow()


def test_times_that_are_set_back_do_not_hide_a_write(tmp_path):
    path = tmp_path / "table.parquet"
    write(path, table_from(0), "parquet")
    before = path.stat()
    with Table.open(path, device="cpu:0") as table:
        write(path, table_from(1), "parquet")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_mtime_ns == before.st_mtime_ns
        with pytest.raises(DataError, match="has changed"):
            table.fetch(["x"])


@pytest.mark.parametrize("form", ["parquet", "ipc", "stream"])
def test_a_file_replaced_by_another_is_what_it_was(tmp_path, form):
    path, other = tmp_path / "table", tmp_path / "other"
    write(path, table_from(0), form)
    with Table.open(path, device="cpu:0") as table:
        table.fetch(["x"], fragments=[0])
        write(other, table_from(7), form)
        other.rename(path)
        assert table.fetch(["x", "f"]).to_arrow().equals(table_from(0))
        path.unlink()
        assert table.agg(col("x").max()).to_arrow().to_pylist() == [{"max(x)": ROWS - 1}]


def test_one_of_many_files_that_changes_is_named(tmp_path):
    for number in range(4):
        write(tmp_path / f"{number}.parquet", table_from(number * ROWS), "parquet")
    with Table.open(tmp_path, device="cpu:0") as table:
        write(tmp_path / "2.parquet", table_from(0), "parquet")
        fragments = len(table.fragments) // 4
        assert table.fetch(["x"], fragments=range(fragments)).num_rows == ROWS  # only from the first file
        with pytest.raises(DataError, match=r"2\.parquet has changed"):
            table.agg(col("x").sum()).to_arrow()


@pytest.mark.parametrize("host", ["pinned", "pageable"])
@pytest.mark.parametrize("form", ["parquet", "ipc", "ipc-lz4", "stream"])
@pytest.mark.parametrize("regrow", [False, True])
def test_a_file_cut_short_during_a_fetch_does_not_end_the_process(tmp_path, form, host, regrow):
    """In a separate process, because a crash would end it. Truncated repeatedly, at every stage."""
    script = f"""
        import os, sys, threading, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_fetch_changed import *
        path = {str(tmp_path / "table")!r}
        outcomes = set()
        data = table_from(0, 200_000)
        for number in range(6):
            write(path, data, {form!r})
            size = os.path.getsize(path)
            table = Table.open(path, levels=levels({host!r}), options=FetchOptions(threads=2))
            def cut():
                time.sleep(0.0005 * number)
                os.truncate(path, size // 3)
                if {regrow}:
                    os.truncate(path, size)
            other = threading.Thread(target=cut)
            other.start()
            try:
                got = table.fetch(["x", "f"]).to_arrow()
                assert got.equals(data), "a wrong answer"
                outcomes.add("whole")
            except DataError as error:
                assert str(error).startswith(path) and ("cut short" in str(error) or "changed" in str(error)), error
                outcomes.add("error")
            other.join()
            table.close()
        print(sorted(outcomes))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "error" in done.stdout


def test_a_column_of_a_mapped_file_that_is_looked_at_on_the_host_is_checked(tmp_path):
    path = tmp_path / "table.arrow"
    write(path, table_from(0), "ipc")
    with Table.open(path, levels=levels("pageable")) as table:
        fetched = table.fetch(["x"], to="cpu")
        assert fetched.to_arrow()["x"].to_pylist() == list(range(ROWS))
        os.truncate(path, path.stat().st_size // 3)
        with pytest.raises(DataError, match=f"{path} has been cut short"):
            fetched.to_arrow()


def test_a_fault_elsewhere_still_ends_the_process(tmp_path):
    """The guard passes on other faults, even if Python's faulthandler is installed before or after it."""
    for before, after in (("", ""), ("faulthandler.enable()", ""), ("", "faulthandler.enable()")):
        script = f"""
            import faulthandler, mmap, os
            from headrace.fetch import Table
            import pyarrow as pa, pyarrow.parquet as pq
            {before}
            pq.write_table(pa.table({{"a": [1]}}), {str(tmp_path / "t.parquet")!r})
            table = Table.open({str(tmp_path / "t.parquet")!r}, device="cpu:0")
            {after}
            with open({str(tmp_path / "own")!r}, "wb") as file:
                file.write(b"x" * 3 * mmap.PAGESIZE)
            with open({str(tmp_path / "own")!r}, "rb") as file:
                mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            os.truncate({str(tmp_path / "own")!r}, 1)
            mapping[2 * mmap.PAGESIZE]
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == -7, done.stderr  # SIGBUS
        if before or after:
            assert "Bus error" in done.stderr


def test_files_that_are_rewritten_while_they_are_read_are_never_mixed(tmp_path):
    """A writer keeps rewriting; readers get one state or an error."""
    path = tmp_path / "table.parquet"
    write(path, table_from(0), "parquet")
    stop = threading.Event()

    def rewrite():
        first = 0
        while not stop.is_set():
            first += 1
            write(path, table_from(first), "parquet")
            time.sleep(0.002)

    writer = threading.Thread(target=rewrite)
    writer.start()
    whole = 0
    told = []
    try:
        for _ in range(60):
            try:
                with Table.open(path, device="cpu:0") as table:
                    x = table.fetch(["x"]).to_arrow()["x"].to_numpy()
                assert np.array_equal(x - x[0], np.arange(ROWS))
                whole += 1
            except (DataError, UsageError) as error:
                told.append(str(error))
    finally:
        stop.set()
        writer.join()
    assert whole + len(told) == 60
    assert told
    assert all(str(path) in text for text in told)


def test_a_pipe_is_refused_at_once(tmp_path):
    path = tmp_path / "pipe.parquet"
    os.mkfifo(path)
    with pytest.raises(UsageError, match=f"{path} is not a file but a pipe"):
        Table.open(path)
    with pytest.raises(UsageError, match="/dev/null is not a file but a device"):
        Table.open("/dev/null")
    write(tmp_path / "table.parquet", table_from(0), "parquet")
    with Table.open(tmp_path, device="cpu:0") as table:  # of a folder, only files are taken
        assert table.num_rows == ROWS


def test_more_files_than_are_read_at_once(tmp_path):
    """Only a limited number of descriptors is open besides those of the mappings."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(100):
        pq.write_table(pa.table({"x": [number], "s": [f"{number}"]}), tmp_path / f"{number:03}.parquet")
    with Table.open(tmp_path, device="cpu:0") as table:
        table.levels.clear("cpu")
        for _ in range(2):
            got = table.fetch(options=FetchOptions(threads=3)).to_arrow()
            assert got["x"].to_pylist() == list(range(100))
            assert got["s"].to_pylist() == [f"{number}" for number in range(100)]
            table.levels.clear("device")
            table.levels.clear("cpu")
        assert len(list(Path("/proc/self/fd").iterdir())) < before + 100 + 64 + 16
