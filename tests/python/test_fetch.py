"""Tables in files, fetched to the CPU device: every type, every kind of file, and damaged files."""

import decimal
import re
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

import headrace
from headrace import DataError, DeviceError, Errc, Error, MissingFileError, UsageError, _core
from headrace.fetch import FetchOptions, Table

pytestmark = pytest.mark.skipif(not _core.built_with_fetch, reason="built without oneTBB")

ROWS = 5000
MIB = 1 << 20


def make_table(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(7)
    numbers = np.arange(rows)

    def some(values, kind=None):
        missing = rng.random(rows) < 0.1
        return pa.array([None if none else value for value, none in zip(values.tolist(), missing, strict=True)], kind)

    return pa.table(
        {
            "flag": some(rng.random(rows) < 0.5),
            "i8": some(rng.integers(-128, 127, rows), pa.int8()),
            "u16": some(rng.integers(0, 65535, rows), pa.uint16()),
            "i32": some(rng.integers(-1000, 1000, rows), pa.int32()),
            "i64": some(numbers * 10**12),
            "f32": some(rng.random(rows), pa.float32()),
            "f64": pa.array(rng.random(rows)),
            "day": some(numbers.astype("datetime64[D]"), pa.date32()),
            "ms": some(numbers.astype("datetime64[D]"), pa.date64()),
            "when": some(numbers * 10**6).cast(pa.timestamp("us", "UTC")),
            "clock": some(numbers).cast(pa.time64("us")),
            "short_clock": some(numbers).cast(pa.int32()).cast(pa.time32("s")),
            "price": pa.array(
                [None if i % 9 == 0 else decimal.Decimal(i - 100) / 100 for i in range(rows)], pa.decimal128(14, 2)
            ),
            "name": pa.array([None if i % 13 == 0 else f"name {i * i % 17}" for i in range(rows)]),
            "large": pa.array([f"large {i % 5}" for i in range(rows)], pa.large_string()),
            "kind": pa.array([f"kind {i // 700}" for i in range(rows)]).dictionary_encode(),
            "code": pa.array([bytes([i % 3]) * 4 for i in range(rows)], pa.binary(4)),
            "raw": pa.array([b"\x00" * (i % 4) for i in range(rows)]),
        }
    )


def write(table: pa.Table, path: Path, form: str) -> Path:
    if form.startswith("parquet"):
        pq.write_table(
            table,
            path,
            row_group_size=700,
            compression=form.split("-")[1],
            use_dictionary=not form.endswith("plain"),
            data_page_version="2.0" if form.endswith("v2") else "1.0",
        )
        return path
    compression = None if form == "ipc" else form.split("-")[1]
    with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=700)
    return path


@pytest.fixture
def levels() -> "_core.Levels":
    return headrace.fetch.Levels("cpu", disk_bytes=64 * MIB, cpu_bytes=64 * MIB, device_bytes=64 * MIB, slab_bytes=MIB)


@pytest.fixture
def parquet(tmp_path) -> Path:
    return write(make_table(), tmp_path / "table.parquet", "parquet-snappy")


def read(path: Path) -> pa.Table:
    return pq.read_table(path) if path.suffix == ".parquet" else ipc.open_file(path).read_all()


def same(got: pa.Table, expected: pa.Table, typed: bool = False) -> None:
    assert got.column_names == expected.column_names
    for name in expected.column_names:
        assert got[name].to_pylist() == expected[name].to_pylist(), name
        if typed and not pa.types.is_dictionary(expected[name].type):
            assert got[name].type == expected[name].type, name


@pytest.mark.parametrize("host", ["pinned", "pageable"])
@pytest.mark.parametrize(
    "form",
    ["parquet-snappy", "parquet-zstd", "parquet-none-plain", "parquet-snappy-v2", "ipc", "ipc-lz4", "ipc-zstd"],
)
def test_every_type_comes_back_as_it_was(tmp_path, form, host):
    path = write(make_table(), tmp_path / f"table.{form.split('-')[0]}", form)
    caches = headrace.fetch.Levels("cpu", cpu_bytes=64 * MIB, device_bytes=64 * MIB, host=host, slab_bytes=MIB)
    with Table.open(path, levels=caches) as table:
        fetched = table.fetch(options=FetchOptions(threads=3))
        same(fetched.to_arrow(), read(path), typed=True)
        assert fetched.num_rows == ROWS


