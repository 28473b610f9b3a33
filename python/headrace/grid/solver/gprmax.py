"""gprMax's input files (version 3) as scenes: the common commands, and a refusal of every other by name and line.

What the commands mean is in gprMax's user guide, "Input file commands". Here a material fills whole cells; gprMax by
default averages materials where they meet, so results differ there by what half a cell makes.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import DataError, UsageError, reading
from headrace.grid.solver.keys import nearest
from headrace.grid.solver.reading import parse_scene
from headrace.grid.solver.scene import Scene
from headrace.grid.solver.waveforms import WAVEFORMS

_SMOOTHING = ("y", "n")


@dataclass(frozen=True)
class Converted:
    """A scene's text, the scene, and what to know about it."""

    text: str
    scene: Scene
    notes: list[str]


@dataclass(frozen=True)
class _Command:
    """A line of the file."""

    path: Path
    line: int
    name: str
    words: list[str]

    def error(self, what: str) -> UsageError:
        return UsageError(f"{self.path}:{self.line}: #{self.name}: {what}")

    def expect(self, *counts: int) -> None:
        if len(self.words) not in counts:
            wanted = " or ".join(str(count) for count in counts)
            raise self.error(f"{len(self.words)} parameters, not {wanted}")

    def number(self, index: int) -> float:
        try:
            value = float(self.words[index])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f"'{self.words[index]}' is not a number")
        return value

    def numbers(self, first: int, count: int) -> list[float]:
        return [self.number(index) for index in range(first, first + count)]


@dataclass
class _Model:
    """What has been read so far."""

    title: str = ""
    domain: tuple[_Command, list[float]] | None = None
    spacing: tuple[_Command, float] | None = None
    window: str = ""
    waveforms: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    materials: list[str] = field(default_factory=list)
    shapes: list[tuple[_Command, str]] = field(default_factory=list)
    sources: list[_Command] = field(default_factory=list)
    receivers: list[_Command] = field(default_factory=list)

    @property
    def flat(self) -> bool:
        """Whether the domain is one cell thick along z."""
        assert self.domain is not None
        assert self.spacing is not None
        return round(self.domain[1][2] / self.spacing[1]) == 1


def read(path: Path) -> str:
    """The text of an input file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise reading(path, error) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8: {error}") from None


def convert(text: str, path: Path) -> Converted:
    """The scene that an input file describes.

    Raises:
        UsageError: naming line and command of what is not covered, or wrong.
    """
    model = _Model()
    for command in _commands(text, path):
        if command.name not in _READERS:
            raise command.error(f"not covered{nearest(command.name, _READERS)}")
        _READERS[command.name](model, command)
    for given, name in ((model.domain, "domain"), (model.spacing, "dx_dy_dz"), (model.window, "time_window")):
        if not given:
            raise UsageError(f"{path}: there is no #{name}")
    try:
        made = _scene_text(model, path)
    except OverflowError:
        raise DataError(f"{path}: #domain, #dx_dy_dz or #time_window is out of range") from None
    notes = []
    if any(command.words[-1] != "n" for command, _ in model.shapes):
        notes.append(f"{path}: materials fill whole cells here; gprMax averages them where objects meet")
    return Converted(made, parse_scene(made, path.with_suffix(".toml")), notes)


def _commands(text: str, path: Path) -> list[_Command]:
    """Its lines that begin with #; all others are comments, and so are those that begin with ##."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("#") or line.startswith("##"):
            continue
        match = re.fullmatch(r"#(\w+):(.*)", line.rstrip())
        if match is None:
            raise UsageError(f"{path}:{number}: '{line.rstrip()}' is not a command, such as #domain: 1 1 0.01")
        words = [match[2].strip()] if match[1] == "title" else match[2].split()
        found.append(_Command(path, number, match[1], words))
    return found


def _title(model: _Model, command: _Command) -> None:
    model.title = command.words[0]


def _domain(model: _Model, command: _Command) -> None:
    command.expect(3)
    _once(command, model.domain)
    model.domain = (command, command.numbers(0, 3))


def _spacing(model: _Model, command: _Command) -> None:
    command.expect(3)
    _once(command, model.spacing)
    steps = command.numbers(0, 3)
    if len(set(steps)) != 1:
        raise command.error(f"cells of {' x '.join(command.words)} m are no cubes, which is all that is covered")
    if steps[0] <= 0:
        raise command.error(f"{steps[0]:g} m is not above 0")
    model.spacing = (command, steps[0])


def _once(command: _Command, before: object) -> None:
    if before:
        raise command.error("there is another one above")


def _window(model: _Model, command: _Command) -> None:
    command.expect(1)
    _once(command, model.window)
    word = command.words[0]
    model.window = f"steps = {int(word)}" if re.fullmatch(r"\d+", word) else f"window = {command.number(0)!r}"


def _material(model: _Model, command: _Command) -> None:
    command.expect(5)
    permittivity, conductivity, permeability, magnetic_loss = command.numbers(0, 4)
    if magnetic_loss != 0:
        raise command.error(f"a magnetic loss of {magnetic_loss:g} Ohm/m is not covered; only 0 is")
    model.materials.append(
        f"[[materials]]\nid = {_quoted(command.words[4])}\npermittivity = {permittivity!r}\n"
        f"permeability = {permeability!r}\nconductivity = {conductivity!r}\n"
    )


