"""Monitors: spectra against transforms of traces, energy against sources and analytic radiation."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from grid_scenes import FLAT, PATH

from headrace import UsageError
from headrace.cli import app
from headrace.cli.errors import guarded
from headrace.grid import scenes
from headrace.grid.solver import Layout, parse_scene
from headrace.grid.solver.monitors import Recorder, interval
from headrace.grid.solver.scene import LIGHT, VACUUM_PERMEABILITY
from headrace.grid.solver.session import Outputs, run_one, run_scan
from headrace.grid.solver.traces import merge, read

IMPEDANCE = VACUUM_PERMEABILITY * LIGHT
CPU = ["cpu:0"]


def plane(**more: Any) -> scenes.Scene:
    """A line current of 1 GHz in the middle of 0.4 m x 0.4 m, in cells of a hundredth of the shortest wavelength."""
    return scenes.Scene(
        **{
            "domain": scenes.Domain(size=[0.4, 0.4], spacing=0.005, cpml=10, precision="double"),
            "time": scenes.Time(window=8e-9, courant=0.9),
            "sources": [scenes.Source(position=[0.2, 0.2], waveform="ricker", frequency=1e9, amplitude=3.0)],
            **more,
        }
    )


def around(low: tuple[float, ...], high: tuple[float, ...], **more: Any) -> list[scenes.Monitor]:
    """A flux monitor for each side of a box, by name."""
    found = []
    for axis, letter in enumerate("xyz"[: len(low)]):
        for side, at in (("low", low[axis]), ("high", high[axis])):
            corners = [list(low), list(high)]
            for corner in corners:
                corner[axis] = at
            found.append(scenes.Monitor(id=f"{letter}-{side}", type="flux", low=corners[0], high=corners[1], **more))
    return found


def out_of(spectra: dict[tuple[str, str], scenes.Spectrum]) -> np.ndarray:
    """The flux that leaves a box."""
    return sum(
        (1 if name.endswith("high") else -1) * one.values for (name, what), one in spectra.items() if what == "flux"
    )


def transform(times: np.ndarray, values: np.ndarray, frequencies: np.ndarray, dt: float) -> np.ndarray:
    return np.exp(-2j * np.pi * frequencies[:, None] * times) @ values * dt


def test_the_spectrum_of_a_field_is_that_of_its_trace():
    """Sampled every few steps, it is that of all steps: nothing of the pulse is mistaken for another frequency."""
    frequencies = np.array([0.0, 0.4e9, 1e9, 2.2e9, 3.1e9])
    scene = plane(
        receivers=[scenes.Receiver(id="near", position=[0.25, 0.21], fields=["ez", "hx", "hy"])],
        monitors=[
            scenes.Monitor(
                id="box",
                type="fields",
                low=[0.24, 0.2],
                high=[0.26, 0.22],
                frequencies=frequencies.tolist(),
                fields=["ez", "hx", "hy"],
            )
        ],
    )
    checked = scene.checked()
    assert interval(checked) > 3
    traces, spectra = scene.record(CPU)
    for field in ("ez", "hx", "hy"):
        times, values = traces["near", field]
        expected = transform(times, values, frequencies, checked.dt)
        found = spectra["box", field]
        assert found.values.shape == (5, 5, 5)
        np.testing.assert_allclose(found.values[:, 2, 2], expected, atol=2e-5 * np.abs(expected).max())
        assert found.remaining < 1e-3


def test_what_leaves_a_box_in_the_plane_is_what_its_source_gives():
    """The source's energy, from its current and the field there, and the flux through planes at two distances."""
    band = {"band": [0.3e9, 2.5e9], "count": 23}
    scene = plane(
        sources=[scenes.Source(position=[0.19, 0.215], waveform="ricker", frequency=1e9, amplitude=3.0)],
        receivers=[scenes.Receiver(id="source", position=[0.19, 0.215])],
        monitors=around((0.15, 0.15), (0.25, 0.25), **band),
    )
    checked = scene.checked()
    traces, spectra = scene.record(CPU)
    frequencies = spectra["x-low", "flux"].frequencies
    times, field = traces["source", "ez"]
    middles = times - checked.dt / 2  # of a step, where the current is, and the mean of the field before and after
    before = np.concatenate([[0.0], field[:-1]])
    current = checked.sources[0].wave.at(times - checked.dt, middles, checked.dt)
    given = -2 * np.real(
        transform(middles, (field + before) / 2, frequencies, checked.dt)
        * np.conj(transform(middles, current, frequencies, checked.dt))
    )
    np.testing.assert_allclose(out_of(spectra), given, rtol=0.004)
    wider = plane(sources=scene.sources, monitors=around((0.08, 0.07), (0.32, 0.33), **band))
    np.testing.assert_allclose(out_of(wider.record(CPU).spectra), given, rtol=0.008)
    # A plane beside the source: what comes in leaves on the other side.
    beside = plane(sources=scene.sources, monitors=around((0.24, 0.15), (0.32, 0.25), **band))
    assert np.abs(out_of(beside.record(CPU).spectra)).max() < 0.004 * given.max()


