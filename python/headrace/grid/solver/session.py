"""Runs a scene from its start or a checkpoint to its files: `headrace grid fdtd` without the command line."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from headrace import outputs as files
from headrace.errors import MissingFileError, UsageError
from headrace.grid.ranks import require_alike
from headrace.grid.records import Slabs
from headrace.grid.solver import checkpoint, film, memory, pictures, roof, traces, vti
from headrace.grid.solver.model import Layout, Solver, build, paint, time_of
from headrace.grid.solver.monitors import Recorder
from headrace.grid.solver.pictures import Frame, Plane
from headrace.grid.solver.running import Speed, Watcher, run
from headrace.grid.solver.scene import Scene
from headrace.grid.solver.traces import Traces
from headrace.interrupts import Stop
from headrace.outputs import Attempts
from headrace.quiet import Watch, above_roof

Progress = Callable[[int, int, Speed], None]


@dataclass(frozen=True)
class Outputs:
    """What to keep of a run."""

    traces: Path | None = None
    snapshots: Path | None = None
    png: Path | None = None
    gif: Path | None = None
    mp4: Path | None = None
    field: str | None = None  # to draw; None means the scene's main field
    plane: str = "xy"
    at: float | None = None  # seconds, of the PNG; None means half way through the run
    checkpoint: Path | None = None
    checkpoint_every: int = 0
    restart: Path | None = None
    roof: bool = False  # whether to compare the speed with that of memory

    def check(self, scene: Scene) -> None:
        """Checks before the work starts that all outputs can be written.

        Raises:
            UsageError, SystemError: naming the output at fault.
        """
        if self.traces:
            traces.check(self.traces)
            if not scene.receivers and not scene.monitors:
                raise UsageError(f"{scene.path}: there are no receivers to record: add [[receivers]]")
        for path in (self.png, self.gif):
            if path:
                pictures.check(path)
        if self.mp4:
            film.check(self.mp4)
        if self.snapshots:
            _check_snapshots(self.snapshots)
        if self.checkpoint:
            files.check(self.checkpoint)
        if self.restart and self.traces and scene.monitors:
            raise UsageError(f"{scene.path}: monitors need a run from its start: leave out --restart or [[monitors]]")
        if self.drawn(scene) not in scene.fields:
            raise UsageError(f"there is no field '{self.field}' in this scene; there are {', '.join(scene.fields)}")
        if self.at is not None and round(self.at / scene.dt) > scene.steps:
            raise UsageError(f"{self.at:g} s is after the end of the run, {scene.steps * scene.dt:.4g} s")

    def drawn(self, scene: Scene) -> str:
        """The field to draw."""
        return self.field or scene.main_field


@dataclass
class Done:
    """Results of a run."""

    positions: list[int] = field(default_factory=list)
    steps: int = 0
    first_step: int = 0
    interrupted: bool = False
    speed: Speed = field(default_factory=Speed)
    roof: float | None = None  # cells per second that memory allows
    redundant: int = 1  # steps between two exchanges
    slabs: Slabs | None = None  # for a domain larger than its device's memory
    disturbed: str = ""  # why the machine was not quiet during the run
    traces: Traces | None = None
    files: Attempts = field(default_factory=Attempts)


def run_one(
    scene: Scene,
    layout: Layout,
    outputs: Outputs,
    *,
    position: int = 0,
    progress: Progress = lambda _position, _step, _speed: None,
    maker: Callable[..., Solver] | None = None,
) -> Done:
    """Runs the scene at one position of its scan.

    Raises:
        DataError: when the field is no longer finite, or the checkpoint is invalid; nothing more is written then.
    """
    moved = scene.moved(position)
    outputs.check(moved)
    memory.check(moved, layout)
    model = build(moved, layout, maker)
    if outputs.restart:
        restored = checkpoint.restore(outputs.restart, moved, model.solver)
        if layout.ranks:  # each rank has read its own file, which may differ between machines
            require_alike(layout.ranks, f"checkpoint {outputs.restart}", restored.digest())
    done = Done([position], first_step=model.solver.steps_done)
    keeper = _Keeper(moved, outputs, model.solver, done.files if layout.first else None)
    recorder = _recorder(moved, outputs)
    watch = Watch()
    with Stop() as stop:
        done.speed = run(
            moved,
            model.solver,
            [*keeper.watchers(), *recorder.watchers()],
            progress=partial(progress, position),
            stop=stop,
            agree=layout.agree,
        )
        watch.stop()
        done.redundant = model.solver.redundant
        done.slabs = getattr(model.solver, "slabs", None)
        if outputs.roof and not done.slabs and done.speed.cells and model.solver.steps_done == moved.steps:
            # Measured twice: every disturbance lowers a roof, and two that differ cannot be trusted.
            found = [roof.cells_per_second(moved, layout, model.solver) for _ in range(2)]
            watch.roofs("memory", found)
            done.roof = max(found)
            watch.add(above_roof(done.speed.cells_per_second / done.roof, "memory"))
        done.disturbed = watch.stop()
        done.steps = model.solver.steps_done
        done.interrupted = done.steps < moved.steps
        done.traces = Traces(scene, done.steps)
        done.traces.take(position, model, recorder.spectra())
        keeper.finish(done.traces, interrupted=done.interrupted)
    return done


def run_scan(
    scene: Scene,
    layout: Layout,
    outputs: Outputs,
    *,
    progress: Progress = lambda _position, _step, _speed: None,
    maker: Callable[..., Solver] | None = None,
) -> Done:
    """Runs every position of the scan in turn. When interrupted, it keeps the completed positions."""
    if scene.scan is None:
        raise UsageError(f"{scene.path}: there is no [scan] to run")
    if not scene.receivers and not scene.monitors:
        raise UsageError(f"{scene.path}: there are no receivers to record: add [[receivers]]")
    outputs.check(scene)
    memory.check(scene, layout)
    done = Done(traces=Traces(scene, scene.steps), steps=scene.steps)
    assert done.traces is not None
    watch = Watch()
    with Stop() as stop:
        for number in range(scene.scan.count):
            moved = scene.moved(number)
            model = build(moved, layout, maker)
            recorder = _recorder(moved, outputs)
            speed = run(
                moved,
                model.solver,
                recorder.watchers(),
                progress=partial(progress, number),
                stop=stop,
                agree=layout.agree,
            )
            done.speed.cells += speed.cells
            done.speed.seconds += speed.seconds
            done.redundant = model.solver.redundant
            done.slabs = getattr(model.solver, "slabs", None)
            if model.solver.steps_done < moved.steps:
                done.interrupted = True
                break
            done.traces.take(number, model, recorder.spectra())
        done.disturbed = watch.stop()
        done.positions = done.traces.positions
        if done.positions and layout.first:
            write_traces(outputs, done.traces, done.files)
    return done


def _recorder(scene: Scene, outputs: Outputs) -> Recorder:
    """Records the scene's monitors if their spectra are to be kept."""
    return Recorder(scene if outputs.traces else replace(scene, monitors=()))


