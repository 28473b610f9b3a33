"""Scenes built in Python: classes with the keys of a scene file.

docs/scenes.md explains the keys, their units and defaults. A key that is None is left out.

>>> from headrace.grid import scenes
>>> scene = scenes.Scene(
...     scenes.Domain(size=[0.24, 0.21], spacing=0.002),
...     scenes.Time(window=3e-9),
...     materials=[scenes.Material(id="sand", permittivity=6, conductivity=0.01)],
...     objects=[
...         scenes.Box(low=[0, 0], high=[0.24, 0.17], material="sand"),
...         scenes.Cylinder(centre=[0.12, 0.08], radius=0.01, material="pec"),
...     ],
...     sources=[scenes.Source(position=[0.1, 0.17], waveform="ricker", frequency=1.5e9)],
...     receivers=[scenes.Receiver(id="near", position=[0.14, 0.17])],
... )
>>> scene.checked().warnings
()
>>> trace = scene.run(["cpu:0"])["near", "ez"]
>>> len(trace.values) == len(trace.times) == 643
True
>>> print(scene.text().splitlines()[1:4])
['[domain]', 'size = [0.24, 0.21]', 'spacing = 0.002']
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from headrace import outputs
from headrace.grid.solver import toml
from headrace.grid.solver.model import Layout, build, times
from headrace.grid.solver.monitors import REMAINING, Recorder
from headrace.grid.solver.reading import parse_content, parse_scene
from headrace.grid.solver.running import run
from headrace.grid.solver.scene import Scene as Checked
from headrace.grid.solver.tables import (
    SHAPES,
    Box,
    Cone,
    Cpml,
    Cylinder,
    Domain,
    Ellipsoid,
    FractalBox,
    HalfSpace,
    Material,
    Mesh,
    Monitor,
    Object,
    PlaneWave,
    Plate,
    Pole,
    Receiver,
    Scan,
    Sector,
    Snapshots,
    Source,
    Sphere,
    Surface,
    Table,
    Time,
    Triangle,
    Voxels,
    Wire,
)
from headrace.text import read_utf8

__all__ = [
    "Box",
    "Cone",
    "Cpml",
    "Cylinder",
    "Domain",
    "Ellipsoid",
    "FractalBox",
    "HalfSpace",
    "Material",
    "Mesh",
    "Monitor",
    "Object",
    "PlaneWave",
    "Plate",
    "Pole",
    "Receiver",
    "Recorded",
    "Scan",
    "Scene",
    "Sector",
    "Snapshots",
    "Source",
    "Spectrum",
    "Sphere",
    "Surface",
    "Time",
    "Trace",
    "Triangle",
    "Voxels",
    "Wire",
]


class Trace(NamedTuple):
    """Trace of one field at a receiver."""

    times: NDArray[np.float64]
    """In seconds, one per value."""
    values: NDArray[np.float64]
    """In V/m or A/m."""


class Spectrum(NamedTuple):
    """Spectrum of a field in a monitor's box, or of the flux through its plane."""

    frequencies: NDArray[np.float64]
    """In hertz."""
    values: NDArray[Any]
    """For a field, complex values by frequency and node, in V s/m or A s/m. For a flux, the energy per hertz that flows
    along the plane's axis, in J/Hz, or J/(Hz m) in two dimensions; its integral over all frequencies above 0 is the
    energy."""
    remaining: float
    """The field at the end of the run as a share of its peak: the spectrum of a pulse is complete where it is small."""


class Recorded(NamedTuple):
    """What a run recorded."""

    traces: dict[tuple[str, str], Trace]
    """By receiver and field."""
    spectra: dict[tuple[str, str], Spectrum]
    """By monitor and field, or "flux"."""


_LISTS = ("materials", "objects", "sources", "plane_waves", "receivers", "monitors")


