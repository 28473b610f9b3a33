"""Queries that are composed first and run when their result is requested."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headrace import display
from headrace._core import Aggregate, ScanExpression
from headrace.errors import UsageError
from headrace.fetch import storage
from headrace.fetch.arrow import ScanColumn, result_array, whole
from headrace.fetch.bind import Binder
from headrace.fetch.exports import ArrowExports
from headrace.fetch.expressions import Aggregation, Column, Expr, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace._core import FetchTable, TableReport
    from headrace.fetch.fetched import Progress

_LOG = logging.getLogger(__name__)
_ORDERS = ("ascending", "descending")
_ORDER_PARTS = 2  # a name and one of these
_Bound = tuple[
    ScanExpression | None,
    list[ScanExpression],
    list[tuple[Aggregate, ScanExpression | None]],
    list[ScanExpression],
    list[tuple[int, bool]],
    int | None,
]


@dataclass(frozen=True)
class _Ready:
    """A query in the core's form, with the names and source columns of its result."""

    names: list[str]
    bound: _Bound
    sources: list[ScanColumn | None]
    whole: list[int]  # aggregates that sum integers


class Scanned(Protocol):
    """Interface that queries need from their table, a headrace.fetch.Table."""

    @property
    def core(self) -> FetchTable:
        """The core's table, which runs queries."""

    @property
    def left_out(self) -> dict[str, pa.DataType]:
        """Columns that cannot be fetched, and their types."""

    def find(self, name: str) -> ScanColumn:
        """A column by its name."""

    def fetchable(self) -> list[str]:
        """All columns, for a query that names none."""


class Scannable(ArrowExports):
    """Steps that extend a query; shared by tables and queries."""

    def filter(self, *conditions: Expr) -> Query:
        """Keeps only the rows for which every condition is true."""
        query = self._query()
        if query.keys or query.aggregates or query.order or query.count is not None:
            raise UsageError("a filter comes before group_by, agg, order_by and limit")
        both = [*([] if query.condition is None else [query.condition]), *(named(one) for one in conditions)]
        return replace(query, condition=reduce(lambda left, right: left & right, both) if both else None)

    def select(self, *values: Expr | str, **names: Expr | str) -> Query:
        """Selects these values per row; the default is all columns that can be fetched."""
        query = self._query()
        if query.values or query.keys or query.aggregates:
            raise UsageError("a query selects only once, and not together with group_by or agg")
        chosen = [*map(named, values), *(named(value).alias(name) for name, value in names.items())]
        return replace(query, values=tuple(chosen))

    def group_by(self, *keys: Expr | str, **names: Expr | str) -> Query:
        """Makes one row per combination of one to four keys, which are columns or expressions."""
        query = self._query()
        if query.values or query.keys or query.aggregates:
            raise UsageError("a query groups only once, before agg, and not together with select")
        chosen = [*map(named, keys), *(named(value).alias(name) for name, value in names.items())]
        if not chosen:
            raise UsageError("a group-by has 1 to 4 keys; agg alone makes one group of all rows")
        return replace(query, keys=tuple(chosen))

    def agg(self, *aggregations: Aggregation, **names: Aggregation) -> Query:
        """Computes aggregates for each group, or for all rows without group_by."""
        query = self._query()
        if query.values or query.aggregates:
            raise UsageError("a query aggregates only once, and not together with select")
        chosen = [*aggregations, *(value.alias(name) for name, value in names.items())]
        return replace(query, aggregates=tuple(chosen))

    def order_by(self, *columns: str | tuple[str, str]) -> Query:
        """Orders the result by these of its columns, each a name or (name, "ascending" or "descending").

        Missing values, and NaN among floats, come last in either direction.
        """
        order = tuple((one, "ascending") if isinstance(one, str) else one for one in columns)
        _check_order(order)
        for name, direction in order:
            if direction not in _ORDERS:
                raise UsageError(f"the order of '{name}' must be ascending or descending, not {direction}")
        return replace(self._query(), order=order)

    def limit(self, rows: int) -> Query:
        """Limits the result to this number of rows."""
        check_count("a limit must be 0 or more", rows, 0)
        return replace(self._query(), count=rows)

    def to_arrow(self) -> pa.Table:
        """Runs the query on the table's device; for a table, fetches all columns.

        Raises:
            UsageError: for operations that the table or the types do not allow, and for values that do not fit their
                type.
        """
        return self._query().run()[0]

    def _query(self) -> Query:
        return Query(self._table())

    def _table(self) -> Scanned:
        raise NotImplementedError