def _waveform(model: _Model, command: _Command) -> None:
    command.expect(4)
    kind, name = command.words[0].lower(), command.words[3]
    if kind not in WAVEFORMS:
        raise command.error(f"'{kind}' is not covered; {' and '.join(WAVEFORMS)} are")
    if name in model.waveforms:
        raise command.error(f"there is another '{name}' above")
    model.waveforms[name] = (kind, command.number(1), command.number(2))


def _source(model: _Model, command: _Command) -> None:
    if len(command.words) == 7:  # noqa: PLR2004
        raise command.error("a time to start and one to stop are not covered")
    command.expect(5)
    if command.words[0].lower() not in ("x", "y", "z"):
        raise command.error(f"'{command.words[0]}' is not x, y or z")
    model.sources.append(command)


def _receiver(model: _Model, command: _Command) -> None:
    if len(command.words) < 3:  # noqa: PLR2004
        command.expect(3)
    model.receivers.append(command)


def _shape(numbers: int) -> Callable[[_Model, _Command], None]:
    """Reads an object of so many numbers, its material, and whether it is smoothed."""

    def read_shape(model: _Model, command: _Command) -> None:
        named = command.words[numbers:]
        if named and named[-1] in _SMOOTHING and len(named) > 1:
            named = named[:-1]
        if len(named) == 3:  # noqa: PLR2004
            raise command.error("a material for each axis (anisotropy) is not covered")
        if len(named) != 1:
            raise command.error(f"{len(command.words)} parameters, not {numbers} numbers and a material")
        model.shapes.append((command, named[0]))

    return read_shape


_READERS: dict[str, Callable[[_Model, _Command], None]] = {
    "title": _title,
    "domain": _domain,
    "dx_dy_dz": _spacing,
    "time_window": _window,
    "material": _material,
    "waveform": _waveform,
    "hertzian_dipole": _source,
    "rx": _receiver,
    "box": _shape(6),
    "cylinder": _shape(7),
    "sphere": _shape(4),
}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # the strings of JSON are strings of TOML


def _point(model: _Model, values: list[float]) -> str:
    return json.dumps(values[:2] if model.flat else values)


def _scene_text(model: _Model, path: Path) -> str:
    assert model.domain is not None
    assert model.spacing is not None
    thin = [axis for axis in range(2) if round(model.domain[1][axis] / model.spacing[1]) == 1]
    if thin:
        raise model.domain[0].error(f"one cell along {'xy'[thin[0]]}: two dimensions are covered across z alone")
    parts = [
        f"# Made from {path.name} by headrace grid convert.\ntitle = {_quoted(model.title or path.stem)}\n",
        f"[domain]\nsize = {_point(model, model.domain[1])}\nspacing = {model.spacing[1]!r}\ncpml = 10\n",
        f"[time]\n{model.window}\n",
        *model.materials,
        *(_object_text(model, command, material) for command, material in model.shapes),
        *(_source_text(model, command) for command in model.sources),
        *(_receiver_text(model, command, number) for number, command in enumerate(model.receivers, 1)),
    ]
    return "\n".join(parts)


def _object_text(model: _Model, command: _Command, material: str) -> str:
    lines = ["[[objects]]", f"type = {_quoted(command.name)}"]
    if command.name == "box":
        lines += [f"low = {_point(model, command.numbers(0, 3))}", f"high = {_point(model, command.numbers(3, 3))}"]
    elif command.name == "cylinder":
        lines += _cylinder_lines(model, command)
    else:
        if model.flat:
            raise command.error("a sphere in two dimensions is not covered; a cylinder along z is")
        lines += [f"centre = {_point(model, command.numbers(0, 3))}", f"radius = {command.number(3)!r}"]
    return "\n".join([*lines, f"material = {_quoted(material)}\n"])


def _cylinder_lines(model: _Model, command: _Command) -> list[str]:
    start, end, radius = command.numbers(0, 3), command.numbers(3, 3), command.number(6)
    if not model.flat:
        return [f"start = {_point(model, start)}", f"end = {_point(model, end)}", f"radius = {radius!r}"]
    if start[:2] != end[:2]:
        raise command.error("in two dimensions only cylinders along z are covered")
    return [f"centre = {_point(model, start)}", f"radius = {radius!r}"]


def _source_text(model: _Model, command: _Command) -> str:
    name = command.words[4]
    if name not in model.waveforms:
        raise command.error(f"there is no waveform '{name}'{nearest(name, model.waveforms)}")
    axis = command.words[0].lower()
    if model.flat and axis != "z":
        raise command.error(f"in two dimensions a dipole along z is covered, not one along {axis}")
    kind, amplitude, frequency = model.waveforms[name]
    lines = [
        "[[sources]]",
        f'field = "e{axis}"',
        f"position = {_point(model, command.numbers(1, 3))}",
        f'waveform = "{kind}"',
        f"frequency = {frequency!r}",
        f"amplitude = {amplitude!r}",
    ]
    return "\n".join([*lines, ""])


def _receiver_text(model: _Model, command: _Command, number: int) -> str:
    name = command.words[3] if len(command.words) > 3 else f"rx{number}"  # noqa: PLR2004
    known = ["ez", "hx", "hy"] if model.flat else ["ex", "ey", "ez", "hx", "hy", "hz"]
    wanted = [word.lower() for word in command.words[4:]] or known
    for word in wanted:
        if word not in known:
            raise command.error(f"the output '{word}' is not covered; {', '.join(known)} are")
    place = _point(model, command.numbers(0, 3))
    return f"[[receivers]]\nid = {_quoted(name)}\nposition = {place}\nfields = {json.dumps(wanted)}\n"
