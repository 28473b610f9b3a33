"""Binds expressions over names to the columns of one table on a device."""

import datetime
import decimal
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._core import ColumnType, Operation, ScanExpression, TimeUnit, TypeId
from headrace.errors import UsageError
from headrace.fetch.arrow import ScanColumn, column_type
from headrace.fetch.expressions import Alias, Call, Cast, Column, Expr, Literal, Value

_INT64_MAX = (1 << 63) - 1
_UINT64_MAX = (1 << 64) - 1
_DECIMAL_DIGITS_MAX = 18
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_COMPARISONS = {
    Operation.less,
    Operation.less_equal,
    Operation.greater,
    Operation.greater_equal,
    Operation.equal,
    Operation.not_equal,
}
_NARROW_FLOATS: dict[pa.DataType | None, type[np.floating[Any]]] = {pa.float16(): np.float16, pa.float32(): np.float32}


class Binder:
    """Converts expressions for the core."""

    def __init__(self, find: Callable[[str], ScanColumn]) -> None:
        """`find` returns a column, and raises UsageError if there is none."""
        self._find = find

    def bind(self, expression: Expr) -> ScanExpression:
        """Raises UsageError for an invalid expression."""
        match expression:
            case Column(column=name):
                return ScanExpression.column(self._find(name).number)
            case Value(value=value):
                return _literal(value)
            case Alias(value=value):
                return self.bind(value)
            case Cast(value=value, to=to):
                type_ = column_type(to)
                if type_ is None or type_.id == TypeId.dictionary:
                    raise UsageError(f"a scan cannot cast to {to}")
                return ScanExpression.cast(self.bind(value), type_)
            case Call(operation=operation, arguments=arguments):
                return self._call(operation, arguments)
        raise UsageError(f"{expression} is not an expression")

    def source(self, expression: Expr) -> ScanColumn | None:
        """The column that an expression consists of, if it is one."""
        if isinstance(expression, Alias):
            return self.source(expression.value)
        return self._find(expression.column) if isinstance(expression, Column) else None

    def is_whole(self, expression: Expr) -> bool:
        """Whether an expression consists of integers and booleans only, so that its sum is a whole number."""
        match expression:
            case Column(column=name):
                arrow = self._find(name).arrow
                return bool(pa.types.is_integer(arrow) or pa.types.is_boolean(arrow))
            case Value(value=value):
                return isinstance(value, int)
            case Alias(value=value):
                return self.is_whole(value)
            case Cast(to=to):
                return bool(pa.types.is_integer(to) or pa.types.is_boolean(to))
            case Call(arguments=arguments):
                return all(self.is_whole(argument) for argument in arguments)
        return False

    def _call(self, operation: Operation, arguments: tuple[Expr, ...]) -> ScanExpression:
        if any(_is_text(argument) for argument in arguments):
            return self._text_call(operation, arguments)
        if operation in _COMPARISONS or operation == Operation.is_in:
            arguments = self._in_float_of(arguments)
        return ScanExpression.call(operation, [self._bind_beside(argument, arguments) for argument in arguments])

    def _in_float_of(self, arguments: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Rounds literals that are compared with float16 or float32 to that type, as DuckDB, Arrow and Polars do.

        A number beyond the type's range stays unchanged: no value equals it.
        """
        kind = next((kind for kind in map(self._narrow_float, arguments) if kind is not None), None)
        if kind is None or any(self._is_wider(argument) for argument in arguments):
            return arguments
        return tuple(_rounded(one, kind) if isinstance(one, Value) else one for one in arguments)

    def _narrow_float(self, expression: Expr) -> type[np.floating[Any]] | None:
        """float16 or float32, if an operand of a comparison has that type."""
        if isinstance(expression, Alias):
            return self._narrow_float(expression.value)
        kind = expression.to if isinstance(expression, Cast) else None
        if isinstance(expression, Column):
            kind = self._find(expression.column).arrow
        return _NARROW_FLOATS.get(kind)

    def _is_wider(self, expression: Expr) -> bool:
        """Whether it is neither a literal nor of such a type."""
        return not isinstance(expression, Value) and self._narrow_float(expression) is None

    def _bind_beside(self, argument: Expr, all_: tuple[Expr, ...]) -> ScanExpression:
        """Gives None the type of the other operands, if one of them is a column or a literal."""
        if not (isinstance(argument, Value) and argument.value is None):
            return self.bind(argument)
        for other in all_:
            if isinstance(other, Column):
                return ScanExpression.missing(self._find(other.column).type)
        return self.bind(argument)

    def _text_call(self, operation: Operation, arguments: tuple[Expr, ...]) -> ScanExpression:
        """A column of strings and literals. The core knows the index of a string only after chunks have been read."""
        beside = arguments[1] if operation in _COMPARISONS and _is_text(arguments[0]) else arguments[0]
        source = self.source(beside)
        if source is None or not source.is_text or operation not in {*_COMPARISONS, Operation.is_in}:
            raise UsageError(f"a string can only be compared with a column of strings, but {beside} is not one")
        bound = [self.bind(one) if one is beside else _text(one, source.type) for one in arguments]
        return ScanExpression.call(operation, bound)


def _rounded(literal: Value, kind: type[np.floating[Any]]) -> Value:
    value = literal.value
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        return literal
    with np.errstate(over="ignore"):
        try:
            narrow = float(kind(float(value)))
        except OverflowError:  # an integer that no double can represent
            return literal
    return Value(narrow) if math.isfinite(narrow) else literal


def _is_text(expression: Expr) -> bool:
    return isinstance(expression, Value) and isinstance(expression.value, str)


def _text(expression: Expr, type_: ColumnType) -> ScanExpression:
    """A string, or None of a column's type."""
    if isinstance(expression, Value) and expression.value is None:
        return ScanExpression.missing(type_)
    if isinstance(expression, Value) and isinstance(expression.value, str):
        return ScanExpression.text(expression.value)
    raise UsageError(f"strings can only be compared with strings, but {expression} is not a string")


def _bits(value: float) -> int:
    """The bits of a double as a signed integer."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _integer(value: int) -> ScanExpression:
    if -_INT64_MAX - 1 <= value <= _INT64_MAX:
        return ScanExpression.literal(ColumnType(TypeId.int64), value)
    if 0 <= value <= _UINT64_MAX:
        return ScanExpression.literal(ColumnType(TypeId.uint64), value - (1 << 64))
    raise UsageError(f"{value} does not fit in 64 bits")


def _decimal(value: decimal.Decimal) -> ScanExpression:
    parts = value.as_tuple()
    if not isinstance(parts.exponent, int):
        raise UsageError(f"a decimal must be a finite number, not {value}")
    scale = max(0, -parts.exponent)
    units = int(value.scaleb(scale, decimal.Context(prec=60)))
    if abs(units) > _INT64_MAX or scale > _DECIMAL_DIGITS_MAX:
        raise UsageError(f"the decimal {value} has more than {_DECIMAL_DIGITS_MAX} digits")
    return ScanExpression.literal(ColumnType(TypeId.decimal128, precision=_DECIMAL_DIGITS_MAX, scale=scale), units)


def _literal(value: Literal) -> ScanExpression:
    if value is None:
        return ScanExpression.missing(ColumnType(TypeId.int64))
    if isinstance(value, bool):
        return ScanExpression.literal(ColumnType(TypeId.boolean), int(value))
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return ScanExpression.literal(ColumnType(TypeId.float64), _bits(value))
    if isinstance(value, decimal.Decimal):
        return _decimal(value)
    if isinstance(value, datetime.date):
        return _time(value)
    raise UsageError(f"the string {value!r} must be compared with a column")


def _time(value: datetime.date) -> ScanExpression:
    if not isinstance(value, datetime.datetime):
        return ScanExpression.literal(ColumnType(TypeId.date32), (value - _EPOCH.date()).days)
    aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
    since = (aware - _EPOCH) // datetime.timedelta(microseconds=1)
    return ScanExpression.literal(ColumnType(TypeId.timestamp, unit=TimeUnit.microsecond), since)