def test_ipc_without_plain_strings_is_not_copied_before_the_cpu_level(tmp_path):
    path = write(make_table().select(["i32", "f64", "kind", "price"]), tmp_path / "table.arrow", "ipc")
    caches = headrace.fetch.Levels("cpu", cpu_bytes=64 * MIB, device_bytes=64 * MIB, host="pageable", slab_bytes=MIB)
    with Table.open(path, levels=caches) as table:
        fetched = table.fetch(["i32", "f64", "price"])
        same(fetched.to_arrow(), read(path).select(["i32", "f64", "price"]))
        assert caches.statistics("cpu").most_bytes == 0


def test_many_files_are_one_table(tmp_path, levels):
    whole = make_table()
    for number in range(4):
        write(whole.slice(number * 1250, 1250), tmp_path / f"part-{number}.parquet", "parquet-snappy")
    for paths in (tmp_path, tmp_path / "part-*.parquet", [tmp_path / f"part-{number}.parquet" for number in range(4)]):
        with Table.open(paths if not isinstance(paths, Path) else str(paths), levels=levels) as table:
            assert len(table.files) == 4
            assert [fragment.row_group for fragment in table.fragments] == [0, 1] * 4
            same(table.fetch(["i32", "name", "kind"]).to_arrow(), whole.select(["i32", "name", "kind"]))


def test_parquet_and_ipc_of_one_schema_are_one_table(tmp_path, levels):
    whole = make_table().select(["i32", "name"])
    write(whole.slice(0, 2000), tmp_path / "a.parquet", "parquet-snappy")
    write(whole.slice(2000), tmp_path / "b.arrow", "ipc")
    with Table.open(tmp_path, levels=levels) as table:
        same(table.fetch().to_arrow(), whole)


def test_only_what_is_asked_for_is_read(parquet, levels):
    with Table.open(parquet, levels=levels) as table:
        fetched = table.fetch(["f64", "i32"], fragments=[5, 1])
        whole = make_table()
        parts = pa.concat_tables([whole.slice(3500, 700), whole.slice(700, 700)])
        same(fetched.to_arrow(), parts.select(["f64", "i32"]))
        assert fetched.progress.cpu.chunks == 4
        metadata = pq.ParquetFile(parquet).metadata
        leaf = {metadata.row_group(0).column(i).path_in_schema: i for i in range(metadata.num_columns)}
        size = sum(metadata.row_group(g).column(leaf[c]).total_compressed_size for g in (5, 1) for c in ("f64", "i32"))
        assert fetched.progress.disk.bytes == size


def test_a_second_fetch_finds_the_columns_on_the_device(parquet, levels):
    with Table.open(parquet, levels=levels) as table:
        table.fetch(["i32"])
        again = table.fetch(["i32"]).progress
        assert (again.device.hits, again.cpu.chunks, again.device.bytes) == (8, 0, 0)
        levels.clear("device")
        warm = table.fetch(["i32"]).progress
        assert (warm.device.chunks, warm.cpu.hits, warm.disk.hits) == (8, 8, 0)


def test_sync_and_one_thread_bring_the_same(parquet, levels):
    with Table.open(parquet, levels=levels) as table:
        for mode in ("async", "sync"):
            for threads in (1, 5):
                levels.clear("device")
                same(table.fetch(options=FetchOptions(mode=mode, threads=threads)).to_arrow(), make_table())


@pytest.mark.parametrize("limit", [None, 50])
def test_an_order_over_windows_keeps_equal_rows_as_they_were(tmp_path, limit):
    names = [None if i % 13 == 0 else f"name {i * i % 17}" for i in range(20_000)]
    source = pa.table({"name": names, "number": range(20_000)})
    pq.write_table(source, tmp_path / "table.parquet", row_group_size=1000)
    levels = headrace.fetch.Levels("cpu", device_bytes=64 << 10, slab_bytes=4 << 10)
    with Table.open(tmp_path / "table.parquet", levels=levels) as table:
        query = table.select("name", "number").order_by(("name", "descending"))
        found, report = (query if limit is None else query.limit(limit)).run()
    assert report.windows > 1
    assert report.order_seconds > 0
    rows = source.to_pylist()
    there = sorted((row for row in rows if row["name"] is not None), key=lambda row: row["name"], reverse=True)
    assert found.to_pylist() == (there + [row for row in rows if row["name"] is None])[:limit]


