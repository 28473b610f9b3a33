"""Concurrent queries on levels too small for all of them: each waits, and none is refused."""

import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import Device, DeviceError, Errc, UsageError, _core
from headrace.fetch import Levels, Table, col, count

MIB = 1 << 20
KIB = 1 << 10
DEVICES = [device.name for device in Device.list()]
pytestmark = [
    pytest.mark.parametrize("device", DEVICES),
    pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB"),
]
ROWS = 40_000


def write(path, seed: int) -> tuple[str, pa.Table]:
    rng = np.random.default_rng(seed)
    columns = {f"c{number}": rng.integers(0, 1 << 40, ROWS) for number in range(3)}
    table = pa.table({**columns, "s": [f"v{value % 50}" for value in columns["c0"]]})
    pq.write_table(table, path, row_group_size=ROWS // 4)
    return str(path), table


def ask(table: Table, values: pa.Table, number: int) -> None:
    """A query of one of several kinds; checks its answer."""
    kind = number % 3
    if kind == 0:
        found = table.agg(count(), *(col(f"c{i}").max() for i in range(3))).to_arrow().to_pylist()[0]
        assert found == {"count": ROWS} | {f"max(c{i})": max(values[f"c{i}"].to_pylist()) for i in range(3)}
    elif kind == 1:
        found = table.select("c1", "c2").order_by(("c1", "descending")).limit(3).to_arrow()
        assert found["c1"].to_pylist() == sorted(values["c1"].to_pylist(), reverse=True)[:3]
    else:
        found = table.group_by("s").agg(col("c2").sum()).to_arrow()
        assert sum(found["sum(c2)"].to_pylist()) == sum(values["c2"].to_pylist())


@pytest.mark.parametrize(
    ("device_bytes", "cpu_bytes"),
    # A query of three columns takes 960 KiB: one fits, or goes in windows, and two together do not.
    [(1100 * KIB, 16 * MIB), (500 * KIB, 16 * MIB), (16 * MIB, 1 * MIB)],
)
def test_none_is_refused_that_fits_alone(device, tmp_path, device_bytes, cpu_bytes):
    levels = Levels(device, cpu_bytes=cpu_bytes, device_bytes=device_bytes, slab_bytes=64 * KIB)
    files = [write(tmp_path / f"t{number}.parquet", number) for number in range(4)]
    tables = [Table.open(path, levels=levels, options=_core.FetchOptions(threads=2)) for path, _ in files]
    for number in range(3):
        ask(tables[0], files[0][1], number)  # alone
    failures: list[BaseException] = []

    def work(which: int) -> None:
        try:
            for number in range(6):
                ask(tables[which], files[which][1], number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number % len(files),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    for table in tables:
        table.close()
    assert levels.statistics("device").most_bytes <= device_bytes
    assert levels.statistics("cpu").most_bytes <= cpu_bytes
    assert [levels.statistics(level).used_bytes for level in ("disk", "cpu", "device")] == [0, 0, 0]


def test_what_never_fits_is_refused_at_once(device, tmp_path):
    path, _ = write(tmp_path / "t.parquet", 1)
    levels = Levels(device, cpu_bytes=16 * MIB, device_bytes=70 * KIB, slab_bytes=16 * KIB)
    with Table.open(path, levels=levels) as table:
        started = time.monotonic()
        with pytest.raises((UsageError, DeviceError), match="device level") as caught:
            table.agg(col("c0").max()).to_arrow()
        assert caught.value.code in {Errc.invalid_argument, Errc.out_of_memory}
        assert time.monotonic() - started < 30


def test_what_is_held_by_the_caller_is_not_waited_for(device, tmp_path):
    path, _ = write(tmp_path / "t.parquet", 1)
    other, values = write(tmp_path / "u.parquet", 2)
    levels = Levels(device, cpu_bytes=16 * MIB, device_bytes=400 * KIB, slab_bytes=16 * KIB)
    with Table.open(path, levels=levels) as table, Table.open(other, levels=levels) as second:
        held = table.fetch(["c0"])
        with pytest.raises(DeviceError, match="in use") as caught:
            second.agg(*(col(f"c{i}").max() for i in range(2))).to_arrow()
        assert caught.value.code == Errc.out_of_memory
        del held
        ask(second, values, 0)


def test_a_query_that_waits_for_another_is_interrupted(device):
    """Queries of one table take turns. The waiting one notices Ctrl-C."""
    inside = threading.Event()
    go = threading.Event()

    def read(fragment, _columns):
        inside.set()
        go.wait()
        return pa.record_batch({"a": [fragment] * 100})

    schema = pa.schema([pa.field("a", pa.int64(), False)])
    source = _core.FetchSource.of_reader(schema, [("", 0, 100)], [([], 800)], read)
    table = _core.FetchTable(Levels(device), source)
    query = (None, [], [(_core.Aggregate.count, _core.ScanExpression.column(0))], [], [], None)
    answers = []
    first = threading.Thread(target=lambda: answers.append(table.scan(*query)))
    first.start()
    inside.wait()
    threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        table.scan(*query)
    go.set()
    first.join()
    assert len(answers) == 1
