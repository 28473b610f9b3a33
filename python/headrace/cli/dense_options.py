"""Options of the operators on dense matrices: mlp, topk and lookup."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from headrace import Operator, UsageError
from headrace.base import parse_bytes
from headrace.errors import DataError, MissingFileError
from headrace.npy import BROKEN
from headrace.operators import lookup, mlp, topk

_HAS = {
    "mlp": ("weights", "activation", "dtype"),
    "topk": ("matrix", "k", "metric", "dtype"),
    "lookup": ("table", "most", "pooling", "weighted", "dtype", "device_bytes", "counts", "exponent"),
}
_FILES = ("weights", "matrix", "table", "counts")


def _bytes(text: str) -> int:
    try:
        return parse_bytes(text)
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error


@dataclass(frozen=True)
class Dense:
    """Operators mlp, topk and lookup."""

    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            readable=False,
            help="mlp: .npz file with weights0 (outputs x inputs), biases0, weights1, ... Default: random, "
            "256-256-256-16.",
        ),
    ] = None
    activation: Annotated[
        str | None, typer.Option("--activation", help="mlp: activation, relu or identity. Default: relu.")
    ] = None
    matrix: Annotated[
        Path | None,
        typer.Option("--matrix", readable=False, help="topk: .npy file with the rows. Default: random, 100,000 x 128."),
    ] = None
    k: Annotated[int | None, typer.Option("--k", min=1, help="topk: number of rows to find. Default: 10.")] = None
    metric: Annotated[str | None, typer.Option("--metric", help="topk: metric, dot or l2. Default: dot.")] = None
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype", help="mlp, topk, lookup: type of the stored elements, float16 or float32. Default: float16."
        ),
    ] = None
    table: Annotated[
        Path | None,
        typer.Option("--table", readable=False, help="lookup: .npy file with the rows. Default: random, 250,000 x 64."),
    ] = None
    most: Annotated[
        int | None, typer.Option("--most", min=1, help="lookup: maximum number of rows per query. Default: 32.")
    ] = None
    pooling: Annotated[
        str | None, typer.Option("--pooling", help="lookup: pooling of the rows: sum, mean or max. Default: sum.")
    ] = None
    weighted: Annotated[
        bool | None, typer.Option("--weighted", help="lookup: queries carry a weight for each row.", show_default=False)
    ] = None
    device_bytes: Annotated[
        int | None,
        typer.Option(
            "--device-bytes",
            parser=_bytes,
            metavar="SIZE",
            help="lookup: maximum size of the table on each GPU, such as 40GiB; other rows stay on the host. "
            "Default: all.",
        ),
    ] = None
    counts: Annotated[
        Path | None,
        typer.Option(
            "--counts",
            readable=False,
            help="lookup: .npy file with the access count of each row; the most popular rows go to the GPU, and "
            "sample queries follow the counts. Default: the first rows go to the GPU.",
        ),
    ] = None
    exponent: Annotated[
        float | None,
        typer.Option(
            "--exponent",
            min=0,
            help="lookup: Zipf exponent of the rows in sample queries. Default: follow --counts, or 1.05 without it.",
        ),
    ] = None

    def require_none_but(self, name: str) -> None:
        """Raises UsageError for a given option that operator `name` does not have."""
        for field in fields(self):
            if getattr(self, field.name) is not None and field.name not in _HAS.get(name, ()):
                raise UsageError(f"operator {name} has no {_option(field.name)}")

    def require_some_of(self, words: list[str]) -> None:
        """Raises UsageError for a given option that no operator among `words` has."""
        for field in fields(self):
            has = [name for name, names in _HAS.items() if field.name in names]
            if getattr(self, field.name) is not None and not set(has) & set(words):
                raise UsageError(f"{_option(field.name)} is for {_list(has)}, which is not served")

    def of(self, name: str) -> "Dense":
        """The options that operator `name` has."""
        return Dense(**{field: getattr(self, field) for field in _HAS.get(name, ())})

    def make(self, name: str, threads: int | None) -> Operator:
        """Makes operator mlp, topk or lookup.

        Raises:
            UsageError: as mlp(), topk() and lookup() do.
            DataError: for a file that does not hold such an array.
        """
        has = {field: getattr(self, field) for field in _HAS[name] if field not in _FILES}
        given: dict[str, Any] = {field: value for field, value in has.items() if value is not None}
        if threads is not None:
            given["threads"] = threads
        if name == "topk":
            return topk(_read_array(self.matrix, "matrix"), **given)
        if name == "lookup":
            return lookup(_read_array(self.table, "table"), counts=_read_array(self.counts, "counts"), **given)
        weights, biases = (None, None) if self.weights is None else _read_layers(self.weights)
        return mlp(weights, biases, **given)


def _list(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


def _read_array(path: Path | None, what: str) -> NDArray[Any] | None:
    if path is None:
        return None
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
    except BROKEN as error:
        raise DataError(f"{path} is not an .npy file with an array of numbers: {error}") from error
    if not isinstance(found, np.ndarray):
        raise DataError(f"{path} has several arrays: give an .npy file with the {what}")
    return found


def _read_layers(path: Path) -> tuple[list[NDArray[Any]], list[NDArray[Any] | None]]:
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            arrays = {} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except BROKEN as error:
        raise DataError(f"{path} is not an .npz file with arrays of numbers: {error}") from error
    count = sum(name.startswith("weights") for name in arrays)
    weights = [f"weights{number}" for number in range(count)]
    biases = [f"biases{number}" for number in range(count)]
    unknown = sorted(arrays.keys() - {*weights, *biases})
    if not count or unknown:
        has = ", ".join(sorted(arrays)) or "no names"
        raise DataError(f"{path} has {has}, and not weights0, biases0, weights1, ... for the layers in their order")
    return [arrays[name] for name in weights], [arrays.get(name) for name in biases]
