"""Runs Python blocks with limits: the program started by blocks.py. It imports nothing of Headrace.

It reads {"blocks", "inputfile", "number_model_runs", "limits"} as JSON on stdin and writes {"printed": [...]} or
{"line", "error"} on stdout.
"""

import contextlib
import ctypes
import importlib
import io
import json
import os
import resource
import sys
import types
from typing import Any, NamedTuple

_NOBODY = 65534
_NO_NEW_PRIVILEGES = 38  # prctl
_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000  # unshare

# Modules that blocks often import, loaded early because the unprivileged user may not be able to read them.
_LOADED = (
    *("numpy", "random", "itertools", "functools", "csv", "copy", "datetime", "decimal", "statistics", "string"),
    *("collections", "textwrap", "cmath"),
)

# gprMax's user guide, "Constants/variables".
_LIGHT, _PERMITTIVITY, _PERMEABILITY, _IMPEDANCE = (
    299792458.0,
    8.854187817620389e-12,
    1.2566370614359173e-06,
    376.73031346177,
)


# Landlock, Linux's Documentation/userspace-api/landlock.rst. These system call numbers are the same on every
# architecture.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_WRITES = (1 << 1) | sum(1 << bit for bit in range(4, 15))  # write, remove, make, refer, truncate
_WITH_TRUNCATE = 3  # first version with all of these


def _forbid_writing(libc: ctypes.CDLL) -> bool:
    """Makes the kernel refuse to change, create or remove any file; returns whether it does. Needs no_new_privs."""
    if libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)) < _WITH_TRUNCATE:
        return False
    handled = ctypes.c_uint64(_WRITES)
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    if rules < 0:
        return False
    done = libc.syscall(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0)) == 0
    os.close(rules)
    return bool(done)


def _give_up_rights(seconds: int, memory: int) -> None:
    """Takes away network, rights, writable files and children from the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    root = os.geteuid() == 0
    libc.unshare(_NEW_NETWORK if root else _NEW_USERS | _NEW_NETWORK)  # if the system allows it
    if root:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "privileges cannot be given up")
    # The user nobody owns no files; for any other user, code could change files.
    if not _forbid_writing(libc) and not root:
        raise SystemExit(
            "this kernel lacks Landlock (Linux 6.2), which keeps code from changing files: run the command as root"
        )
    for limit, value in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))


class _Printed(io.StringIO):
    """Collects the output of a block, up to a limit."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._left = most

    def write(self, text: str) -> int:
        self._left -= len(text)
        if self._left < 0:
            raise ValueError("it prints too much output")
        return super().write(text)


class _Point(NamedTuple):
    """A place or a size, which blocks read by number or by letter."""

    x: float
    y: float
    z: float


