"""Scenes with polarisation = "te": everywhere the fields are hz, ex and ey, at their own places."""

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
from grid_reference import NumpyFdtd
from grid_scenes import PATH, changed, flat

from headrace import UsageError
from headrace.grid import scenes
from headrace.grid.gprmax import exports
from headrace.grid.solver import Layout, Outputs, Scene, memory, parse_scene, run_one, run_scan
from headrace.grid.solver.model import build
from headrace.grid.solver.painting import lay
from headrace.grid.solver.scene import LIGHT, VACUUM_PERMEABILITY, VACUUM_PERMITTIVITY

TE = (("cpml = 0", 'cpml = 0\npolarisation = "te"'), ('fields = ["ez", "hx"]', 'fields = ["hz", "ex", "ey"]'))
DOUBLE = ('polarisation = "te"', 'polarisation = "te"\nprecision = "double"')
CPU = ["cpu:0"]
IMPEDANCE = VACUUM_PERMEABILITY * LIGHT


def te(*changes: tuple[str, str]) -> Scene:
    """The scene of grid_scenes.py with Hz in its plane, and with each old text replaced by a new one."""
    text = changed(*TE)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return parse_scene(text, PATH)


def ran(scene: Scene, layout: Layout = Layout(), **more: object) -> dict[str, np.ndarray]:  # noqa: B008 - it is frozen
    done = run_one(scene, layout, Outputs(), **more)
    assert done.traces is not None
    return {field: values[0] for (_, field), values in done.traces.values.items()}


@pytest.mark.parametrize("spacing", ["0.01", "[0.01, 0.005]", "[0.005, 0.02]"])
@pytest.mark.parametrize("source", ["hz", "ex", "ey"])
def test_it_does_what_the_plain_solver_does(source: str, spacing: str):
    sheet = '[[objects]]\ntype = "plate"\nlow = [0.1, 0.15]\nhigh = [0.2, 0.15]\nmaterial = "pec"\n\n[[sources]]'
    where = ("[[sources]]\nposition", f'{sheet}\nfield = "{source}"\nposition')
    scene = te(DOUBLE, where, ("spacing = 0.01", f"spacing = {spacing}"))
    plain = ran(scene, maker=NumpyFdtd)
    for field, values in ran(scene).items():
        assert np.abs(plain[field]).max() > 0
        # The vacuum constants differ in their tenth digit.
        assert np.abs(values - plain[field]).max() < 1e-7 * np.abs(plain[field]).max()


@pytest.mark.parametrize(
    "layout",
    [
        Layout(("cpu:0", "cpu:0"), (2, 1), 3, "copy"),
        Layout(("cpu:0",), redundant=4),
        Layout(("cpu:0",) * 4, (2, 2), 1, "store"),
        Layout(("cpu:0", "cpu:0"), mode="resident"),
        Layout(("cpu:0",), device_memory=60_000),
    ],
    ids=str,
)
def test_every_way_to_run_it_gives_the_same_bits(layout: Layout):
    scene = te(("cpml = 0", "cpml = 4"), ("steps = 150", "steps = 100"))
    whole = ran(scene)
    for field, values in ran(scene, layout).items():
        assert (values == whole[field]).all()


def test_the_main_field_is_hz():
    scene = te(('id = "near"', 'id = "near2"'), ('fields = ["hz", "ex", "ey"]', ""))
    assert scene.fields == ("hz", "ex", "ey")
    assert (scene.sources[0].field, scene.receivers[0].fields, scene.snapshots.fields) == ("hz", ("hz",), ("hz",))
    assert scene.digest() != flat(('id = "near"', 'id = "near2"'), ('fields = ["ez", "hx"]', "")).digest()


@pytest.mark.parametrize(
    ("scene", "change", "message"),
    [
        (
            te,
            ("[[sources]]", '[[sources]]\nfield = "ez"'),
            r"field: there is no 'ez' with polarisation = \"te\", only hz",
        ),
        (te, ('"hz", "ex", "ey"', '"hz", "hx"'), r"fields: there is no 'hx' with .*, only hz, ex, ey"),
        (
            te,
            ("interval = 0.5e-9", 'fields = ["ez"]'),
            r"fields: there is no 'ez' with polarisation = .te., .*polarisation = .tm. has it",
        ),
        (
            flat,
            ("[[sources]]", '[[sources]]\nfield = "hz"'),
            r"there is no 'hz' with polarisation = .tm., only ez, hx, hy",
        ),
        (te, ("[[sources]]", '[[sources]]\nfield = "e"'), r"field: there is no 'e'"),
        (te, ("cpml = 0", "cpml = 0\nsmoothing = true"), r'smoothing: is not available with polarisation = "te"'),
        (te, ('"te"', '"tz"'), r"polarisation: there is no 'tz'"),
        (te, ("size = [0.4, 0.3]", "size = [0.4, 0.3, 0.1]"), r"polarisation: is for two dimensions"),
    ],
)
def test_errors_name_the_polarisation(scene, change: tuple[str, str], message: str):
    with pytest.raises(UsageError, match=message) as caught:
        scene(change)
    assert "\n" not in str(caught.value)


