"""Tables whose columns are scanned on a device."""

from collections.abc import Iterable

import pyarrow as pa

from headrace._core import Device, ScanTable
from headrace.errors import UsageError
from headrace.fetch.arrow import HostColumn, host_column, unknown_column
from headrace.fetch.query import Scannable


class Table(Scannable):
    """Columns in fragments. A column goes to the device when a query first names it, and stays there.

    Queries of several threads on one table take turns.
    """

    def __init__(self, source: pa.Table, device: str | Device) -> None:
        """Use from_arrow()."""
        # Fragments are cut alike in all columns.
        self._source = pa.Table.from_batches(source.to_batches(), source.schema)
        self._core = ScanTable(device)
        self._columns: dict[str, tuple[int, HostColumn]] = {}

    @classmethod
    def from_arrow(
        cls, source: pa.Table | pa.RecordBatch, device: str | Device = "best", *, fragment_rows: int | None = None
    ) -> "Table":
        """A table of pyarrow's, to be scanned on `device`, in its own fragments or in some of `fragment_rows` rows.

        Raises:
            UsageError: for two columns of one name, and fragments of no rows.
        """
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        if len(set(source.column_names)) < source.num_columns:
            raise UsageError(f"columns need names of their own, not {', '.join(source.column_names)}")
        if fragment_rows is not None:
            if fragment_rows < 1:
                raise UsageError(f"a fragment has 1 row or more, not {fragment_rows}")
            batches = source.combine_chunks().to_batches(max_chunksize=fragment_rows)
            source = pa.Table.from_batches(batches, source.schema)
        return cls(source, device)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._source.schema

    @property
    def num_rows(self) -> int:
        """Of all fragments."""
        return int(self._source.num_rows)

    @property
    def device_bytes(self) -> int:
        """What the columns that have gone to the device take there."""
        return self._core.device_bytes

    def load(self, columns: Iterable[str]) -> ScanTable:
        """Brings columns to the device that are not there yet.

        Raises:
            UsageError: for a column that is not there, with the nearest names, or of a type that scans do not take.
        """
        for name in columns:
            self.find(name)
        return self._core

    def find(self, name: str) -> tuple[int, HostColumn]:
        """A column's number on the device, and where it is from."""
        if name not in self._columns:
            if name not in self._source.column_names:
                raise unknown_column(name, self._source.column_names)
            source = host_column(name, self._source.column(name))
            number = self._core.add_column(name, source.type, source.pieces)
            # What has been copied need not be kept here as well.
            self._columns[name] = (number, HostColumn(source.type, source.arrow, [], source.dictionary))
        return self._columns[name]

    def _table(self) -> "Table":
        return self
