"""Fetches columns to a device and runs queries on them there.

>>> import pyarrow as pa
>>> from headrace.fetch import Table, col, count
>>> rides = Table.from_arrow(pa.table({"passengers": [1, 2, 1], "fare": [7.5, 12.0, 9.5]}))
>>> query = rides.group_by("passengers").agg(count(), fare=col("fare").avg()).order_by("passengers")
>>> query.to_arrow().to_pydict()
{'passengers': [1, 2], 'count': [2, 1], 'fare': [8.5, 12.0]}
"""

from headrace._core import built_with_fetch
from headrace.fetch.expressions import Aggregation, Expr, col, count, lit
from headrace.fetch.query import Query
from headrace.fetch.table import Table

__all__ = ["Aggregation", "Expr", "Query", "Table", "col", "count", "lit"]

if built_with_fetch:  # this needs oneTBB
    from headrace._core import (
        FetchOptions,
        FetchProgress,
        LevelProgress,
        Levels,
        LevelStatistics,
        ScanReport,
        TableReport,
    )

    __all__ += [
        "FetchOptions",
        "FetchProgress",
        "LevelProgress",
        "LevelStatistics",
        "Levels",
        "ScanReport",
        "TableReport",
    ]