def _functions() -> types.ModuleType:
    """The functions of gprMax's module of input commands: each prints its command."""
    module = types.ModuleType("gprMax.input_cmd_funcs")

    def command(cmd: str, *parameters: object) -> None:
        """Prints a command with its parameters."""
        words = [str(one) for one in parameters if one is not None and one != ""]
        print(f"#{cmd}: {' '.join(words)}")

    def plain(name: str) -> Any:  # noqa: ANN401 - a function
        def function(*parameters: object, **named: object) -> tuple[object, ...]:
            command(name, *parameters, *named.values())
            return parameters

        return function

    names = (
        *("time_window", "material", "triangle", "sphere", "cylinder", "cylindrical_sector", "geometry_view"),
        *("geometry_objects_write", "snapshot", "excitation_file", "soil_peplinski", "title", "pml_cells"),
        "num_threads",
    )
    for name in names:
        setattr(module, name, plain(name))

    def sized(name: str) -> Any:  # noqa: ANN401 - a function
        def function(x: float, y: float, z: float) -> _Point:
            command(name, x, y, z)
            return _Point(x, y, z)

        return function

    def stepped(name: str) -> Any:  # noqa: ANN401 - a function
        def function(dx: float = 0, dy: float = 0, dz: float = 0) -> None:
            command(name, dx, dy, dz)

        return function

    def between(name: str) -> Any:  # noqa: ANN401 - a function
        def function(
            xs: float, ys: float, zs: float, xf: float, yf: float, zf: float, *others: object, **named: object
        ) -> tuple[_Point, _Point]:
            command(name, xs, ys, zs, xf, yf, zf, *others, *named.values())
            return _Point(xs, ys, zs), _Point(xf, yf, zf)

        return function

    def waveform(shape: str, amplitude: float, frequency: float, identifier: str) -> str:
        command("waveform", shape, amplitude, frequency, identifier)
        return identifier

    def dipole(name: str) -> Any:  # noqa: ANN401 - a function
        def function(
            polarisation: str, x: float, y: float, z: float, identifier: str,
            start: object = "", stop: object = "", *_: object, **__: object,
        ) -> _Point:  # fmt: skip
            command(name, polarisation, x, y, z, identifier, start, stop)
            return _Point(x, y, z)

        return function

    def rx(
        x: float, y: float, z: float, identifier: object = "", outputs: Any = (), *_: object, **__: object  # noqa: ANN401
    ) -> _Point:  # fmt: skip
        named = [outputs] if isinstance(outputs, str) else list(outputs or ())
        command("rx", x, y, z, identifier, *named)
        return _Point(x, y, z)

    def rx_array(*parameters: object) -> None:
        command("rx_array", *parameters)

    found = {"command": command, "waveform": waveform, "rx": rx, "rx_array": rx_array}
    found |= {name: dipole(name) for name in ("hertzian_dipole", "magnetic_dipole")}
    found |= {name: sized(name) for name in ("domain", "dx_dy_dz")}
    found |= {name: stepped(name) for name in ("src_steps", "rx_steps")}
    found |= {name: between(name) for name in ("edge", "plate", "box")}
    for name, function in found.items():
        setattr(module, name, function)
    return module


def _run(request: dict[str, Any]) -> dict[str, Any]:
    functions = _functions()
    package = types.ModuleType("gprMax")
    constants = {"c": _LIGHT, "e0": _PERMITTIVITY, "m0": _PERMEABILITY, "z0": _IMPEDANCE}
    constants_module = types.ModuleType("gprMax.constants")
    vars(constants_module).update(constants)
    package.__path__ = []
    sys.modules |= {"gprMax": package, "gprMax.input_cmd_funcs": functions, "gprMax.constants": constants_module}
    names: dict[str, Any] = {
        **constants,
        "__name__": "__main__",
        "inputfile": request["inputfile"],
        "current_model_run": 1,
        "number_model_runs": request["number_model_runs"],
    }
    printed = []
    for block in request["blocks"]:
        out = _Printed(request["limits"]["output"])
        try:
            code = compile(block["code"], "#python", "exec")
            with contextlib.redirect_stdout(out):
                exec(code, names)
        except BaseException as error:
            line = error.lineno if isinstance(error, SyntaxError) else _line_of(error)
            return {"line": block["line"] + (line or 0), "error": f"{type(error).__name__}: {error}"[:2000]}
        printed.append(out.getvalue())
    return {"printed": printed}


def _line_of(error: BaseException) -> int:
    """The line of the block that raised the error."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "#python":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def main() -> None:
    """Answers one request."""
    request = json.load(sys.stdin)
    sys.path[:0] = sys.argv[1:]
    # Loaded before the rights to read their files are gone.
    for name in _LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    limits = request["limits"]
    answer = os.dup(1)
    os.dup2(2, 1)  # output that bypasses sys.stdout must not mix with the answer
    _give_up_rights(limits["seconds"], limits["memory"])
    text = json.dumps(_run(request)).encode()
    while text:
        text = text[os.write(answer, text) :]


if __name__ == "__main__":
    main()