def test_a_stream_is_within_a_device_that_the_table_is_not(parquet):
    caches = headrace.fetch.Levels("cpu", cpu_bytes=8 * MIB, device_bytes=MIB // 8, slab_bytes=MIB // 32)
    whole = make_table()
    names = ["i64", "f64", "price", "name"]
    with Table.open(parquet, levels=caches) as table:
        with pytest.raises(DeviceError, match="stream them") as raised:
            table.fetch(names)
        assert raised.value.code == Errc.out_of_memory
        windows = [window.to_arrow() for window in table.stream(names)]
        assert len(windows) > 1
        same(pa.concat_tables(windows), whole.select(names))
        assert caches.statistics("device").most_bytes <= MIB // 8


def test_budgets_hold(parquet):
    budgets = {"disk_bytes": MIB // 8, "cpu_bytes": MIB // 8, "device_bytes": MIB // 4}
    caches = headrace.fetch.Levels("cpu", slab_bytes=MIB // 32, **budgets)
    with Table.open(parquet, levels=caches) as table:
        for name in table.schema.names:
            same(table.fetch([name], options=FetchOptions(threads=4)).to_arrow(), make_table().select([name]))
        for level in ("disk", "cpu", "device"):
            statistics = caches.statistics(level)
            assert statistics.most_bytes <= budgets[f"{level}_bytes"] * 1.05
        assert caches.statistics("cpu").evictions > 0
    assert [caches.statistics(level).used_bytes for level in ("disk", "cpu", "device")] == [0, 0, 0]


def test_a_budget_too_small_for_one_chunk_is_named(parquet):
    for level in ("disk", "cpu", "device"):
        caches = headrace.fetch.Levels("cpu", slab_bytes=256, **{f"{level}_bytes": 1000})
        with (
            Table.open(parquet, levels=caches) as table,
            pytest.raises(UsageError, match=rf"row group \d, column 'i64'.*the {level} level's whole budget"),
        ):
            table.fetch(["i64"])


def test_arrays_are_taken_without_a_copy(parquet, levels):
    with Table.open(parquet, columns=["f64", "i32", "price", "flag", "kind"], levels=levels) as table:
        fetched = table.fetch(fragments=[2])
        whole = make_table().slice(1400, 700)
        real = np.from_dlpack(fetched["f64"])
        assert np.array_equal(real, whole["f64"].to_numpy())
        assert real.ctypes.data == fetched["f64"].chunks[0].values.numpy().ctypes.data
        chunk = fetched["i32"].chunks[0]
        present = np.unpackbits(chunk.validity.numpy(), bitorder="little")[:700].astype(bool)
        assert present.tolist() == whole["i32"].is_valid().to_pylist()
        assert fetched["price"].chunks[0].values.numpy().shape == (700, 2)
        with pytest.raises(UsageError, match="missing values"):
            np.from_dlpack(fetched["i32"])
        with pytest.raises(AttributeError, match="CPU device"):
            _ = chunk.values.__cuda_array_interface__
        entries = fetched["kind"].dictionary
        assert [entries[i].as_py() for i in fetched["kind"].chunks[0].values.numpy()] == whole["kind"].to_pylist()
        del fetched
        assert np.array_equal(real, whole["f64"].to_numpy())


def test_columns_that_are_not_there_name_the_nearest(parquet, levels):
    with Table.open(parquet, levels=levels) as table:
        with pytest.raises(UsageError, match="no column 'prise'; did you mean price"):
            table.fetch(["prise"])
        with pytest.raises(UsageError, match="at least one column"):
            table.fetch([])
        with pytest.raises(UsageError, match="list of names"):
            table.fetch("price")
        with pytest.raises(UsageError, match="no fragment 8"):
            table.fetch(["price"], fragments=[8])
    with pytest.raises(UsageError, match="did you mean i32"):
        Table.open(parquet, columns=["i33"], levels=levels)


def test_types_that_are_not_supported_are_named(tmp_path, levels):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": [1, 2], "items": [[1], [2]]}), path)
    with Table.open(path, levels=levels) as table:
        same(table.fetch().to_arrow(), pa.table({"a": [1, 2]}))
        with pytest.raises(UsageError, match=r"column 'items' is of type list.* not supported"):
            table.fetch(["items"])
    pq.write_table(pa.table({"items": [[1], [2]]}), path)
    with pytest.raises(UsageError, match="no column of a type"):
        Table.open(path, levels=levels)


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(MissingFileError, match="there is no file"):
        Table.open(tmp_path / "none.parquet")
    with pytest.raises(MissingFileError, match="no file matches"):
        Table.open(str(tmp_path / "*.parquet"))
    with pytest.raises(MissingFileError, match="no file matches"):
        Table.open(tmp_path)
    path = tmp_path / "file"
    for content in (b"", b"PAR1", b"not a table at all", b"ARROW1\0\0" + b"x" * 100, b"PAR1" + b"x" * 100):
        path.write_bytes(content)
        with pytest.raises(DataError, match=str(path)):
            Table.open(path)


@pytest.mark.parametrize("form", ["parquet-snappy", "ipc"])
def test_truncated_files_are_refused(tmp_path, form):
    path = write(make_table(), tmp_path / "table", form)
    whole = path.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 12):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=str(path)):
            Table.open(path)


def test_a_corrupt_page_names_file_row_group_and_column_and_leaves_the_rest(parquet, levels):
    metadata = pq.ParquetFile(parquet).metadata.row_group(3)
    leaf = next(metadata.column(i) for i in range(metadata.num_columns) if metadata.column(i).path_in_schema == "f64")
    content = bytearray(parquet.read_bytes())
    start = min(at for at in (leaf.dictionary_page_offset, leaf.data_page_offset) if at)
    content[start : start + leaf.total_compressed_size] = b"\xff" * leaf.total_compressed_size
    parquet.write_bytes(content)
    with Table.open(parquet, levels=levels) as table:
        with pytest.raises(DataError, match=rf"{parquet}, row group 3, column 'f64': "):
            table.fetch(options=FetchOptions(threads=3))
        assert levels.statistics("device").pinned == 0
        others = [name for name in table.schema.names if name != "f64"]
        same(table.fetch(others).to_arrow(), make_table().select(others))


def test_an_encoding_that_is_not_known_names_file_row_group_and_column(tmp_path, levels):
    path = tmp_path / "table.parquet"
    table = pa.table({"a": range(3000), "b": range(3000)})
    pq.write_table(table, path, row_group_size=1000, use_dictionary=False, compression="none")
    metadata = pq.ParquetFile(path).metadata
    place = metadata.row_group(2).column(1).data_page_offset
    content = bytearray(path.read_bytes())
    # A page's header in Thrift's compact protocol: field 5 is a struct of the number of values, and of their encoding.
    header = re.compile(rb"\x2c\x15[\x80-\xff]*[\x00-\x7f]\x15(\x00)").search(content, place)
    assert header is not None
    content[header.start(1)] = 2 * 33  # an invalid encoding
    path.write_bytes(content)
    with Table.open(path, levels=levels) as stored:
        with pytest.raises(DataError, match=rf"{path}, row group 2, column 'b': .*encoding"):
            stored.fetch()
        same(stored.fetch(["a"]).to_arrow(), table.select(["a"]))
        same(stored.fetch(["b"], fragments=[0, 1]).to_arrow(), table.select(["b"]).slice(0, 2000))


@pytest.mark.parametrize("form", ["ipc-lz4", "ipc-zstd"])
def test_a_corrupt_buffer_of_an_ipc_file_names_file_batch_and_column(tmp_path, levels, form):
    path = tmp_path / "table.arrow"
    table = pa.table({"a": np.arange(2100), "b": np.arange(2100) % 7})
    write(table, path, form)
    content = path.read_bytes()
    codec = b"\x04\x22\x4d\x18" if form == "ipc-lz4" else b"\x28\xb5\x2f\xfd"  # the beginning of a compressed buffer
    frames = [found.start() for found in re.finditer(re.escape(codec), content)]
    assert len(frames) == 6
    damaged = [content[: at + 4] + b"\xff" * 24 + content[at + 28 :] for at in frames]
    path.write_bytes(damaged[3])
    with Table.open(path, levels=levels) as stored:
        with pytest.raises(DataError, match=rf"{path}, row group 1, column 'b': "):
            stored.fetch()
        same(stored.fetch(["a"]).to_arrow(), table.select(["a"]))
    path.write_bytes(damaged[4])  # damaged in the column whose rows are counted
    with pytest.raises(DataError, match=rf"{path}, row group 2, column 'a': "):
        Table.open(path)


@pytest.mark.parametrize("form", ["parquet-snappy", "parquet-none-plain", "ipc", "ipc-lz4"])
def test_footers_that_are_changed_at_random_are_an_error_or_a_table(tmp_path, levels, form):
    rng = np.random.default_rng(11)
    path = write(make_table(150).select(["i32", "f64", "name", "price", "kind"]), tmp_path / "table", form)
    whole = path.read_bytes()
    footer = len(whole) - int.from_bytes(whole[-8:-4] if form.startswith("parquet") else whole[-10:-6], "little") - 8
    for _ in range(100):
        content = bytearray(whole)
        for at in rng.integers(footer, len(whole), rng.integers(1, 4)):
            content[at] = rng.integers(0, 256) if rng.random() < 0.5 else content[at] ^ (1 << rng.integers(0, 8))
        path.write_bytes(content)
        try:
            with Table.open(path, levels=levels, options=FetchOptions(threads=2)) as table:
                table.fetch().to_arrow()
        except Error as error:
            assert str(path) in str(error)  # noqa: PT017 - it may be a table all the same
        assert levels.statistics("device").pinned == 0


def test_bytes_that_are_changed_at_random_are_an_error_or_a_table(tmp_path, levels):
    rng = np.random.default_rng(3)
    for form in ("parquet-snappy", "ipc", "ipc-lz4"):
        path = write(make_table(300), tmp_path / f"table-{form}", form)
        whole = path.read_bytes()
        for _ in range(30):
            content = bytearray(whole)
            for at in rng.integers(8, len(whole), 4):
                content[at] = rng.integers(0, 256)
            path.write_bytes(content)
            try:
                with Table.open(path, levels=levels) as table:
                    table.fetch(options=FetchOptions(threads=2))
            except Error as error:
                assert str(path) in str(error)  # noqa: PT017 - it may be a table all the same
            assert levels.statistics("device").pinned == 0


def test_a_file_cut_short_after_opening_is_an_error(parquet, levels):
    with Table.open(parquet, levels=levels) as table:
        content = parquet.read_bytes()
        with parquet.open("r+b") as file:
            file.truncate(100)
        with pytest.raises(DataError, match="cut short"):
            table.fetch(["i64"], fragments=[7])
        parquet.write_bytes(content)


def test_a_cancelled_fetch_ends_and_frees_everything(parquet, levels):
    with Table.open(parquet, levels=levels) as table:
        fetched = table.start(options=FetchOptions(threads=2))
        fetched.cancel()
        try:
            fetched.wait()
        except Error as error:
            assert error.code == Errc.cancelled  # noqa: PT017 - it may have come to its end before
        del fetched
        assert levels.statistics("device").pinned == 0
        same(table.fetch().to_arrow(), make_table())


def test_a_callback_that_raises_ends_the_fetch(tmp_path, levels):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": np.random.default_rng(1).random(1 << 20)}), path, row_group_size=4096)

    def stop(_progress):
        raise RuntimeError("enough")

    with Table.open(path, levels=levels) as table:
        try:
            table.fetch(progress=stop, options=FetchOptions(threads=1))
        except RuntimeError as error:
            assert str(error) == "enough"  # noqa: PT017 - a fast machine is done before the first call
        assert levels.statistics("device").pinned == 0


def test_fetches_of_many_threads_share_the_levels(parquet, levels):
    whole = make_table()
    failures = []

    def fetch(table, name):
        try:
            for _ in range(5):
                same(
                    table.fetch([name, "i32"], options=FetchOptions(threads=2)).to_arrow(), whole.select([name, "i32"])
                )
        except Exception as error:
            failures.append(error)

    with Table.open(parquet, levels=levels) as table:
        threads = [threading.Thread(target=fetch, args=(table, name)) for name in ("name", "f64", "kind", "price")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_a_released_table_says_so(parquet, levels):
    with Table.open(parquet, levels=levels) as table:
        fetched = table.fetch(["i32"])
        fetched.release()
        with pytest.raises(UsageError):
            fetched["i32"]
        assert levels.statistics("device").pinned == 0


def test_no_fragments_are_no_rows(tmp_path, levels):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), path)
    with Table.open(path, levels=levels) as table:
        assert table.fetch().to_arrow().num_rows == 0
        assert table.fetch(fragments=[]).to_arrow().num_rows == 0


def test_the_progress_is_polled_while_it_goes_on(parquet, levels):
    with Table.open(parquet, levels=levels) as table:
        fetched = table.start()
        while fetched.progress.chunks_done < fetched.progress.chunks:
            time.sleep(0.001)
        fetched.wait()
        progress = fetched.progress
        assert progress.chunks == 8 * 18
        assert progress.device.bytes == progress.cpu.bytes > 0
        assert progress.elapsed > 0