def write_traces(outputs: Outputs, found: Traces, attempts: Attempts) -> None:
    """Writes the traces of a scan as HDF5 and as a picture of the first receiver that records the field."""

    def draw(path: Path) -> None:
        field = outputs.drawn(found.scene)
        key = next((key for key in found.values if key[1] == field), None)
        if key is None:
            raise UsageError(f"no receiver records {field}, so there is nothing to draw")
        pictures.draw_radargram(path, found, key)

    attempts.write(outputs.traces, lambda path: traces.write(path, found))
    attempts.write(outputs.png, draw)


def _check_snapshots(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, but snapshots need a folder")
    if not folder.exists() and not folder.parent.is_dir():
        raise MissingFileError(f"there is no folder {folder.parent} to make {folder.name} in")
    files.check(folder / "materials.vti" if folder.exists() else folder)


class _Keeper:
    """Keeps the requested outputs of a run, and writes them; without attempts it only takes part in collecting them."""

    def __init__(self, scene: Scene, outputs: Outputs, solver: Solver, attempts: Attempts | None) -> None:
        self._scene = scene
        self._outputs = outputs
        self._solver = solver
        self._attempts = attempts
        self._plane = Plane.of(scene, outputs.plane)
        self._field = outputs.drawn(scene)
        self._frames: list[Frame] = []
        self._picture: Frame | None = None
        self._series: list[tuple[float, int, str]] = []  # time, part and name of each file
        self._snapshots = attempts is not None and attempts.write(outputs.snapshots, self._begin_snapshots)

    def _begin_snapshots(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        cells, _ = paint(self._scene)
        vti.write_cells(folder / "materials.vti", "material", cells, self._scene.spacing)

    def watchers(self) -> list[Watcher]:
        """Watchers for run()."""
        outputs, every = self._outputs, self._scene.snapshots.every
        found = []
        if outputs.snapshots:
            found.append(Watcher(self._snapshot, every=every))
        if outputs.gif or outputs.mp4:
            found.append(Watcher(self._take_frame, every=every))
        if outputs.png:
            half = self._scene.steps // 2
            step = half if outputs.at is None else round(outputs.at / self._scene.dt)
            found.append(Watcher(self._take_picture, at=max(1, step)))
        if outputs.checkpoint and outputs.checkpoint_every:
            found.append(Watcher(self._checkpoint, every=outputs.checkpoint_every))
        return found

    def finish(self, found: Traces, *, interrupted: bool) -> None:
        """Writes the outputs of the end of a run, or of its interruption."""
        outputs = self._outputs
        # The run ended before, or restarted after, the time to draw: the last fields are drawn.
        if outputs.png and self._picture is None:
            self._take_picture(self._solver)
        if outputs.checkpoint:
            self._checkpoint(self._solver)
        if self._attempts is not None:
            self._write(self._attempts, found, interrupted=interrupted)

    def _write(self, attempts: Attempts, found: Traces, *, interrupted: bool) -> None:
        outputs, frames = self._outputs, self._frames
        attempts.write(outputs.traces, lambda path: traces.write(path, found))
        if self._snapshots and outputs.snapshots:
            attempts.write(outputs.snapshots / "snapshots.pvd", lambda path: vti.write_series(path, self._series))
        picture = self._picture
        if picture is not None:
            attempts.write(outputs.png, lambda path: pictures.draw(path, self._plane, self._field, picture))
        if frames or not interrupted:
            attempts.write(outputs.gif, lambda path: pictures.animate(path, self._plane, self._field, frames))
            attempts.write(outputs.mp4, lambda path: film.write(path, self._plane, self._field, frames))

    def _seconds(self, solver: Solver) -> float:
        return solver.steps_done * self._scene.dt

    def _snapshot(self, solver: Solver) -> None:
        assert self._outputs.snapshots is not None
        scene, moment = self._scene, self._seconds(solver)
        for part, component in enumerate(scene.snapshots.fields):
            values = solver.field(component)  # every process takes part in this
            if self._attempts is None or not self._snapshots:
                continue
            name = f"{component}-step-{solver.steps_done:08d}.vti"
            write = partial(
                vti.write_points,
                name=component,
                values=values,
                origin=scene.offset(component),
                spacing=scene.spacing,
                time=time_of(scene, component, solver.steps_done),
            )
            # After a failed snapshot there are no more: the disk is full, and the run continues.
            self._snapshots = self._attempts.write(self._outputs.snapshots / name, write)
            if self._snapshots:
                self._series.append((moment, part, name))

    def _take_frame(self, solver: Solver) -> None:
        values = solver.field(self._field)
        self._frames.append(self._plane.frame(values, self._seconds(solver), moving=True))

    def _take_picture(self, solver: Solver) -> None:
        self._picture = self._plane.frame(solver.field(self._field), self._seconds(solver))

    def _checkpoint(self, solver: Solver) -> None:
        assert self._outputs.checkpoint is not None
        state, steps = solver.state(), solver.steps_done
        if self._attempts is not None:
            self._attempts.write(
                self._outputs.checkpoint, lambda path: checkpoint.save(path, self._scene, steps, state)
            )
