"""Almost valid scenes and gprMax input: each gives a scene, or a one-line error with the place."""

import itertools
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import mutation
import numpy as np
import pytest
from grid_scenes import FLAT, changed
from test_grid_convert import DEEP, OLD
from test_grid_convert import FLAT as FLAT_INPUT

from headrace import Error
from headrace.grid.gprmax import convert, exports
from headrace.grid.solver import Layout, Outputs, checkpoint, parse_scene, run_one, traces
from headrace.grid.solver.model import build

ROUNDS = 1500
DEADLINE_SECONDS = 60
KEYS = (
    *(
        "[[objects]]\n",
        "[[plane_waves]]\n",
        "[[objects.parts]]\n",
        'type = "sphere"\n',
        "radius = ",
        "points = [[0.1, 0.1]]",
    ),
    *(
        'type = "box"\n',
        "from = [0.0, 0.0]\n",
        'waveform = "file"\n',
        'file = "/dev/zero"\n',
        "count = 100000000\n",
        "dt = ",
    ),
)
COMMANDS = (
    *(
        "#box: ",
        "#triangle: ",
        "#plate: ",
        "#edge: ",
        "#rx_array: ",
        "#include_file: x\n",
        "#python:\n",
        "#end_python:\n",
    ),
    *("#pml_cells: ", "#src_steps: 0.01 0 0\n", "#snapshot: ", "#material: ", "#waveform: ", "#geometry_view: "),
)


def limited(call: Callable[[], object], what: object) -> str | None:
    """The error message of a call, or None if it returns. Any other exception fails the test."""
    try:
        with mutation.deadline(DEADLINE_SECONDS):
            call()
    except Error as error:
        said = str(error)
        assert said, what
        return said
    return None


def test_scenes_are_read_or_refused(tmp_path: Path):
    space = changed(
        ("size = [0.4, 0.3]", "size = [0.16, 0.14, 0.12]"), ("position = [0.2, 0.2]", "position = [0.08, 0.07, 0.06]")
    )
    mutator = mutation.Mutator((FLAT.encode(), space.encode()), KEYS)
    read = refused = 0
    for number, choose in mutation.cases(ROUNDS):
        text = mutator.make(choose).decode(errors="replace")
        said = limited(lambda text=text: parse_scene(text, tmp_path / "scene.toml"), (number, text))
        read += said is None
        refused += said is not None
    assert read > ROUNDS / 100
    assert refused > ROUNDS / 4


def test_input_of_gprmax_becomes_a_scene_or_is_refused(tmp_path: Path):
    mutator = mutation.Mutator([text.encode() for text in (FLAT_INPUT, DEEP, OLD)], COMMANDS)
    converted = refused = 0
    path = tmp_path / "scene.in"
    for number, choose in mutation.cases(ROUNDS):
        text = mutator.make(choose).decode(errors="replace")
        found = []
        said = limited(lambda text=text, found=found: found.append(convert(text, path)), (number, text))
        refused += said is not None
        if said is None:  # the output is a valid scene, or an error names the problem
            limited(lambda found=found: parse_scene(found[0].text, path), (number, text))
            converted += 1
    assert converted > ROUNDS / 100
    assert refused > ROUNDS / 4


def test_cases_can_be_made_again():
    """The number that a failing test prints is enough to recreate its input."""
    mutator = mutation.Mutator((FLAT.encode(),))
    made = [mutator.make(choose) for _, choose in itertools.islice(mutation.cases(20), 20)]
    assert made[-1] == mutator.make(mutation.case(mutation.FIRST + 19))
    assert len(set(made)) > len(made) / 2


def member(shape: str, kind: str) -> bytes:
    """A member of an .npz file with little content."""
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(24)


HELD = [
    ("(1099511627776,)", "<f8"),
    ("(3,)", "|O"),
    ("(0,)", "<i4"),
    ("(2, 3)", "|u1"),
    ("()", "<f8"),
    ("()", "<i8"),
    ("(-5,)", "<f8"),
    ("('a',)", "<f8"),
    ("(1,)", "<U6"),
    ("()", "<M8[s]"),
]


@pytest.mark.parametrize(("shape", "kind"), HELD)
def test_checkpoints_with_other_arrays_are_refused(tmp_path: Path, shape: str, kind: str):
    scene = parse_scene(FLAT, tmp_path / "scene.toml")
    path = tmp_path / "a.npz"
    solver = build(scene, Layout()).solver
    solver.step(10)
    checkpoint.save(path, scene, 10, solver.state())
    with zipfile.ZipFile(path) as file:
        whole = {name: file.read(name) for name in file.namelist()}
    for changed_name in whole:
        with zipfile.ZipFile(path, "w") as file:
            for name, data in whole.items():
                file.writestr(name, member(shape, kind) if name == changed_name else data)
        if changed_name.startswith(("averaging", "smoothing")):  # this value is only for people
            continue
        made = build(scene, Layout()).solver
        with pytest.raises(Error, match=re.escape(str(path))):
            checkpoint.restore(path, scene, made)


def test_traces_with_other_attributes_are_read_or_refused(tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    scene = parse_scene(FLAT, tmp_path / "scene.toml")
    path = tmp_path / "a.h5"
    run_one(scene, Layout(), Outputs(traces=path))
    whole = path.read_bytes()
    with h5py.File(path) as file:
        names = list(file.attrs)
    refused = 0
    for name in names:
        for value in (np.zeros(0), "text", -5, 1e300, np.array([1, 2, 3]), 2**62):
            path.write_bytes(whole)
            with h5py.File(path, "a") as file:
                file.attrs[name] = value
            said = limited(lambda: exports.read(path), (name, value))
            limited(lambda: traces.read(path, scene), (name, value))
            refused += said is not None
            assert said is None or str(path) in said
    assert refused > len(names)
