"""Domains larger than their device's memory, from Python: equal bits, limits, Ctrl-C, the benchmark."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headrace import UsageError
from headrace.grid import Fdtd

BENCH = Path(__file__).parents[2] / "bench" / "grid_larger.py"


def started(shape: tuple[int, ...], device_memory: int | str | None = None, visit_steps: int = 0) -> Fdtd:
    run = Fdtd(shape, 1e-3, devices=["cpu:0"], cpml=4, device_memory=device_memory, visit_steps=visit_steps)
    numbers = np.arange(np.prod(shape)).reshape(shape, order="F")
    run.set_materials(permittivity=2.0 + numbers % 3, conductivity=0.01 * (numbers % 13 == 0))
    for part in range(1, 8):
        cell = [side // 2 for side in shape]
        cell[-1] = part * shape[-1] // 8
        run.add_source("ez", cell, np.sin(np.arange(20) * part))
        run.add_receiver("ez", [*cell[:-1], cell[-1] - 1])
    return run


@pytest.mark.parametrize("shape", [(60, 400), (20, 18, 110)])
@pytest.mark.parametrize(("share", "visit_steps"), [(0.6, 0), (0.4, 5), (0.4, 16)])
def test_fields_and_traces_are_those_of_device_memory(shape: tuple[int, ...], share: float, visit_steps: int):
    whole = started(shape)
    values = {2: 10, 3: 20}[len(shape)]
    cut = started(shape, int(share * values * 4 * np.prod(shape)), visit_steps)
    for run in (whole, cut):
        run.step(30)
        run.step(23)
    assert whole.slabs is None
    assert cut.slabs is not None
    assert cut.slabs.count > 1
    assert cut.slabs.bytes_in > cut.slabs.bytes_out > 0
    assert cut.steps_at_once == 2 * cut.slabs.steps
    wanted, found = whole.state(), cut.state()
    assert wanted.keys() == found.keys()
    for name, field in wanted.items():
        assert np.array_equal(field, found[name]), name
    again = started(shape, int(share * values * 4 * np.prod(shape)), visit_steps)
    again.restore(found)
    for run in (whole, again):
        run.step(9)
    assert np.array_equal(whole.field("hy"), again.field("hy"))
    assert np.array_equal(whole.trace(3), again.trace(3))


def test_sizes_in_words_and_what_cannot_be():
    assert started((60, 400), "400KiB").slabs is not None
    assert started((60, 400), "1GiB").slabs is None
    with pytest.raises(UsageError, match="not even a single row"):
        started((60, 400), "4KiB")
    with pytest.raises(UsageError, match="1 to 256"):
        started((60, 400), "400KiB", 300)
    with pytest.raises(UsageError, match="cannot run in several parts"):
        Fdtd((60, 400), 1e-3, devices=["cpu:0", "cpu:1"], device_memory="100KiB")
    with pytest.raises(UsageError, match="cannot run in mode 'resident'"):
        Fdtd((60, 400), 1e-3, devices=["cpu:0"], mode="resident", device_memory="100KiB")
    with pytest.raises(UsageError, match="has no timeline"):
        started((60, 400), "400KiB").record_timeline(2)
    with pytest.raises(UsageError):
        started((60, 400), "much")
    assert len(Fdtd((60, 400), 1e-3, devices=["cpu:0"], redundant="measured", device_memory="400KiB").trials) == 1


def test_ctrl_c_ends_it_after_whole_visits_and_it_goes_on():
    script = """
from headrace.grid import Fdtd
run = Fdtd((60, 400), 1e-3, devices=["cpu:0"], cpml=0, device_memory="300KiB", visit_steps=8)
assert run.slabs
try:
    print("on", flush=True)
    run.step(10**12)
except KeyboardInterrupt:
    done = run.steps_done
    assert done % 8 == 0
    run.step(5)
    print(run.steps_done - done)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    assert output == "5\n"


def test_the_benchmark_is_verified_and_beside_memory_and_the_link():
    words = ("--device", "cpu:0", "--domain", "2MiB", "--device-memory", "1200KiB", "--layers", "2", "--samples", "2")
    done = subprocess.run(
        [sys.executable, str(BENCH), *words, "--visits", "1", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["id"] for row in rows] == ["grid.larger.2d", "grid.larger.3d"]
    for row in rows:
        about = row["conditions"]
        assert about["verified"] is True
        assert about["slabs"] > 1
        assert about["share_of_in_core"] > 0
        assert row["roof"] > 0