@dataclass
class Scene:
    """A complete scene. Its lists may be extended."""

    domain: Domain
    time: Time
    materials: list[Material] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    receivers: list[Receiver] = field(default_factory=list)
    plane_waves: list[PlaneWave] = field(default_factory=list)
    monitors: list[Monitor] = field(default_factory=list)
    snapshots: Snapshots | None = None
    scan: Scan | None = None
    title: str | None = None
    path: Path = Path("scene.toml")
    """Name in errors; waveform files are searched in its folder."""

    def content(self) -> Table:
        """Its tables as in a scene file."""
        found: Table = {} if self.title is None else {"title": self.title}
        found |= {"domain": self.domain.table(), "time": self.time.table()}
        for key in ("snapshots", "scan"):
            one = getattr(self, key)
            if one is not None:
                found[key] = one.table()
        return found | {key: [one.table() for one in getattr(self, key)] for key in _LISTS if getattr(self, key)}

    def text(self) -> str:
        """The text of a scene file."""
        return toml.dump(self.content())

    def checked(self) -> Checked:
        """The checked scene for the solver, with its warnings.

        Raises:
            UsageError: naming the table, key and value at fault.
        """
        return parse_content(self.content(), self.path)

    def write(self, path: str | Path) -> None:
        """Checks the scene and writes it as a scene file.

        Raises:
            UsageError: naming the table, key and value at fault; then nothing is written.
            SystemError: when the file cannot be written.
        """
        self.checked()
        outputs.write(Path(path), self.text())

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Reads a scene file. Raises the errors of `headrace grid fdtd` for an invalid one."""
        return cls.parse(read_utf8(Path(path)), path)

    @classmethod
    def parse(cls, text: str, path: str | Path = "scene.toml") -> Self:
        """Parses the text of a scene file.

        Raises:
            UsageError: naming the table, key and value at fault.
            DataError: when it is not TOML.
        """
        parse_scene(text, Path(path))
        content: dict[str, Any] = tomllib.loads(text)
        domain = content["domain"]
        if isinstance(domain.get("cpml"), dict):
            domain = {**domain, "cpml": Cpml(**domain["cpml"])}
        return cls(
            Domain(**domain),
            Time(**content["time"]),
            [_material(one) for one in content.get("materials", ())],
            [_object(one) for one in content.get("objects", ())],
            [Source(**one) for one in content.get("sources", ())],
            [Receiver(**one) for one in content.get("receivers", ())],
            [PlaneWave(**one) for one in content.get("plane_waves", ())],
            [Monitor(**one) for one in content.get("monitors", ())],
            Snapshots(**content["snapshots"]) if "snapshots" in content else None,
            Scan(**content["scan"]) if "scan" in content else None,
            content.get("title"),
            Path(path),
        )

    def run(self, devices: Sequence[str] = ("best",), *, position: int = 0) -> dict[tuple[str, str], Trace]:
        """Runs the scene at a position of its scan; returns the receivers' traces by name and field.

        Ctrl-C raises KeyboardInterrupt.

        Raises:
            UsageError: naming the table, key and value at fault.
            DataError: when a field is no longer finite.
            DeviceError: when a device fails.
        """
        return self.record(devices, position=position).traces

    def record(self, devices: Sequence[str] = ("best",), *, position: int = 0) -> Recorded:
        """Runs the scene as run() does; returns the traces of receivers and the spectra of monitors."""
        scene = self.checked().moved(position)
        model, recorder = build(scene, Layout(tuple(devices))), Recorder(scene)
        run(scene, model.solver, recorder.watchers())
        traces = {
            (name, component): Trace(
                times(scene, component, scene.steps), np.asarray(model.solver.trace(number), dtype=np.float64)
            )
            for (name, component), number in model.receivers.items()
        }
        found, frequencies = recorder.spectra(), {one.name: np.array(one.frequencies) for one in scene.monitors}
        spectra = {
            (name, quantity): Spectrum(frequencies[name], values, float(found[name, REMAINING]))
            for (name, quantity), values in found.items()
            if quantity != REMAINING
        }
        return Recorded(traces, spectra)


def _material(table: Table) -> Material:
    """A material whose poles are objects of their classes."""
    if "poles" not in table:
        return Material(**table)
    return Material(**{**table, "poles": [Pole(**one) for one in table["poles"]]})


def _object(table: Table) -> Object:
    """An object of the class for its type."""
    given = {key: value for key, value in table.items() if key != "type"}
    if "surfaces" in given:
        given["surfaces"] = [Surface(**one) for one in given["surfaces"]]
    return SHAPES[table["type"]](**given)
