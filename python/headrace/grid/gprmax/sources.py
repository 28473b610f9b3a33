"""Reads commands of sources, receivers and their movement."""

from pathlib import Path

from headrace.grid.gprmax.general import Reader
from headrace.grid.gprmax.lines import Command
from headrace.grid.gprmax.model import Dipole, Model, Probe, WaveForm, quoted
from headrace.grid.solver.keys import nearest
from headrace.grid.solver.scene import fields_of
from headrace.grid.solver.waveform_files import read_tables
from headrace.grid.solver.waveforms import FILE, IMPULSE, WAVEFORMS

_CURRENTS = ("ix", "iy", "iz")
_POINTS_MOST = 100_000
_VACUUM = 376.73  # Ohm, the wave impedance
_PORT = 8  # words of a voltage source before the name of its port


def _waveform(model: Model, command: Command) -> None:
    command.expect(4)
    kind, name = command.words[0].lower(), command.words[3]
    if name in model.waveforms:
        raise command.error(f"there is already a '{name}' above")
    model.waveforms[name] = WaveForm({})
    if kind not in (*WAVEFORMS, IMPULSE):
        known = (*WAVEFORMS, IMPULSE)
        raise command.error(f"there is no waveform of type '{kind}'{nearest(kind, known)}")
    keys = {"waveform": quoted(kind), "amplitude": repr(command.number(1))}
    frequency = command.number(2)
    if kind != IMPULSE:
        if frequency <= 0:
            raise command.error(f"a frequency of {frequency:g} Hz is not above 0")
        keys["frequency"] = repr(frequency)
    model.waveforms[name] = WaveForm(keys)


def _excitation(model: Model, command: Command) -> None:
    command.expect(1, 3)
    if len(command.words) > 1 and command.words[1].lower() != "linear":
        raise command.error(f"interpolation '{command.words[1]}' is not supported: only linear is")
    path = command.path.parent / command.words[0]
    for name in read_tables(path):
        if name in model.waveforms:
            raise command.error(f"there is already a '{name}' above")
        model.waveforms[name] = WaveForm(
            {"waveform": quoted(FILE), "file": quoted(str(Path(path).absolute())), "column": quoted(name)}
        )


def _axis(command: Command) -> str:
    axis = command.words[0].lower()
    if axis not in ("x", "y", "z"):
        raise command.error(f"'{command.words[0]}' is not x, y or z")
    return axis


def _times(command: Command, first: int) -> tuple[float, float | None]:
    """Start and stop of a source, if the command gives them."""
    times = command.numbers(first, 2) if len(command.words) > first else []
    if times and times[0] < 0:
        raise command.error(f"a start at {times[0]:g} s is before the run")
    if times and times[1] <= times[0]:
        raise command.error(f"a stop at {times[1]:g} s is not after its start at {times[0]:g} s")
    return (times[0], times[1]) if times else (0.0, None)


def _dipole(model: Model, command: Command) -> None:
    command.expect(5, 7)
    kind = "h" if command.name == "magnetic_dipole" else "e"
    name, position = f"{kind}{_axis(command)}", command.numbers(1, 3)
    model.sources.append(Dipole(command, name, position, command.words[4], *_times(command, 5)))


def _voltage_source(model: Model, command: Command) -> None:
    """A voltage behind a resistance; in version 4, the times may be followed by a port's name with its own number."""
    if len(command.words) > _PORT and not _is_number(command.words[_PORT - 1]):
        command = command.as_other(command.name, *command.words[:6])
    if len(command.words) > _PORT:
        port = " ".join(command.words[_PORT:])
        model.findings.note(f"{command.place}: '{port}' names a port, whose voltage and current are not recorded")
        command = command.as_other(command.name, *command.words[:_PORT])
    command.expect(6, _PORT)
    name, position, resistance = f"e{_axis(command)}", command.numbers(1, 3), command.number(4)
    if resistance < 0:
        raise command.error(f"a resistance of {resistance:g} Ohm is below 0")
    if resistance == 0:
        raise command.error("the solver does not support hard sources (0 Ohm)")
    model.sources.append(Dipole(command, name, position, command.words[5], *_times(command, 6), resistance))


def _transmission_line(model: Model, command: Command) -> None:
    """A line that ends at an edge."""
    command.expect(6, 8)
    name, position, resistance = f"e{_axis(command)}", command.numbers(1, 3), command.number(4)
    if not 0 < resistance < _VACUUM:
        raise command.error(
            f"a resistance of {resistance:g} Ohm is out of range: it must be above 0 and below that of vacuum, 376.73"
        )
    model.findings.note(f"{command.place}: voltages and currents of the line are not recorded")
    times = _times(command, 6)
    model.sources.append(Dipole(command, name, position, command.words[5], *times, resistance, line=True))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _receiver(model: Model, command: Command) -> None:
    if len(command.words) < 3:  # noqa: PLR2004
        command.expect(3)
    wanted = [word.lower() for word in command.words[4:]]
    known = fields_of(3)
    for word in wanted:
        if word not in (*known, *_CURRENTS):
            raise command.error(f"there is no output '{word}'{nearest(word, known)}")
    if any(word in _CURRENTS for word in wanted):
        model.findings.note(f"{command.place}: currents (Ix, Iy, Iz) are not recorded")
    name = command.words[3] if len(command.words) > 3 else ""  # noqa: PLR2004
    model.receivers.append(Probe(command, command.numbers(0, 3), name, [one for one in wanted if one in known]))


def _receivers(model: Model, command: Command) -> None:
    command.expect(9)
    low, high, steps = command.numbers(0, 3), command.numbers(3, 3), command.numbers(6, 3)
    lines = []
    for first, last, step in zip(low, high, steps, strict=True):
        if step < 0 or last < first:
            raise command.error("its increments must be 0 or more, and its second corner must not be below the first")
        count = int((last - first) / step + 1e-6) + 1 if step > 0 else 1
        if count > _POINTS_MOST:
            raise command.error(f"{count:,} receivers along an axis are more than the {_POINTS_MOST:,} allowed")
        lines.append([first + number * step for number in range(count)])
    if len(lines[0]) * len(lines[1]) * len(lines[2]) > _POINTS_MOST:
        raise command.error(f"it makes more than {_POINTS_MOST:,} receivers")
    model.receivers += [Probe(command, [x, y, z], "", []) for x in lines[0] for y in lines[1] for z in lines[2]]


def _steps(model: Model, command: Command) -> None:
    command.expect(3)
    model.steps[command.name] = (command, command.numbers(0, 3))


READERS: dict[str, Reader] = {
    "waveform": _waveform,
    "excitation_file": _excitation,
    "hertzian_dipole": _dipole,
    "magnetic_dipole": _dipole,
    "voltage_source": _voltage_source,
    "transmission_line": _transmission_line,
    "rx": _receiver,
    "rx_array": _receivers,
    "src_steps": _steps,
    "rx_steps": _steps,
}