def test_what_leaves_a_box_in_space_is_what_a_dipole_radiates():
    """Balanis, Antenna Theory, eq. 4-16: a dipole of length l with the current I radiates eta (k l I)^2 / (12 pi).

    Spectra hold half of a wave's amplitude at its frequency and half at the negative one, so energy is 4 times that.
    """
    frequencies = np.array([0.8e9, 1.2e9, 1.6e9])
    size, spacing = 0.2, 0.005
    scene = scenes.Scene(
        scenes.Domain(size=[size] * 3, spacing=spacing, cpml=8),
        scenes.Time(window=5e-9),
        sources=[scenes.Source(position=[0.1] * 3, field="ey", waveform="gaussiandot", frequency=1e9, amplitude=1e-9)],
        receivers=[scenes.Receiver(position=[0.1] * 3)],
        monitors=around((0.06, 0.07, 0.065), (0.13, 0.14, 0.15), frequencies=frequencies.tolist()),
    )
    checked = scene.checked()
    begins = np.arange(checked.steps) * checked.dt
    current = checked.sources[0].wave.at(begins, begins + checked.dt / 2, checked.dt)
    amplitude = np.abs(transform(begins, current, frequencies, checked.dt))
    expected = 4 * IMPEDANCE * (2 * np.pi * frequencies / LIGHT * spacing * amplitude) ** 2 / (12 * np.pi)
    found = out_of(scene.record(CPU).spectra)
    np.testing.assert_allclose(found, expected, rtol=0.015)


def test_energy_is_the_integral_of_its_spectrum():
    """Parseval: power through a line, step by step, against the flux over all frequencies."""
    line = {"low": [0.3, 0.1], "high": [0.3, 0.3]}
    scene = plane(monitors=[scenes.Monitor(type="flux", **line, band=[0.0, 4.5e9], count=181)])
    spectrum = scene.record(CPU).spectra["monitor1", "flux"]
    checked = scene.checked()
    from headrace.grid.solver.model import build  # noqa: PLC0415

    solver = build(checked, Layout(("cpu:0",))).solver
    energy, electric = 0.0, np.zeros(41)
    weights = np.ones(41)
    weights[[0, -1]] = 0.5
    for _ in range(checked.steps):
        solver.step(1)
        now = solver.field("ez")[60, 20:61]
        magnetic = solver.field("hy")[59:61, 20:61].mean(axis=0)  # half a step before: beside the mean of both fields
        energy += float(-weights @ ((now + electric) / 2 * magnetic)) * checked.dt * checked.spacing[1]
        electric = now
    step = spectrum.frequencies[1] - spectrum.frequencies[0]
    total = step * (spectrum.values.sum() - (spectrum.values[0] + spectrum.values[-1]) / 2)
    assert total == pytest.approx(energy, rel=0.002)


def test_a_pulse_that_is_not_over_is_told():
    scene = plane(time=scenes.Time(window=2e-9), monitors=around((0.1, 0.1), (0.3, 0.3), frequencies=[1e9]))
    assert all(one.remaining > 0.1 for one in scene.record(CPU).spectra.values())


_MONITORS = """
[[monitors]]
id = "line"
type = "flux"
low = [0.1, 0.25]
high = [0.3, 0.25]
band = [0.2e9, 1e9]
count = 5

[[monitors]]
id = "patch"
type = "fields"
low = [0.1, 0.1]
high = [0.103, 0.12]
frequencies = [0.5e9]
fields = ["ez", "hy"]
"""


def test_files_have_spectra_of_all_positions(tmp_path: Path):
    scene = parse_scene(FLAT + _MONITORS, PATH)
    assert [one for one in scene.warnings if "monitors" in one] == [
        "scene.toml: [[monitors]] patch high: [0.103, 0.12] m lies between nodes; the nearest, [0.1, 0.12] m, is used"
    ]
    layout = Layout(("cpu:0",))
    path = tmp_path / "all.h5"
    run_scan(scene, layout, Outputs(traces=path))
    with h5py.File(path) as file:
        flux = file["monitors/line/flux"]
        assert flux.shape == (3, 5)
        assert (flux.attrs["unit"], flux.attrs["axis"]) == ("J/(Hz m)", "y")
        assert file["monitors/line/frequency"][:].tolist() == [0.2e9, 0.4e9, 0.6e9, 0.8e9, 1e9]
        patch = file["monitors/patch"]
        assert patch["ez"].shape == patch["hy"].shape == (3, 1, 1, 3)
        assert patch["ez"].dtype == np.complex128
        assert patch.attrs["high"].tolist() == pytest.approx([0.1, 0.12])
        assert patch.attrs["high_requested"].tolist() == [0.103, 0.12]
        assert patch["hy"].attrs["offset"].tolist() == [0.005, 0.0]
        whole = {name: file[name][:] for name in ("monitors/line/flux", "monitors/patch/hy", "monitors/line/remaining")}
    parts = []
    for number in (2, 0, 1):
        part = tmp_path / f"{number}.h5"
        run_one(scene, layout, Outputs(traces=part), position=number)
        parts.append((part, read(part, scene)))
    merged = merge(parts)
    assert np.array_equal(np.stack(merged.spectra["line", "flux"]), whole["monitors/line/flux"])
    assert np.array_equal(np.stack(merged.spectra["patch", "hy"]), whole["monitors/patch/hy"])
    assert np.array_equal(np.stack(merged.spectra["line", "remaining"]), whole["monitors/line/remaining"])