def plane_wave(te_or_tm: str, **more: object) -> scenes.Scene:
    """A plane wave along x that meets a block of permittivity 4 that reaches far across it."""
    return scenes.Scene(
        scenes.Domain(size=[0.5, 1.2], spacing=0.005, cpml=10, precision="double", polarisation=te_or_tm),
        scenes.Time(steps=185),
        materials=[scenes.Material(id="glass", permittivity=4)],
        objects=[scenes.Box(low=[0.3, 0.2], high=[0.4, 1.0], material="glass")],
        plane_waves=[scenes.PlaneWave(direction="+x", waveform="gaussian", frequency=3e9)],
        **more,
    )


def test_a_plane_wave_reflects_as_one_with_ez_and_by_fresnel():
    """Normal to the interface both polarisations obey the same scheme, with E and H exchanged in sign."""
    place = [0.2, 0.6]
    wave = plane_wave("te", receivers=[scenes.Receiver(id="at", position=place, fields=["hz", "ey", "ex"])])
    other = plane_wave("tm", receivers=[scenes.Receiver(id="at", position=place, fields=["ez", "hy"])])
    wave.domain.spacing = other.domain.spacing = 0.0025
    wave.time.steps = other.time.steps = 300  # until the echo has passed, and before the ends of the glass are felt
    assert wave.checked().plane_waves[0].field == "ey"
    found, expected = wave.run(CPU), other.run(CPU)
    assert np.abs(found["at", "ey"].values - expected["at", "ez"].values).max() < 1e-12
    assert np.abs(found["at", "hz"].values + expected["at", "hy"].values).max() < 1e-12 / IMPEDANCE
    assert np.abs(found["at", "ex"].values).max() < 1e-12
    assert found["at", "ey"].values.max() == pytest.approx(1, abs=0.02)
    assert found["at", "hz"].values.max() == pytest.approx(1 / IMPEDANCE, rel=0.02)
    assert found["at", "ey"].values.min() < -0.3


def test_the_wave_goes_back_from_glass_with_its_electric_field_turned_round():
    wave = plane_wave("te", receivers=[scenes.Receiver(id="at", position=[0.2, 0.6], fields=["hz", "ey"])])
    wave.time = scenes.Time(window=2.4e-9)
    wave.plane_waves[0].frequency = 2e9
    found = wave.run(CPU)
    e, h = found["at", "ey"], found["at", "hz"]
    away = e.times > 1.4e-9  # from 0.2 m to 0.3 m and back takes 0.67 ns
    assert e.values[~away].max() == pytest.approx(1, abs=0.02)
    echo = e.values[away]
    assert echo[np.argmax(np.abs(echo))] == pytest.approx(-1 / 3, abs=0.02)
    echo = h.values[h.times > 1.4e-9]
    assert echo[np.argmax(np.abs(echo))] * IMPEDANCE == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("direction", ["+x", "-x", "+y", "-y"])
def test_nothing_leaves_the_box_of_a_plane_wave(direction: str):
    scene = scenes.Scene(
        scenes.Domain(size=[0.3, 0.25], spacing=0.005, cpml=8, precision="double", polarisation="te"),
        scenes.Time(steps=200),
        plane_waves=[scenes.PlaneWave(direction=direction, waveform="gaussian", frequency=2e9)],
    ).checked()
    solver = build(scene, Layout()).solver
    low, high = scene.plane_waves[0].low, scene.plane_waves[0].high
    strongest = 0.0
    for _ in range(20):
        solver.step(10)
        hz = solver.field("hz") * IMPEDANCE
        inside = hz[low[0] : high[0], low[1] : high[1]].copy()
        strongest = max(strongest, np.abs(inside).max())
        hz[low[0] : high[0], low[1] : high[1]] = 0
        assert np.abs(hz).max() < 1e-12
    assert strongest == pytest.approx(1, abs=0.02)


ANGLE = np.radians(40)


