"""Checkpoints: the state of a run in one .npz file, with the hash of its scene."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.npyio import NpzFile

from headrace import outputs
from headrace.errors import DataError, UsageError, reading
from headrace.grid.solver.model import Array, Solver
from headrace.grid.solver.scene import Scene
from headrace.npy import BROKEN

_FORMAT = 1
_HEAD = "headrace_checkpoint"
_STATE = "state."
_ZIP = b"PK\x03\x04"  # first bytes of an .npz file


@dataclass(frozen=True)
class Checkpoint:
    """Content of a checkpoint."""

    steps: int
    state: dict[str, Array]

    def digest(self) -> str:
        """A hash of the complete content."""
        found = hashlib.sha256()
        for name, values in sorted(self.state.items()):
            found.update(f"{name} {values.dtype} {values.shape}".encode())
            found.update(np.ascontiguousarray(values).data)
        return found.hexdigest()


def save(path: Path, scene: Scene, steps: int, state: dict[str, Array]) -> None:
    """Writes the state after `steps` steps atomically. The zip format gives each array a checksum."""
    arrays: dict[str, Any] = {_STATE + name: np.asarray(value) for name, value in state.items()}
    arrays |= {_HEAD: _FORMAT, "scene": scene.digest(), "steps": steps, "averaging": scene.averaging}
    arrays["smoothing"] = scene.smoothing
    with outputs.writing(path, sum(np.asarray(value).nbytes for value in state.values())) as file:
        # A file object, because savez() adds .npz to a name that lacks it.
        np.savez(file, **arrays)


def load(path: Path, scene: Scene) -> Checkpoint:
    """Reads a checkpoint of this scene.

    Raises:
        DataError: when the file is not a complete checkpoint.
        UsageError: when it is of another scene, or past the end of this one. The message says so if scenes differ only
            in `averaging` or `smoothing`.
    """
    content = _arrays(path)
    if not {_HEAD, "scene", "steps"} <= content.keys():
        raise DataError(f"{path}: not a checkpoint of headrace grid")
    made = _count(path, content, _HEAD)
    if made != _FORMAT:
        raise DataError(f"{path}: the checkpoint has format {made}, but this version reads format {_FORMAT}")
    made_of = str(content["scene"])
    if made_of != scene.digest():
        for name, has, other in (
            ("averaging", scene.averaging, replace(scene, averaging=not scene.averaging)),
            ("smoothing", scene.smoothing, replace(scene, smoothing=not scene.smoothing)),
        ):
            had = not has
            if made_of != other.digest():
                continue
            raise UsageError(
                f"{path}: its run had {name} = {str(had).lower()}, but {scene.path} has {str(has).lower()}: restore "
                "the value in [domain], or start over"
            )
        raise UsageError(
            f"{path}: the checkpoint is of another scene than {scene.path}: materials, objects, sources, receivers, "
            "domain or time step differ"
        )
    steps = _count(path, content, "steps")
    if steps > scene.steps:
        raise UsageError(f"{path}: it is at step {steps:,}, but {scene.path} ends at step {scene.steps:,}")
    state = {name.removeprefix(_STATE): value for name, value in content.items() if name.startswith(_STATE)}
    return Checkpoint(steps, state)


def _count(path: Path, content: dict[str, Array], name: str) -> int:
    """A whole number of 0 or more from the file."""
    held = np.asarray(content[name])
    if held.shape != () or held.dtype.kind not in "iu" or held < 0:
        raise DataError(f"{path}: not a complete checkpoint: its {name} is not a single whole number")
    return int(held)


def _arrays(path: Path) -> dict[str, Array]:
    """All arrays of an .npz file; empty for a file of another kind."""
    try:
        # Opened here, because np.load() leaves a file open if it cannot read it.
        with path.open("rb") as raw:
            if raw.read(len(_ZIP)) != _ZIP:  # np.load() would take such a file for a pickle
                return {}
            raw.seek(0)
            file = np.load(raw, allow_pickle=False)
            return {name: file[name] for name in file.files} if isinstance(file, NpzFile) else {}
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise reading(path, error) from None
    except BROKEN as error:
        raise DataError(f"{path}: not a complete checkpoint: {' '.join(str(error).split())}") from None


def restore(path: Path, scene: Scene, solver: Solver) -> Checkpoint:
    """Sets a solver of this scene to the state of the checkpoint, and returns the checkpoint.

    Raises:
        DataError: as load() does, and when the content does not fit the solver.
    """
    found = load(path, scene)
    try:
        solver.restore(found.state)
    except (UsageError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not a complete checkpoint: {error}") from None
    if solver.steps_done != found.steps:
        raise DataError(f"{path}: it claims step {found.steps:,} but holds step {solver.steps_done:,}")
    return found