def test_spectra_do_not_depend_on_devices():
    scene = parse_scene(FLAT + _MONITORS, PATH)
    found = []
    for devices in (("cpu:0",), ("cpu:0", "cpu:0")):
        recorder = Recorder(scene)
        from headrace.grid.solver.model import build  # noqa: PLC0415
        from headrace.grid.solver.running import run  # noqa: PLC0415

        model = build(scene, Layout(devices))
        run(scene, model.solver, recorder.watchers())
        found.append(recorder.spectra())
    assert found[0].keys() == found[1].keys()
    assert all(np.array_equal(values, found[1][key]) for key, values in found[0].items())


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('type = "flux"', 'type = "dft"', "there is no 'dft'; there are fields, flux"),
        ("high = [0.3, 0.25]", "high = [0.3, 0.26]", "it has an extent along every axis"),
        ("high = [0.3, 0.25]", "high = [0.1, 0.25]", "it has no extent along x and y"),
        ("low = [0.1, 0.25]\nhigh = [0.3, 0.25]", "low = [0.1, 0.0]\nhigh = [0.3, 0.0]", "on the wall at y = 0"),
        ("high = [0.3, 0.25]", "high = [0.05, 0.25]", "from node 10 to 5 along x"),
        ("high = [0.3, 0.25]", "high = [0.4, 0.25]", "must lie within 0 to 39"),
        ("band = [0.2e9, 1e9]", "band = [1e9, 0.2e9]", "2e+08 is not above 1e+09"),
        ("band = [0.2e9, 1e9]", "band = [0.2e9, 1e12]", "are not within the 0 to"),
        ("count = 5", "count = 1", "below 2"),
        ("count = 5", "frequencies = [1e9]", "needs either frequencies or band, not both"),
        ("frequencies = [0.5e9]", "frequencies = []", "not a list of numbers"),
        ("frequencies = [0.5e9]", "frequencies = [-1.0]", "are not within the 0 to"),
        ('fields = ["ez", "hy"]', 'fields = ["ex"]', "there is no 'ex'"),
        ('id = "patch"', 'id = "line"', "'line'"),
        ("count = 5", "counts = 5", "there is no key 'counts'; did you mean 'count'?"),
    ],
)
def test_mistakes_are_named(old: str, new: str, why: str):
    assert _MONITORS.count(old) == 1
    with pytest.raises(UsageError) as caught:
        parse_scene(FLAT + _MONITORS.replace(old, new), PATH)
    assert why in str(caught.value)
    assert "monitors" in str(caught.value)


def test_a_run_with_monitors_does_not_restart(tmp_path: Path):
    scene = parse_scene(FLAT + _MONITORS, PATH)
    with pytest.raises(UsageError, match="monitors need a run from its start"):
        run_one(scene, Layout(("cpu:0",)), Outputs(traces=tmp_path / "a.h5", restart=tmp_path / "none.npz"))


def test_the_command_says_what_is_kept_and_what_is_not_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    Path("scene.toml").write_text(FLAT + _MONITORS, encoding="utf-8")
    assert guarded(app, ["grid", "fdtd", "scene.toml", "--device", "cpu:0"]) == 0
    said = capsys.readouterr()
    assert "[[monitors]] record nothing without --traces" in said.err
    assert "of its peak" not in said.out
    assert guarded(app, ["grid", "fdtd", "scene.toml", "--device", "cpu:0", "--traces", "a.h5"]) == 0
    said = capsys.readouterr()
    assert "record nothing" not in said.err
    assert "line: the field was still at" in said.out
    assert guarded(app, ["grid", "fdtd", "scene.toml", "--device", "cpu:0", "--traces", "a.h5", "--json"]) == 0
    monitors = json.loads(capsys.readouterr().out)["monitors"]
    assert [one["id"] for one in monitors] == ["line", "patch"]
    assert all(0.01 < one["remaining"] <= 1 for one in monitors)
