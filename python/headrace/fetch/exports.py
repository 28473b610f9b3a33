"""Exports for other libraries, shared by everything that to_arrow() converts to a pyarrow table."""

import importlib
from typing import Any

import pyarrow as pa

from headrace.errors import Errc, UsageError


def require(name: str) -> Any:  # noqa: ANN401 - whatever module it is
    """Imports a library that is needed only on request.

    Raises:
        UsageError: when it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"this needs {name}: pip install {name}", Errc.not_supported) from error


class ArrowExports:
    """Exports a result to pandas, Polars, and users of the Arrow PyCapsule interface."""

    def to_arrow(self) -> pa.Table:
        """The result on the host."""
        raise NotImplementedError

    def to_pandas(self) -> Any:  # noqa: ANN401
        """The result of to_arrow() as a pandas DataFrame.

        Raises:
            UsageError: when pandas is not installed.
        """
        require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:  # noqa: ANN401
        """The result of to_arrow() as a Polars DataFrame.

        Raises:
            UsageError: when Polars is not installed.
        """
        return require("polars").from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Exports the result of to_arrow() for pyarrow.table(), polars.from_arrow(), DuckDB and others."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:  # noqa: ANN401
        """Raises UsageError: columns have different types, which NumPy would convert to one array of objects."""
        raise UsageError(f"a {type(self).__name__} is not an array: take a column of it, to_arrow() or to_pandas()")