def beam(polarisation: str, below: str) -> tuple[Scene, np.ndarray]:
    """Traces along a row of receivers, between a row of sources that sends a slanted beam down and what is below."""
    scene = scenes.Scene(
        scenes.Domain(size=[3.6, 1.3], spacing=0.01, cpml=12, precision="double", polarisation=polarisation),
        scenes.Time(window=14e-9),
        materials=[scenes.Material(id="glass", permittivity=4)],
        objects=[scenes.HalfSpace(axis="y", below=0.5, material=below)],
    ).checked()
    solver = build(scene, Layout()).solver
    times = np.arange(scene.steps) * scene.dt
    for cell in range(30, 210):
        x = cell * scene.spacing[0] - 1.2
        late = times - 3e-9 - x * np.sin(ANGLE) / LIGHT
        pulse = np.exp(-((x / 0.4) ** 2) - (late / 0.9e-9) ** 2) * np.sin(2 * np.pi * 1.2e9 * late)
        solver.add_source(scene.main_field, (cell, 80), pulse)
    row = [solver.add_receiver(scene.main_field, (cell, 65)) for cell in range(12, 348)]
    solver.step(scene.steps)
    return scene, np.array([solver.trace(number) for number in row])


@pytest.mark.parametrize("polarisation", ["te", "tm"])
def test_a_slanted_beam_reflects_as_fresnel_says(polarisation: str):
    """At 40 degrees glass reflects a quarter of a wave with Hz, but nearly half of one with Ez."""
    scene, incident = beam(polarisation, "free_space")
    echo = beam(polarisation, "glass")[1] - incident
    down, up = (np.abs(np.fft.fft2(traces, s=(1024, 1024))) for traces in (incident, echo))
    waves, frequencies = np.fft.fftfreq(1024, scene.spacing[0]), np.fft.fftfreq(1024, scene.dt)
    strong = np.argwhere(down > 0.5 * down.max())
    strong = strong[(waves[strong[:, 0]] < 0) & (frequencies[strong[:, 1]] > 0)]
    sines = -waves[strong[:, 0]] * LIGHT / frequencies[strong[:, 1]]
    assert sines.min() < np.sin(ANGLE) < sines.max()
    outside, inside = np.sqrt(1 - sines**2), np.sqrt(1 - (sines / 2) ** 2)
    first, second = (2 * outside, inside) if polarisation == "te" else (outside, 2 * inside)
    fresnel = np.abs((first - second) / (first + second))
    incoming, returned = down[tuple(strong.T)], up[tuple(strong.T)]
    share = np.linalg.norm(returned) / np.linalg.norm(incoming)
    expected = np.linalg.norm(fresnel * incoming) / np.linalg.norm(incoming)
    assert expected == pytest.approx(0.22 if polarisation == "te" else 0.44, abs=0.03)
    assert share == pytest.approx(expected, abs=0.02)


def test_a_voltage_source_is_a_current_behind_its_resistance():
    source = '[[sources]]\nfield = "ex"\nresistance = 50.0'
    scene = te(DOUBLE, ("[[sources]]", source))
    cell = scene.cell(scene.sources[0].position)
    kept: dict[str, object] = {}

    class Spy(NumpyFdtd):
        def set_materials(self, *args: object, **more: object) -> None:
            kept.update(more)
            super().set_materials(*args, **more)

        def add_source(self, field: str, cell: tuple[int, ...], samples: np.ndarray) -> None:
            kept["samples"] = samples
            super().add_source(field, cell, samples)

    model = build(scene, Layout(), Spy)
    nodes, _permittivity, conductivity = kept["edges"]["ex"]
    assert nodes.tolist() == [list(cell)]
    # A plane is one cell thick: the edge is a rod of spacing x spacing, one spacing long.
    (spacing, _) = scene.spacing
    sigma = 1 / (50 * spacing)
    assert conductivity == pytest.approx([sigma])
    loss = sigma * scene.dt / (2 * VACUUM_PERMITTIVITY)
    factor = -scene.dt / VACUUM_PERMITTIVITY / (1 + loss) / spacing**2 / 50
    wave = scene.sources[0].wave
    begins = np.arange(5) * scene.dt
    assert kept["samples"][:5] == pytest.approx(factor * wave.at(begins, begins + scene.dt / 2, scene.dt))
    assert model.receivers[("near", "ey")] == 2


