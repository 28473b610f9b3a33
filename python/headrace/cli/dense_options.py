"""Options of the operators over dense matrices, mlp and topk."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from headrace import Operator, UsageError
from headrace.errors import DataError, MissingFileError
from headrace.npy import BROKEN
from headrace.operators import mlp, topk

_HAS = {"mlp": ("weights", "activation", "dtype"), "topk": ("matrix", "k", "metric", "dtype")}


@dataclass(frozen=True)
class Dense:
    """Operators mlp and topk."""

    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            readable=False,
            help="mlp: an .npz with weights0 (outputs x inputs), biases0, weights1, ... Default: random "
            "ones, 256-256-256-16.",
        ),
    ] = None
    activation: Annotated[str | None, typer.Option("--activation", help="mlp: relu or identity. Default: relu.")] = None
    matrix: Annotated[
        Path | None,
        typer.Option("--matrix", readable=False, help="topk: an .npy with the rows. Default: random, 100,000 x 128."),
    ] = None
    k: Annotated[int | None, typer.Option("--k", min=1, help="topk: how many rows. Default: 10.")] = None
    metric: Annotated[str | None, typer.Option("--metric", help="topk: dot or l2. Default: dot.")] = None
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", help="mlp, topk: type of stored elements, float16 or float32. Default: float16."),
    ] = None

    def require_none_but(self, name: str) -> None:
        """Raises UsageError naming an option that was given and that operator `name` does not have."""
        for field in fields(self):
            if getattr(self, field.name) is not None and field.name not in _HAS.get(name, ()):
                raise UsageError(f"operator {name} has no --{field.name}")

    def require_some_of(self, words: list[str]) -> None:
        """Raises UsageError naming an option that was given and that no operator among `words` has."""
        for field in fields(self):
            has = [name for name, names in _HAS.items() if field.name in names]
            if getattr(self, field.name) is not None and not set(has) & set(words):
                raise UsageError(f"--{field.name} is for {' and '.join(has)}, which is not served")

    def of(self, name: str) -> "Dense":
        """What operator `name` has of these options."""
        return Dense(**{field: getattr(self, field) for field in _HAS.get(name, ())})

    def make(self, name: str, threads: int | None) -> Operator:
        """Operator mlp or topk.

        Raises:
            UsageError: as mlp() and topk() do.
            DataError: for a file that is no such array.
        """
        given: dict[str, Any] = {
            field: getattr(self, field) for field in ("activation", "k", "metric", "dtype") if getattr(self, field)
        }
        if threads is not None:
            given["threads"] = threads
        if name == "topk":
            return topk(None if self.matrix is None else _read_matrix(self.matrix), **given)
        weights, biases = (None, None) if self.weights is None else _read_layers(self.weights)
        return mlp(weights, biases, **given)


def _read_matrix(path: Path) -> NDArray[Any]:
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
    except BROKEN as error:
        raise DataError(f"{path} is no .npy file with an array of numbers: {error}") from error
    if not isinstance(found, np.ndarray):
        raise DataError(f"{path} has several arrays: give an .npy file with the matrix")
    return found


def _read_layers(path: Path) -> tuple[list[NDArray[Any]], list[NDArray[Any] | None]]:
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            arrays = {} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except BROKEN as error:
        raise DataError(f"{path} is no .npz file with arrays of numbers: {error}") from error
    count = sum(name.startswith("weights") for name in arrays)
    weights = [f"weights{number}" for number in range(count)]
    biases = [f"biases{number}" for number in range(count)]
    unknown = sorted(arrays.keys() - {*weights, *biases})
    if not count or unknown:
        has = ", ".join(sorted(arrays)) or "no names"
        raise DataError(f"{path} has {has}, and not weights0, biases0, weights1, ... for the layers in their order")
    return [arrays[name] for name in weights], [arrays.get(name) for name in biases]
