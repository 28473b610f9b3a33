"""Translates commands of version 2 to those of version 3."""

from collections.abc import Callable, Iterator

from headrace.grid.gprmax.lines import Command, Findings

_MARKS = {
    *("dx_dy", "medium", "analysis", "end_analysis", "tx", "line_source", "number_of_media", "abc_type"),
    *("pml_layers", "nips_number", "tx_steps", "rx_box", "media_file", "cylinder_new"),
}
# The Ricker pulse of version 2 is the first derivative of a Gaussian, that of version 3 the second.
_WAVEFORMS = {"ricker": "gaussiandotnorm", "cont_sine": "contsine", "sine": "sine", "gaussian": "gaussian"}
_TWO = 2


def is_older(commands: list[Command]) -> bool:
    """Whether a file is of version 2."""
    return any(one.name in _MARKS for one in commands)


class Older:
    """Translates the commands of one file in order."""

    def __init__(self, commands: list[Command], findings: Findings) -> None:
        self._commands = commands
        self._findings = findings
        self._flat = any(one.name == "dx_dy" for one in commands)
        self._step = next((one.words[0] for one in commands if one.name == "dx_dy" and one.words), "1")
        self._file = next((one for one in commands if one.name == "excitation_file"), None)
        self._resistances: dict[str, str] = {}  # resistances of voltage sources, by name
        self.runs: int | None = None  # number of runs, given by the analysis
        self._readers: dict[str, Callable[[Command], Iterator[Command]]] = {
            "dx_dy": self._cells,
            "domain": self._domain,
            "medium": self._medium,
            "box": self._box,
            "cylinder": self._cylinder,
            "disk": self._cylinder,
            "cylinder_new": self._renamed("cylinder"),
            "cylindrical_segment": self._renamed("cylindrical_segment"),
            "triangle": self._triangle,
            "line_source": self._source,
            "hertzian_dipole": self._source,
            "voltage_source": self._voltage_source,
            "analysis": self._analysis,
            "tx": self._transmitter,
            "rx": self._receiver,
            "rx_box": self._receivers,
            "tx_steps": self._steps("src_steps"),
            "rx_steps": self._steps("rx_steps"),
            "pml_layers": self._renamed("pml_cells"),
            "excitation_file": lambda _command: iter(()),
        }

    def translated(self) -> Iterator[Command]:
        """The translated commands."""
        for command in self._commands:
            reader = self._readers.get(command.name)
            if reader is None:
                yield command
                continue
            with self._findings.noting():
                yield from reader(command)

    def _renamed(self, name: str) -> Callable[[Command], Iterator[Command]]:
        return lambda command: iter((command.as_other(name, *command.words),))

    def _cells(self, command: Command) -> Iterator[Command]:
        command.expect(2)
        yield command.as_other("dx_dy_dz", *command.words, command.words[0])

    def _domain(self, command: Command) -> Iterator[Command]:
        command.expect(_TWO if self._flat else 3)
        yield command.as_other("domain", *command.words, *([self._step] if self._flat else []))

    def _medium(self, command: Command) -> Iterator[Command]:
        """Static and infinite-frequency permittivity, relaxation, conductivity, permeability, magnetic loss, id."""
        command.expect(7)
        low, high, relaxation, conductivity, permeability, loss = command.words[:6]
        name = command.words[6]
        if name in ("pec", "free_space"):
            return
        debye = command.number(2) != 0
        yield command.as_other("material", high if debye else low, conductivity, permeability, loss, name)
        if debye:
            difference = command.number(0) - command.number(1)
            yield command.as_other("add_dispersion_debye", 1, repr(difference), relaxation, name)

    def _box(self, command: Command) -> Iterator[Command]:
        if not self._flat:
            yield command
            return
        command.expect(5)
        x, y, right, top, medium = command.words
        yield command.as_other("box", x, y, 0, right, top, self._step, medium)

    def _cylinder(self, command: Command) -> Iterator[Command]:
        words = command.words
        if self._flat:
            command.expect(4)
            x, y, radius, medium = words
            yield command.as_other("cylinder", x, y, 0, x, y, self._step, radius, medium)
        elif words and words[0].lower() in ("x", "y", "z"):
            command.expect(7)
            axis = "xyz".index(words[0].lower())
            start, end = [*words[3:5]], [*words[3:5]]
            start.insert(axis, words[1])
            end.insert(axis, words[2])
            yield command.as_other("cylinder", *start, *end, *words[5:])
        else:
            yield command

    def _triangle(self, command: Command) -> Iterator[Command]:
        if not self._flat:
            command.expect(10)
            yield command.as_other("triangle", *command.words[:9], 0, command.words[9])
            return
        command.expect(7)
        x1, y1, x2, y2, x3, y3, medium = command.words
        yield command.as_other("triangle", x1, y1, 0, x2, y2, 0, x3, y3, 0, self._step, medium)

    def _source(self, command: Command) -> Iterator[Command]:
        command.expect(4)
        amplitude, frequency, kind, name = command.words
        if kind == "user":
            raise command.error(
                "waveform files of version 2 are not supported: give the file a first row with a name, as in version 3"
            )
        if kind not in _WAVEFORMS:
            raise command.error(f"there is no waveform '{kind}'; there are {', '.join(_WAVEFORMS)}")
        if kind == "ricker":
            self._findings.note(
                f"{command.place}: the ricker of version 2 is the first derivative of a Gaussian, here gaussiandotnorm"
            )
        yield command.as_other("waveform", _WAVEFORMS[kind], amplitude, frequency, name)

    def _voltage_source(self, command: Command) -> Iterator[Command]:
        command.expect(5)
        *wave, resistance, name = command.words
        self._resistances[name] = resistance
        yield from self._source(command.as_other(command.name, *wave, name))

    def _analysis(self, command: Command) -> Iterator[Command]:
        if self.runs is not None:
            raise command.error("it is a second analysis, but a scene has only one: make a file for each")
        runs = command.whole(0) if command.words else None
        if not runs:
            raise command.error("its first parameter must be the number of runs")
        self.runs = runs
        yield from ()

    def _transmitter(self, command: Command) -> Iterator[Command]:
        if self._flat:
            command.expect(5)
            x, y, name, start, stop = command.words
            axis, z = "z", "0"
        else:
            command.expect(7)
            axis, x, y, z, name, start, stop = command.words
        if name in self._resistances:
            yield command.as_other("voltage_source", axis, x, y, z, self._resistances[name], name, start, stop)
        else:
            yield command.as_other("hertzian_dipole", axis, x, y, z, name, start, stop)

    def _receiver(self, command: Command) -> Iterator[Command]:
        command.expect(_TWO if self._flat else 3)
        yield command.as_other("rx", *command.words, *(["0"] if self._flat else []))

    def _receivers(self, command: Command) -> Iterator[Command]:
        if self._flat:
            command.expect(6)
            x, y, right, top, dx, dy = command.words
            yield command.as_other("rx_array", x, y, 0, right, top, 0, dx, dy, 0)
        else:
            yield command.as_other("rx_array", *command.words)

    def _steps(self, name: str) -> Callable[[Command], Iterator[Command]]:
        def read_steps(command: Command) -> Iterator[Command]:
            command.expect(_TWO if self._flat else 3)
            yield command.as_other(name, *command.words, *(["0"] if self._flat else []))

        return read_steps
