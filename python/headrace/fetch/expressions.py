"""Expressions over named columns, as trees that a query binds to a table."""

import datetime
import decimal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._core import Aggregate, Operation
from headrace.errors import UsageError

Literal = bool | int | float | decimal.Decimal | str | datetime.date | datetime.datetime | None

_SYMBOLS = {
    Operation.add: "+",
    Operation.subtract: "-",
    Operation.multiply: "*",
    Operation.divide: "/",
    Operation.modulo: "%",
    Operation.equal: "==",
    Operation.not_equal: "!=",
    Operation.less: "<",
    Operation.less_equal: "<=",
    Operation.greater: ">",
    Operation.greater_equal: ">=",
    Operation.logical_and: "&",
    Operation.logical_or: "|",
}


class Expr:
    """A value per row. Operators combine expressions: arithmetic, comparisons, and `&`, `|`, `~` for logic.

    A missing operand gives a missing result; `&` and `|` are three-valued, as in SQL.
    """

    __hash__ = None  # type: ignore[assignment]  # equality makes an expression

    def __add__(self, other: Any) -> "Expr":
        return _call(Operation.add, self, other)

    def __radd__(self, other: Any) -> "Expr":
        return _call(Operation.add, other, self)

    def __sub__(self, other: Any) -> "Expr":
        return _call(Operation.subtract, self, other)

    def __rsub__(self, other: Any) -> "Expr":
        return _call(Operation.subtract, other, self)

    def __mul__(self, other: Any) -> "Expr":
        return _call(Operation.multiply, self, other)

    def __rmul__(self, other: Any) -> "Expr":
        return _call(Operation.multiply, other, self)

    def __truediv__(self, other: Any) -> "Expr":
        return _call(Operation.divide, self, other)

    def __rtruediv__(self, other: Any) -> "Expr":
        return _call(Operation.divide, other, self)

    def __mod__(self, other: Any) -> "Expr":
        return _call(Operation.modulo, self, other)

    def __rmod__(self, other: Any) -> "Expr":
        return _call(Operation.modulo, other, self)

    def __neg__(self) -> "Expr":
        return _call(Operation.multiply, self, -1)

    def __eq__(self, other: Any) -> "Expr":  # type: ignore[override]
        return _call(Operation.equal, self, other)

    def __ne__(self, other: Any) -> "Expr":  # type: ignore[override]
        return _call(Operation.not_equal, self, other)

    def __lt__(self, other: Any) -> "Expr":
        return _call(Operation.less, self, other)

    def __le__(self, other: Any) -> "Expr":
        return _call(Operation.less_equal, self, other)

    def __gt__(self, other: Any) -> "Expr":
        return _call(Operation.greater, self, other)

    def __ge__(self, other: Any) -> "Expr":
        return _call(Operation.greater_equal, self, other)

    def __and__(self, other: Any) -> "Expr":
        return _call(Operation.logical_and, self, other)

    def __rand__(self, other: Any) -> "Expr":
        return _call(Operation.logical_and, other, self)

    def __or__(self, other: Any) -> "Expr":
        return _call(Operation.logical_or, self, other)

    def __ror__(self, other: Any) -> "Expr":
        return _call(Operation.logical_or, other, self)

    def __invert__(self) -> "Expr":
        return _call(Operation.logical_not, self)

    def __bool__(self) -> bool:
        raise UsageError("an expression is neither true nor false: write &, | and ~ for and, or and not")

    def is_null(self) -> "Expr":
        """Whether the value is missing."""
        return _call(Operation.is_null, self)

    def is_not_null(self) -> "Expr":
        """Whether the value is present."""
        return _call(Operation.logical_not, self.is_null())

    def is_in(self, values: Iterable[Literal]) -> "Expr":
        """Whether the value is one of these; missing if it is not and one of these is None."""
        return _call(Operation.is_in, self, *values)

    def between(self, least: Any, greatest: Any) -> "Expr":
        """Whether least <= value <= greatest."""
        return _call(Operation.logical_and, self >= least, self <= greatest)

    def cast(self, to: pa.DataType | str) -> "Expr":
        """The value converted to another type, given as a pyarrow type or by name, such as "int64" or "date32".

        Floats round half to even, decimals half away from zero. A value that does not fit the type fails the query.
        """
        if not isinstance(to, str | pa.DataType):
            raise UsageError(f"a cast needs a pyarrow type or its name, not {to!r}")
        try:
            return Cast(self, pa.type_for_alias(to) if isinstance(to, str) else to)
        except ValueError:
            raise UsageError(f"there is no type '{to}'; pyarrow has names such as int64, double and date32") from None

    def year(self) -> "Expr":
        """The year of a date or a timestamp, in UTC."""
        return _call(Operation.year, self)

    def alias(self, name: str) -> "Expr":
        """The same expression under a name."""
        return Alias(self, name)

    def count(self) -> "Aggregation":
        """Number of present values."""
        return Aggregation(Aggregate.count, self)

    def sum(self) -> "Aggregation":
        """The sum: exact for integers, as int64 or, if a sum does not fit, decimal128; a double for floats.

        Sums of decimals are exact, as decimal128 with 38 digits.
        """
        return Aggregation(Aggregate.sum, self)

    def avg(self) -> "Aggregation":
        """The average, a double."""
        return Aggregation(Aggregate.average, self)

    def min(self) -> "Aggregation":
        """The smallest value. Strings are ordered by their bytes."""
        return Aggregation(Aggregate.min, self)

    def max(self) -> "Aggregation":
        """The largest value; NaN is above all others."""
        return Aggregation(Aggregate.max, self)

    def children(self) -> tuple["Expr", ...]:
        """The operands."""
        return ()

    def name(self) -> str:
        """Name of its column in a result."""
        return str(self)