def test_sheets_wires_and_axes_have_edges_in_the_plane():
    """Ex at (i + 1/2, j) and Ey at (i, j + 1/2): a plate has edges along itself, an object those along each axis."""
    objects = """
[[objects]]
type = "plate"
low = [0.1, 0.2]
high = [0.13, 0.2]
material = "pec"

[[objects]]
type = "wire"
start = [0.3, 0.12]
end = [0.3, 0.14]
material = "sand"

[[objects]]
type = "box"
low = [0.2, 0.15]
high = [0.21, 0.16]
material = ["sand", "pec", "free_space"]

[[sources]]"""
    laid = lay(te(("[[sources]]", objects)))
    names = {one.name: number for number, one in enumerate(laid.materials)}

    def nodes(field: str, material: str) -> list[tuple[int, int]]:
        own = laid.edges[field]
        cells = own.cells[own.materials == names[material]]
        return sorted((int(cell) % 40, int(cell) // 40) for cell in cells)

    assert set(laid.edges) == {"ex", "ey"}
    assert nodes("ex", "pec") == [(10, 20), (11, 20), (12, 20)]
    assert nodes("ex", "sand") == [(20, 15), (20, 16)]
    assert nodes("ey", "sand") == [(30, 12), (30, 13)]
    assert nodes("ey", "pec") == [(20, 15), (21, 15)]


@pytest.mark.parametrize(
    ("scene", "keys", "message"),
    [
        (te, "position = [0.1, 0.1]", "a wire across the plane has no edges where ez is absent"),
        (flat, "start = [0.1, 0.1]\nend = [0.2, 0.1]", "a wire in the plane has no edges"),
    ],
)
def test_a_wire_needs_a_field_along_it(scene, keys: str, message: str):
    wire = f'[[objects]]\ntype = "wire"\nmaterial = "pec"\n{keys}\n\n[[sources]]'
    with pytest.raises(UsageError, match=message):
        scene(("[[sources]]", wire))


def test_traces_name_fields_and_places(tmp_path: Path):
    path = tmp_path / "t.h5"
    scene = te()
    done = run_scan(scene, Layout(), Outputs(traces=path, png=tmp_path / "t.png"), maker=NumpyFdtd)
    assert [one.name for one in done.files.written] == ["t.h5", "t.png"]
    with h5py.File(path) as file:
        assert file.attrs["polarisation"] == "te"
        assert sorted(name for name in file["receivers/near"] if len(name) == 2) == ["ex", "ey", "hz"]
        for name, unit, offset, late in (
            ("hz", "A/m", (0.5, 0.5), 0.5),
            ("ex", "V/m", (0.5, 0.0), 1.0),
            ("ey", "V/m", (0.0, 0.5), 1.0),
        ):
            data = file[f"receivers/near/{name}"]
            assert data.attrs["unit"] == unit
            assert data.attrs["offset"] == pytest.approx([share * 0.01 for share in offset])
            assert file[f"receivers/near/time_{name}"][0] == pytest.approx(late * scene.dt)
    found = exports.read(path)
    exports.write_gprmax(tmp_path / "t.out", found, separate=False)
    with h5py.File(tmp_path / "t.out") as file:
        assert sorted(file["rxs/rx1"]) == ["Ex", "Ey", "Hz"]
        assert file["srcs/src1"].attrs["Type"] == "MagneticDipole"


def test_segy_holds_hz_unless_told_otherwise(tmp_path: Path):
    segyio = pytest.importorskip("segyio")
    path = tmp_path / "t.h5"
    done = run_scan(te(), Layout(), Outputs(traces=path), maker=NumpyFdtd)
    assert done.traces is not None
    exports.write_segy(tmp_path / "t.sgy", exports.read(path), None)
    with segyio.open(str(tmp_path / "t.sgy"), ignore_geometry=True) as file:
        assert (file.trace[1] == done.traces.values["near", "hz"][1].astype(np.float32)).all()


def test_snapshots_lie_at_the_places_of_components(tmp_path: Path):
    fields = ("interval = 0.5e-9", 'interval = 0.5e-9\nfields = ["hz", "ex"]')
    outputs = Outputs(snapshots=tmp_path / "s", png=tmp_path / "p.png", gif=tmp_path / "p.gif")
    done = run_one(te(fields), Layout(), outputs, maker=NumpyFdtd)
    assert done.steps == 150
    for name, origin in (("hz", "0.005 0.005 0.0"), ("ex", "0.005 0.0 0.0")):
        written = sorted((tmp_path / "s").glob(f"{name}-step-*.vti"))
        assert written
        content = written[-1].read_bytes()
        head, data = content.split(b'<AppendedData encoding="raw">\n_', 1)
        assert f'Origin="{origin}"' in head.decode()
        assert struct.unpack("<Q", data[:8])[0] == 40 * 30 * 4
    assert (tmp_path / "p.png").exists()
    assert (tmp_path / "p.gif").exists()


def test_a_restart_gives_the_same_bits_and_refuses_the_other_polarisation(tmp_path: Path):
    scene = te(("cpml = 0", "cpml = 4"))
    whole = ran(scene)
    path = tmp_path / "c.npz"
    half = te(("cpml = 0", "cpml = 4"), ("steps = 150", "steps = 70"))
    run_one(half, Layout(), Outputs(checkpoint=path))
    done = run_one(scene, Layout(("cpu:0", "cpu:0")), Outputs(restart=path))
    assert done.traces is not None
    for field, values in whole.items():
        assert (done.traces.values["near", field][0] == values).all()
    other = flat(("cpml = 0", "cpml = 4"))
    with pytest.raises(UsageError, match="the checkpoint is of another scene"):
        run_one(other, Layout(), Outputs(restart=path))


def test_flux_around_a_magnetic_line_is_the_work_of_its_source():
    """A magnetic current M does the work -M H: that flows out, through sides in vacuum and in glass."""
    scene = scenes.Scene(
        scenes.Domain(size=[0.4, 0.4], spacing=0.005, cpml=10, precision="double", polarisation="te"),
        scenes.Time(window=8e-9, courant=0.9),
        materials=[scenes.Material(id="glass", permittivity=4)],
        objects=[scenes.HalfSpace(axis="x", above=0.24, material="glass")],
        sources=[scenes.Source(position=[0.2, 0.2], waveform="ricker", frequency=1e9, amplitude=3.0)],
        receivers=[scenes.Receiver(id="at", position=[0.2, 0.2])],
        monitors=[
            scenes.Monitor(id=f"{letter}{side}", type="flux", low=low, high=high, band=[0.5e9, 2e9], count=7)
            for letter, side, low, high in (
                ("x", "-low", [0.12, 0.12], [0.12, 0.28]),
                ("x", "-high", [0.28, 0.12], [0.28, 0.28]),
                ("y", "-low", [0.12, 0.12], [0.28, 0.12]),
                ("y", "-high", [0.12, 0.28], [0.28, 0.28]),
            )
        ],
    )
    traces, spectra = scene.record(CPU)
    out = sum((1 if name.endswith("high") else -1) * one.values for (name, _), one in spectra.items())
    checked = scene.checked()
    trace = traces["at", "hz"]
    frequencies = spectra["x-low", "flux"].frequencies
    begins = np.arange(checked.steps) * checked.dt
    current = checked.sources[0].wave.at(begins, begins, checked.dt)
    factors = np.exp(-2j * np.pi * frequencies[:, None] * begins) * checked.dt
    # The current acts at the beginning of a step, between H half a step before and half a step later.
    h = trace.values
    mean = (h + np.concatenate([[0], h[:-1]])) / 2
    work = -2 * np.real((factors @ current) * np.conj(factors @ mean))
    assert out == pytest.approx(work, rel=2e-3)


def test_memory_counts_the_arrays_of_the_solver():
    """Components, the numbers of two combinations, the memory of layers, and two arrays for each value of a pole."""
    assert memory.arrays_of(te()) == 3 + 2
    assert memory.arrays_of(te(("cpml = 0", "cpml = 4"))) == 3 + 2 + 4
    pole = 'poles = [{ type = "debye", difference = 2.0, relaxation_time = 1e-10 }]'
    dispersive = te(("conductivity = 0.01", pole), ("below = 0.1", "below = 0.3"))
    assert memory.arrays_of(dispersive) == 3 + 2 + 2
    assert memory.arrays_of(te()) + 1 == memory.arrays_of(flat())


def test_dispersive_media_in_a_scene():
    """A plane wave reflects from a Debye medium as one with Ez does, normal to its surface."""
    found = {}
    for polarisation, field in (("te", "ey"), ("tm", "ez")):
        scene = plane_wave(polarisation, receivers=[scenes.Receiver(id="at", position=[0.2, 0.6], fields=[field])])
        scene.materials = [
            scenes.Material(
                id="glass",
                permittivity=4.9,
                poles=[scenes.Pole(type="debye", difference=15, relaxation_time=3e-11)],
            )
        ]
        scene.time.steps = 160  # before the ends of the glass are felt
        found[polarisation] = scene.run(CPU)["at", field].values
    assert np.abs(found["te"]).max() > 0.5
    assert np.abs(found["te"] - found["tm"]).max() < 1e-12
