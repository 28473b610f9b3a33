"""Two dimensions in version 4's notation: `inf` along the axis across the plane, and #domain_mode."""

from collections.abc import Iterator

from headrace.grid.gprmax.lines import Command, Findings

_INFINITE = "inf"
_Z = 2
# Positions of z among the parameters: for the low end, and for the high end.
_PLACES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "box": ((2,), (5,)),
    "cylinder": ((2,), (5,)),
    "cylindrical_sector": ((3,), (4,)),
    "sphere": ((2,), ()),
    "ellipsoid": ((2,), (5,)),
    "triangle": ((2, 5, 8), (9,)),
    "rx": ((2,), ()),
    "rx_array": ((2, 5, 8), ()),
    "hertzian_dipole": ((3,), ()),
    "magnetic_dipole": ((3,), ()),
    "voltage_source": ((3,), ()),
    "transmission_line": ((3,), ()),
    "plate": ((2,), (5,)),
    "edge": ((2,), (5,)),
    "src_steps": ((2,), ()),
    "rx_steps": ((2,), ()),
}


def translated(commands: list[Command], findings: Findings) -> Iterator[Command]:
    """The commands, with one cell in place of `inf`."""
    domain = next((one for one in commands if one.name == "domain"), None)
    spacing = next((one for one in commands if one.name == "dx_dy_dz"), None)
    cell = next((word for word in spacing.words if word != _INFINITE), "1") if spacing else "1"
    flat = domain is not None and domain.words[_Z:] == [_INFINITE]
    for command in commands:
        with findings.noting():
            if command.name == "domain_mode":
                _check_mode(command)
            elif command.name in ("domain", "dx_dy_dz") and flat:
                yield _replaced(command, (), (_Z,), cell)
            elif command.name in _PLACES and flat:
                yield _replaced(command, *_PLACES[command.name], cell)
            else:
                yield command


def _check_mode(command: Command) -> None:
    command.expect(1)
    mode = command.words[0].upper()
    if mode not in ("TM", "3D"):
        raise command.error(
            f"mode {mode} is not supported: models of two dimensions are converted as TM (electric field along z)"
        )


def _replaced(command: Command, low: tuple[int, ...], high: tuple[int, ...], cell: str) -> Command:
    words = [
        ("0" if index in low else cell) if word == _INFINITE and index in (*low, *high) else word
        for index, word in enumerate(command.words)
    ]
    return command.as_other(command.name, *words)