@dataclass(frozen=True, eq=False)
class Column(Expr):
    """A column of the table."""

    column: str

    def __str__(self) -> str:
        return self.column


@dataclass(frozen=True, eq=False)
class Value(Expr):
    """A literal."""

    value: Literal

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """An operation on other expressions."""

    operation: Operation
    arguments: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        """See Expr."""
        return self.arguments

    def __str__(self) -> str:
        if self.operation in _SYMBOLS:
            return f"({self.arguments[0]} {_SYMBOLS[self.operation]} {self.arguments[1]})"
        return f"{self.operation.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, eq=False)
class Cast(Expr):
    """A value converted to another type."""

    value: Expr
    to: pa.DataType

    def children(self) -> tuple[Expr, ...]:
        """See Expr."""
        return (self.value,)

    def __str__(self) -> str:
        return f"cast({self.value}, {self.to})"


@dataclass(frozen=True, eq=False)
class Alias(Expr):
    """A value under a name."""

    value: Expr
    called: str

    def children(self) -> tuple[Expr, ...]:
        """See Expr."""
        return (self.value,)

    def name(self) -> str:
        """See Expr."""
        return self.called

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Aggregation:
    """An aggregate that agg() computes for each group."""

    function: Aggregate
    value: Expr | None = None
    called: str | None = None

    def alias(self, name: str) -> "Aggregation":
        """The same aggregate under a name."""
        return Aggregation(self.function, self.value, name)

    def name(self) -> str:
        """Name of its column in the result."""
        if self.called is not None:
            return self.called
        return "count" if self.value is None else f"{self.function.name}({self.value.name()})"


def col(name: str) -> Expr:
    """The column with that name."""
    return Column(name)


def lit(value: Any) -> Expr:
    """A literal: None, a bool, int, float, Decimal, str, date or datetime (UTC if it has no time zone)."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if value is not None and not isinstance(value, bool | int | float | decimal.Decimal | str | datetime.date):
        raise UsageError(f"a query takes no literal of type {type(value).__name__}")
    return Value(value)


def count() -> Aggregation:
    """Number of rows."""
    return Aggregation(Aggregate.count_rows)


def named(expression: Expr | str) -> Expr:
    """A column by its name; an expression is returned unchanged."""
    return col(expression) if isinstance(expression, str) else lit(expression)


def _call(operation: Operation, *arguments: Any) -> Expr:
    return Call(operation, tuple(lit(argument) for argument in arguments))