@dataclass(frozen=True)
class Query(Scannable):
    """A query on a table. It runs in to_arrow(); creating it costs nothing."""

    table: Scanned
    condition: Expr | None = None
    values: tuple[Expr, ...] = ()
    keys: tuple[Expr, ...] = ()
    aggregates: tuple[Aggregation, ...] = ()
    order: tuple[tuple[str, str], ...] = ()
    count: int | None = None

    def run(self, progress: Progress | None = None) -> tuple[pa.Table, TableReport]:
        """Returns the result and a report on how it was computed. `progress` is called now and then during a fetch."""
        ready = self._ready
        columns, report = self.table.core.scan(*ready.bound, progress)
        if report.streamed:
            _LOG.info("a query went through the device in %d windows: %s", report.windows, report.streamed)
        arrays = [result_array(column, source) for column, source in zip(columns, ready.sources, strict=True)]
        first = len(arrays) - len(self.aggregates)
        for number in ready.whole:
            arrays[first + number] = whole(arrays[first + number])
        result = pa.Table.from_arrays(arrays, ready.names)
        return self._ordered(result) if self._grouped() else result, report

    def explain(self) -> str:
        """Describes how the query runs: columns fetched, result types, how groups are found, and the program per row.

        Fetches the columns if they fit on the device, because the way groups are found depends on their values.
        """
        text = self.table.core.explain(*self._ready.bound)
        if not self.values and not self._grouped() and self.table.left_out:
            text += f"leaves out {', '.join(self.table.left_out)}, which cannot be fetched\n"
        if self.order:
            where = "on the host" if self._grouped() else "on the device"
            text += f"then, {where}\n  order by " + ", ".join(f"{name} {way}" for name, way in self.order) + "\n"
        return text if self.count is None else text + f"at most {self.count} rows\n"

    def _repr_html_(self) -> str:
        """Shows the steps: a notebook displays a query without running it."""
        steps = {
            "filter": [] if self.condition is None else [self.condition],
            "select": self.values,
            "group by": self.keys,
            "aggregates": self.aggregates,
            "order by": self.order,
            "limit": [] if self.count is None else [self.count],
        }
        rows = [(name, ", ".join(map(str, step))) for name, step in steps.items() if step]
        return display.table(f"Query over {self.table!r}", rows)

    def _query(self) -> Query:
        return self

    def _table(self) -> Scanned:
        return self.table

    def _grouped(self) -> bool:
        return bool(self.keys or self.aggregates)

    def _outputs(self) -> tuple[Expr, ...]:
        if self._grouped():
            return self.keys
        return self.values or tuple(map(Column, self.table.fetchable()))

    def _names(self) -> list[str]:
        names = [*(one.name() for one in self._outputs()), *(one.name() for one in self.aggregates)]
        twice = next((name for name, times in Counter(names).items() if times > 1), None)
        if twice is not None:
            raise UsageError(f"two columns of the result are called '{twice}': give one an alias")
        unknown = next((name for name, _ in self.order if name not in names), None)
        if unknown is not None:
            raise UsageError(f"the result is ordered by '{unknown}', but has {', '.join(names)}")
        return names

    @cached_property
    def _ready(self) -> _Ready:
        """Made once per query: neither the query nor its table's columns ever change."""
        binder = Binder(self.table.find)
        grouped = self._grouped()
        names = self._names()
        bound = (
            None if self.condition is None else binder.bind(self.condition),
            [binder.bind(key) for key in self.keys],
            [(one.function, None if one.value is None else binder.bind(one.value)) for one in self.aggregates],
            [] if grouped else [binder.bind(value) for value in self._outputs()],
            [] if grouped else [(names.index(name), way == "descending") for name, way in self.order],
            None if grouped else self.count,
        )
        kept = {Aggregate.min, Aggregate.max}
        gathered = [
            None if one.value is None or one.function not in kept else binder.source(one.value)
            for one in self.aggregates
        ]
        whole_ones = [
            number
            for number, one in enumerate(self.aggregates)
            if one.function == Aggregate.sum and one.value is not None and binder.is_whole(one.value)
        ]
        return _Ready(names, bound, [*(binder.source(one) for one in self._outputs()), *gathered], whole_ones)

    def _ordered(self, result: pa.Table) -> pa.Table:
        """Orders groups, which are few, with pyarrow, whose order of averages and strings is the same everywhere."""
        if self.order:
            keys: dict[str, Any] = {name: _sortable(result.column(name)) for name, _ in self.order}
            result = result.take(pc.sort_indices(pa.table(keys), sort_keys=list(self.order)))
        return result if self.count is None else result.slice(0, self.count)


def _check_order(order: Sequence[object]) -> None:
    for one in order:
        if not isinstance(one, tuple) or len(one) != _ORDER_PARTS:
            raise UsageError(f"order_by takes names or (name, direction) pairs, not {one!r}")


def check_count(what: str, given: object, least: int) -> None:
    """Raises UsageError unless `given` is a whole number of at least `least`."""
    if not isinstance(given, int) or given < least:
        raise UsageError(f"{what}, not {given!r}")


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Converts a column for sorting: pyarrow sorts plain strings only."""
    entries = storage.entry_type(column.type)
    return column if entries is None else column.cast(entries)
