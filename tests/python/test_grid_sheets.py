"""Edges with their own materials: sheets, wires, objects that are not averaged, and resistors."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from grid_reference import NumpyFdtd, at_edge
from grid_scenes import PATH, flat

from headrace import UsageError
from headrace.grid import Fdtd
from headrace.grid.solver import Layout, Scene, parse_scene
from headrace.grid.solver.model import build, samples, times
from headrace.grid.solver.painting import lay
from headrace.grid.solver.scene import Material

SIZE = 12  # cells along each axis

DEEP = """
[domain]
size = [0.12, 0.12, 0.12]
spacing = 0.01
cpml = 0
precision = "double"

[time]
steps = 120

[[materials]]
id = "sand"
permittivity = 4.0
conductivity = 0.02

[[materials]]
id = "wet"
permittivity = 9.0
conductivity = 0.1

[[materials]]
id = "clay"
permittivity = 16.0

[[sources]]
field = "ey"
position = [0.03, 0.04, 0.05]
waveform = "gaussiandotnorm"
frequency = 2e9

[[receivers]]
id = "near"
position = [0.08, 0.07, 0.06]
fields = ["ex", "ey", "ez", "hx", "hy", "hz"]
"""

BOX = 'type = "box"\nlow = {}\nhigh = {}\nmaterial = "{}"\n'


def deep(*objects: str, **changes: str) -> Scene:
    text = DEEP
    for old, new in changes.items():
        text = text.replace(f"{old} = ", f"{new} # ")
    return parse_scene(text + "".join(f"[[objects]]\n{one}\n" for one in objects), PATH)


class Naive:
    """Edges one by one, by the literal rule: each cell holds its edges until another object is painted over it."""

    def __init__(self) -> None:
        self.cells = dict.fromkeys(product(range(SIZE), repeat=3), "free_space")
        self.held: set[tuple[int, tuple[int, ...], tuple[int, ...]]] = set()
        self.own: dict[tuple[int, tuple[int, ...]], str] = {}

    @staticmethod
    def edges_of(cell: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """The twelve edges of a cell: the axis each lies along, and its node."""
        return [
            (along, tuple(cell[axis] + steps[axis] for axis in range(3)))
            for along in range(3)
            for steps in product((0, 1), repeat=3)
            if steps[along] == 0
        ]

    def solid(self, inside: Callable[[float, float, float], bool], materials: list[str], *, averaging: bool) -> None:
        for cell in self.cells:
            if not inside(*(at + 0.5 for at in cell)):
                continue
            self.cells[cell] = materials[0]
            for along, node in self.edges_of(cell):
                self.held.discard((along, node, cell))
                if not averaging:
                    self.held.add((along, node, cell))
                    self.own[along, node] = materials[along]

    def edge(self, along: int, node: tuple[int, ...], material: str) -> None:
        self.own[along, node] = material
        for cell in self.cells:
            if (along, node) in self.edges_of(cell):
                self.held.add((along, node, cell))

    def kept(self) -> dict[tuple[int, tuple[int, ...]], str]:
        held = {(along, node) for along, node, _ in self.held}
        return {edge: name for edge, name in self.own.items() if edge in held and max(edge[1]) < SIZE}


def edges_of(scene: Scene) -> dict[tuple[int, tuple[int, ...]], str]:
    laid = lay(scene)
    return {
        ("xyz".index(name[1]), tuple(int(at) for at in np.unravel_index(cell, scene.shape, order="F"))): laid.materials[
            number
        ].name
        for name, own in laid.edges.items()
        for cell, number in zip(own.cells, own.materials, strict=True)
    }


def test_edges_are_kept_as_long_as_a_cell_around_them_holds_on():
    scene = deep(
        BOX.format([0.01, 0.01, 0.01], [0.06, 0.06, 0.06], "sand") + "averaging = false",
        BOX.format([0.04, 0.04, 0.04], [0.09, 0.09, 0.09], "wet"),
        BOX.format([0.08, 0.02, 0.02], [0.12, 0.05, 0.05], "wet") + "averaging = false",
        'type = "sphere"\ncentre = [0.03, 0.09, 0.03]\nradius = 0.022\nmaterial = ["sand", "wet", "clay"]',
        'type = "wire"\nstart = [0.05, 0.05, 0.01]\nend = [0.05, 0.05, 0.09]\nmaterial = "clay"',
        'type = "plate"\nlow = [0.02, 0.02, 0.06]\nhigh = [0.07, 0.06, 0.06]\nmaterial = "pec"',
        BOX.format([0.05, 0.03, 0.05], [0.07, 0.09, 0.08], "sand"),
    )
    naive = Naive()
    naive.solid(lambda *at: all(1 < one < 6 for one in at), ["sand"] * 3, averaging=False)
    naive.solid(lambda *at: all(4 < one < 9 for one in at), ["wet"] * 3, averaging=True)
    naive.solid(lambda x, y, z: 8 < x < 12 and 2 < y < 5 and 2 < z < 5, ["wet"] * 3, averaging=False)
    ball = lambda x, y, z: (x - 3) ** 2 + (y - 9) ** 2 + (z - 3) ** 2 <= 2.2**2 + 1e-6  # noqa: E731
    naive.solid(ball, ["sand", "wet", "clay"], averaging=False)
    for z in range(1, 9):
        naive.edge(2, (5, 5, z), "clay")
    for x, y in product(range(2, 8), range(2, 7)):
        if x < 7:
            naive.edge(0, (x, y, 6), "pec")
        if y < 6:
            naive.edge(1, (x, y, 6), "pec")
    naive.solid(lambda x, y, z: 5 < x < 7 and 3 < y < 9 and 5 < z < 8, ["sand"] * 3, averaging=True)
    assert edges_of(scene) == naive.kept()
    laid = lay(scene)
    names = np.array([one.name for one in laid.materials])[laid.cells]
    assert all(names[cell] == name for cell, name in naive.cells.items())


def test_a_field_over_edges_is_that_of_plain_numpy():
    objects = (
        BOX.format([0.05, 0.05, 0.0], [0.12, 0.12, 0.05], "sand") + "averaging = false",
        'type = "plate"\nlow = [0.02, 0.06, 0.02]\nhigh = [0.10, 0.06, 0.07]\nmaterial = ["wet", "pec"]',
        'type = "wire"\nstart = [0.05, 0.04, 0.01]\nend = [0.05, 0.04, 0.09]\nmaterial = "pec"',
        'type = "triangle"\naxis = "x"\nlow = 0.09\nhigh = 0.09\nfirst = [0.01, 0.01]\nsecond = [0.1, 0.02]\n'
        'third = [0.05, 0.09]\nmaterial = "wet"',
        'type = "cylinder"\nstart = [0.03, 0.09, 0.02]\nend = [0.09, 0.09, 0.02]\nradius = 0.02\n'
        'material = ["sand", "wet", "clay"]',
    )
    scene = deep(*objects)
    traces = {}
    for maker in (None, NumpyFdtd):
        model = build(scene, Layout(), maker)
        model.solver.step(scene.steps)
        traces[maker] = {key: model.solver.trace(number) for key, number in model.receivers.items()}
    for key, values in traces[None].items():
        scale = max(np.abs(one).max() for (_, name), one in traces[None].items() if name[0] == key[1][0])
        assert np.abs(values).max() > 1e-3 * scale, key
        np.testing.assert_allclose(
            values, traces[NumpyFdtd][key], rtol=0, atol=1e-7 * scale
        )  # the constants differ in their last digits
    bare = build(deep(*objects[:1]), Layout())
    bare.solver.step(scene.steps)
    assert np.abs(bare.solver.trace(0) - traces[None]["near", "ex"]).max() > 1e-3 * np.abs(bare.solver.trace(0)).max()


@pytest.mark.parametrize("devices", [("cpu:0",), ("cpu:0", "cpu:0")])
def test_six_plates_of_metal_keep_everything_in(devices: tuple[str, ...]):
    walls = []
    for axis, at in product(range(3), (0.02, 0.06)):
        low, high = [0.02] * 3, [0.06] * 3
        low[axis] = high[axis] = at
        walls.append(f'type = "plate"\nlow = {low}\nhigh = {high}\nmaterial = "pec"\n')
    for kept, most in ((6, 1e-9), (5, None)):
        model = build(deep(*walls[:kept]), Layout(devices))
        model.solver.step(120)
        outside = max(np.abs(model.solver.trace(number)).max() for number in range(3))
        inside = np.abs(model.solver.field("ey")[2:6, 2:6, 2:6]).max()
        assert outside < most * inside if most else outside > 1e-3 * inside


def test_a_voltage_is_divided_between_two_resistances():
    """Two plates a cell apart, a slow voltage behind 50 Ohm between them, and a resistor elsewhere between them."""
    plates = [
        f'type = "plate"\nlow = [0.03, 0.03, {at}]\nhigh = [0.07, 0.07, {at}]\nmaterial = "pec"' for at in (0.05, 0.06)
    ]
    load = 'type = "wire"\nstart = [0.06, 0.06, 0.05]\nend = [0.06, 0.06, 0.06]\nmaterial = "resistor"'
    ohms, spacing = 30.0, 0.01
    text = DEEP.replace('field = "ey"\nposition = [0.03, 0.04, 0.05]', 'field = "ez"\nposition = [0.04, 0.04, 0.05]')
    text = text.replace(
        '"gaussiandotnorm"\nfrequency = 2e9', '"gaussian"\nfrequency = 1.5e7\nresistance = 50.0\namplitude = 8'
    )
    text = text.replace("steps = 120", "steps = 7000").replace("[0.08, 0.07, 0.06]", "[0.06, 0.06, 0.05]")
    text += f'[[materials]]\nid = "resistor"\nconductivity = {1 / (ohms * spacing)}\n'
    text += "".join(f"[[objects]]\n{one}\n" for one in (*plates, load))
    scene = parse_scene(text, PATH)
    model = build(scene, Layout())
    model.solver.step(scene.steps)
    voltage = -model.solver.trace(model.receivers["near", "ez"]) * spacing
    moments = times(scene, "ez", scene.steps)
    wanted = 8 * np.exp(-2 * (np.pi * 1.5e7) ** 2 * (moments - 1 / 1.5e7) ** 2) * ohms / (ohms + 50)
    assert np.abs(voltage - wanted).max() < 0.02 * wanted.max()


def test_a_magnetic_current_is_the_dual_of_an_electric_one():
    """In vacuum H of a magnetic current is E of an electric one times permittivity over permeability, node by node."""
    step = deep().dt
    fields = []
    # Seen from the sources, the node of hx lies half a cell before that of ex: the same place on their other side.
    ends = ("[0.23, 0.24, 0.22]", "[0.17, 0.16, 0.18]")
    for field, delay, seen, end in (("ey", step / 2, "ex", ends[0]), ("hy", 0.0, "hx", ends[1])):
        text = DEEP.replace('field = "ey"', f'field = "{field}"\ndelay = {delay!r}')
        # Far enough from the walls to exclude reflections: a metal wall is not the dual of the other.
        text = text.replace("[0.12, 0.12, 0.12]", "[0.4, 0.4, 0.4]").replace("steps = 120", "steps = 32")
        text = text.replace("[0.03, 0.04, 0.05]", "[0.2, 0.2, 0.2]").replace("[0.08, 0.07, 0.06]", end)
        scene = parse_scene(text, PATH)
        model = build(scene, Layout())
        model.solver.step(scene.steps)
        fields.append(model.solver.trace(model.receivers["near", seen]))
    ratio = 8.8541878128e-12 / 1.25663706127e-6
    assert np.abs(fields[1]).max() > 0
    np.testing.assert_allclose(fields[1], fields[0] * ratio, rtol=0, atol=1e-6 * np.abs(fields[1]).max())


def test_the_current_of_a_magnetic_source_is_taken_where_its_step_begins():
    text = DEEP.replace('field = "ey"', 'field = "hy"\namplitude = 3.0')
    scene = parse_scene(text, PATH)
    found = samples(scene, scene.sources[0], Material("iron", permeability=5.0))
    moments = np.arange(found.size) * scene.dt
    zeta, late = 2 * (np.pi * 2e9) ** 2, moments - 1 / 2e9
    pulse = -2 * zeta * late * np.exp(-zeta * late**2) * np.sqrt(np.e / (2 * zeta))
    np.testing.assert_allclose(found, -scene.dt / (5 * 4e-7 * np.pi) * 3 * pulse / 0.01**2, rtol=1e-6, atol=1e-9)


def test_thin_objects_of_two_dimensions():
    scene = flat(
        (
            "[[sources]]",
            '[[objects]]\ntype = "plate"\nlow = [0.05, 0.2]\nhigh = [0.1, 0.2]\nmaterial = "pec"\n[[sources]]',
        ),
        (
            "[[receivers]]",
            '[[objects]]\ntype = "wire"\nposition = [0.3, 0.251]\nmaterial = "sand"\n'
            '[[objects]]\ntype = "box"\nlow = [0.1, 0.0]\nhigh = [0.12, 0.02]\nmaterial = ["pec", "pec", "sand"]\n'
            "[[receivers]]",
        ),
    )
    edges = lay(scene).edges
    assert list(edges) == ["ez"]
    x, y = np.unravel_index(edges["ez"].cells, scene.shape, order="F")
    names = [lay(scene).materials[number].name for number in edges["ez"].materials]
    wanted = {(at, 20): "pec" for at in range(5, 11)} | {(30, 25): "sand"}
    wanted |= {(10 + i, j): "sand" for i in range(3) for j in range(3)}
    assert {(int(a), int(b)): name for a, b, name in zip(x, y, names, strict=True)} == wanted


def test_a_source_in_an_edge_of_its_own_drives_what_that_edge_is_made_of():
    wire = 'type = "wire"\nstart = [0.03, 0.03, 0.05]\nend = [0.03, 0.06, 0.05]\nmaterial = "wet"'
    scene = deep(wire)
    model = build(scene, Layout(), NumpyFdtd)
    found = next(values for field, _, values in model.solver.sources if field == "ey")
    assert found[:20] == pytest.approx(samples(scene, scene.sources[0], scene.materials["wet"])[:20])


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (
            'type = "plate"\nlow = [0, 0, 0]\nhigh = [0.1, 0.1, 0.1]\nmaterial = "pec"',
            "high must equal low along exactly one axis",
        ),
        ('type = "plate"\nlow = [0, 0.1, 0]\nhigh = [0, 0, 0.1]\nmaterial = "pec"', "0 along y is not above low, 0.1"),
        ('type = "wire"\nstart = [0, 0, 0]\nend = [0.1, 0.1, 0]\nmaterial = "pec"', "a wire lies along one axis"),
        ('type = "wire"\nstart = [0, 0, 0]\nend = [0.1, 0, 0]\nmaterial = ["pec", "pec"]', "has one material"),
        (BOX.format([0, 0, 0], [1, 1, 1], "pec").replace('"pec"', '["pec", "pec"]'), "is not a list of 3 words"),
        (
            BOX.format([0, 0, 0], [1, 1, 1], "pec").replace('"pec"', '["pec", "pec", "pek"]'),
            "there is no material 'pek'",
        ),
        (
            BOX.format([0, 0, 0], [1, 1, 1], "pec").replace('"pec"', '["pec", "pec", "sand"]') + "averaging = true",
            "a material for each axis cannot be averaged",
        ),
    ],
)
def test_what_cannot_be_is_named(one: str, says: str):
    with pytest.raises(UsageError, match=says):
        deep(one)


def test_edges_do_not_go_with_smoothing():
    with pytest.raises(UsageError, match="which smoothing = true does not support"):
        flat(("cpml = 0", "cpml = 0\nsmoothing = true"), ("below = 0.1", "below = 0.1\naveraging = false"))


def test_a_resistance_is_that_of_an_electric_source():
    with pytest.raises(UsageError, match="resistance: is for a voltage source"):
        flat(("frequency = 0.5e9", 'frequency = 0.5e9\nfield = "hx"\nresistance = 50'))


def test_sheets_outside_the_domain_are_warned_of():
    scene = deep('type = "plate"\nlow = [0, 0, 0.2]\nhigh = [0.1, 0.1, 0.2]\nmaterial = "pec"')
    assert any("covers no edges within the domain" in warning for warning in scene.warnings)


def test_fdtd_takes_edges_as_they_are():
    run = Fdtd((6, 5, 4), 0.01, cpml=0, precision="double", devices=["cpu:0"])
    nodes = [(3, 2, 2), (1, 1, 1), (2, 3, 1)]
    run.set_materials(2.0, 0.0, 1.0, edges={"ex": (nodes, [3.0, 5.0, 7.0], 0.1)})
    plain = Fdtd((6, 5, 4), 0.01, cpml=0, precision="double", devices=["cpu:0"])
    plain.set_materials(2.0, 0.0, 1.0)
    rng = np.random.default_rng(5)
    start = {name: rng.standard_normal(run.shape) for name in run.fields}
    for one in (run, plain):
        for name, values in start.items():
            one.set_field(name, values)
        one.step()
    permittivity = at_edge(2.0, run.shape, "ex") * 8.8541878128e-12
    sigma = np.zeros(run.shape)
    for node, value in zip(nodes, (3.0, 5.0, 7.0), strict=True):
        permittivity[node], sigma[node] = value * 8.8541878128e-12, 0.1
    kept, before = run.field("ex"), plain.field("ex")
    # One step adds dt / epsilon times the curl, so the effect of an edge follows from the other run.
    curl = (before - start["ex"]) * 2 * 8.8541878128e-12 / run.dt
    loss = sigma * run.dt / (2 * permittivity)
    wanted = (1 - loss) / (1 + loss) * start["ex"] + run.dt / permittivity / (1 + loss) * curl
    inside = (slice(None), slice(1, None), slice(1, None))
    np.testing.assert_allclose(kept[inside], wanted[inside], rtol=1e-9, atol=1e-9)
    with pytest.raises(UsageError, match=r"at \(6, 0, 0\) lies outside"):
        run.set_materials(edges={"ex": ([(6, 0, 0)], 1.0, 0.0)})
    with pytest.raises(UsageError, match="is given twice"):
        run.set_materials(edges={"ex": ([(1, 1, 1), (1, 1, 1)], 1.0, 0.0)})
    with pytest.raises(UsageError, match="edges of 'hx'"):
        run.set_materials(edges={"hx": ([(1, 1, 1)], 1.0, 0.0)})
    with pytest.raises(UsageError, match=r"permittivity of ex has shape \(2,\), but there are 1 edges"):
        run.set_materials(edges={"ex": ([(1, 1, 1)], [1.0, 2.0], 0.0)})
