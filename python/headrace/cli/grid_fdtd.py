"""`headrace grid fdtd`: solves Maxwell's equations in a scene by finite differences in the time domain."""

import json
import re
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from headrace import Device, UsageError, tables
from headrace._core import Ranks
from headrace.base import parse_bytes
from headrace.cli import grid_show, options, show
from headrace.cli.errors import STATUS_INTERRUPTED, finish
from headrace.grid.ranks import device_of, failing_together, joined, require_alike
from headrace.grid.solver import memory
from headrace.grid.solver.choosing import choose
from headrace.grid.solver.model import Layout
from headrace.grid.solver.reading import read_scene
from headrace.grid.solver.running import Speed
from headrace.grid.solver.scene import Scene
from headrace.grid.solver.session import Outputs, Progress, run_one, run_scan
from headrace.text import printable

_CELLS_PER_SECOND = {"cpu": 400e6, "cuda": 20e9}  # approximate rate of one device
_LONG_SECONDS = 5.0


class Push(StrEnum):
    """How border cells reach the neighbour's ghost cells."""

    automatic = "automatic"
    copy = "copy"
    store = "store"
    host = "host"


class Mode(StrEnum):
    """How devices get their steps."""

    streams = "streams"
    resident = "resident"


class PlaneName(StrEnum):
    """The plane to draw in three dimensions."""

    xy = "xy"
    xz = "xz"
    yz = "yz"


def cut_of(text: str, dimensions: int) -> str | tuple[int, ...]:
    """Parses --cut: "best", or parts along each axis, such as 4x1."""
    if text == "best":
        return text
    if not re.fullmatch(r"[1-9]\d{0,5}(x[1-9]\d{0,5})*", text) or text.count("x") != dimensions - 1:
        example = "x".join(["4", "1", "1"][:dimensions])
        raise UsageError(f"--cut {text}: give best, or the parts along each axis, such as {example}")
    return tuple(int(part) for part in text.split("x"))


def layers_of(text: str) -> int | None:
    """Parses --redundant: a number of steps, or None to have it measured."""
    if text == "automatic":
        return None
    if not re.fullmatch(r"[1-9]\d{0,5}", text):
        raise UsageError(f"--redundant {text}: give automatic, or a number of steps of 1 or more")
    return int(text)


def make_layout(
    scene: Scene, ranks: Ranks | None, devices: list[str], cut: str, redundant: int, push: Push, mode: Mode
) -> Layout:
    """The devices that a scene runs on: these, or that of this rank."""
    chosen = [device_of(ranks, devices)] if ranks else devices or ["best"]
    names = tuple(options.find_device(name).name for name in chosen)
    layout = Layout(names, cut_of(cut, scene.dimensions), redundant, str(push), str(mode), ranks)
    if not isinstance(layout.cut, str) and int(np.prod(layout.cut)) != layout.count:
        there = f"{layout.count} ranks with one device each" if ranks else f"{layout.count} devices (--device)"
        raise UsageError(f"--cut {cut} makes {int(np.prod(layout.cut))} parts, but there are {there}")
    return layout


def _devices(layout: Layout) -> list[str]:
    """The devices of all parts in all processes. Every rank calls it."""
    return layout.ranks.gather(layout.devices[0]) if layout.ranks else list(layout.devices)


def _progress(bar: show.Bar, scene: Scene, count: int) -> Progress:
    """Shows the position and speed of a run."""

    def moved(position: int, step: int, speed: Speed) -> None:
        place = f"position {position + 1} of {count}, " if count > 1 else ""
        rate = f"{tables.short_rate(speed.cells_per_second)}cells/s"
        bar.describe(f"{place}step {step:,} of {scene.steps:,}, {rate}")
        bar((position * (count > 1) + step / scene.steps) / count)

    return moved


def _check(scene: Scene, outputs: Outputs, scan: bool, position: int | None) -> None:
    """Refuses options that exclude each other."""
    if scan and position is not None:
        raise UsageError("--scan runs all positions, --position only one: give one of them")
    if scan:
        for name in ("snapshots", "gif", "mp4", "checkpoint", "restart"):
            if getattr(outputs, name):
                raise UsageError(f"--{name} is for a single run, not for a scan: use --position N instead of --scan")
    if position is not None and (scene.scan is None or position >= scene.scan.count):
        there = f"{scene.scan.count} positions, from 0" if scene.scan else "no [scan]"
        raise UsageError(f"--position {position}: {scene.path} has {there}")
    if outputs.checkpoint_every and not outputs.checkpoint:
        raise UsageError("--checkpoint-every needs --checkpoint FILE")


def _expect(scene: Scene, layout: Layout, positions: int) -> None:
    """Announces the duration and memory of a large run."""
    updates = float(np.prod(scene.shape)) * scene.steps * positions
    kinds = {Device.parse(name).kind.name for name in layout.devices}
    rate = _CELLS_PER_SECOND["cuda" if kinds == {"cuda"} else "cpu"] * layout.count
    if updates / rate > _LONG_SECONDS:
        show.expect(updates / rate, memory.device_bytes(scene, layout))


def fdtd(
    scene_file: Annotated[
        Path,
        typer.Argument(
            metavar="SCENE.toml",
            readable=False,
            help="Scene file; docs/scenes.md describes the format.",
            show_default=False,
        ),
    ],
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            help="Device: cpu:0, cuda:0, ... Repeat it to cut the domain over several. Default: best. Under mpirun, "
            "the ranks of a machine take these devices, or else its GPUs, in turn.",
        ),
    ] = None,
    cut: Annotated[
        str,
        typer.Option(
            "--cut",
            help="How to cut the domain: best, parts along each axis such as 2x1, or measured (slabs sized by "
            "measured speed).",
        ),
    ] = "best",
    redundant: Annotated[
        str,
        typer.Option(
            "--redundant",
            metavar="N",
            help="Steps between two exchanges of borders; automatic tries several numbers in a long run.",
        ),
    ] = "automatic",
    push: Annotated[
        Push, typer.Option("--push", help="How borders reach the neighbour; automatic chooses as for --redundant.")
    ] = Push.automatic,
    mode: Annotated[
        Mode,
        typer.Option("--mode", help="streams launches each step; resident keeps one kernel running for many steps."),
    ] = Mode.streams,
    wait_limit: Annotated[
        float,
        typer.Option(
            "--wait-limit",
            parser=options.duration,
            metavar="TIME",
            help="With --mode resident: time to wait for a device before it counts as hung.",
        ),
    ] = "30s",  # type: ignore[assignment] # parsed
    device_memory: Annotated[
        int | None,
        typer.Option(
            "--device-memory",
            parser=parse_bytes,
            metavar="SIZE",
            help="Device memory that the fields may take, such as 8GiB. Default: what is free. A larger domain on one "
            "device stays in host memory and is visited slab by slab.",
            show_default=False,
        ),
    ] = None,
    visit_steps: Annotated[
        int,
        typer.Option(
            "--visit-steps", min=0, max=256, help="Steps of a visit to such a slab. Default: 0, which chooses."
        ),
    ] = 0,
    traces: Annotated[
        Path | None,
        typer.Option(
            "--traces", "-o", readable=False, help="HDF5 file for the traces of receivers and the spectra of monitors."
        ),
    ] = None,
    snapshots: Annotated[
        Path | None, typer.Option("--snapshots", readable=False, help="Folder for VTK files (ParaView).")
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", readable=False, help="File for a picture of the field; with --scan, of the radargram."),
    ] = None,
    gif: Annotated[
        Path | None, typer.Option("--gif", readable=False, help="File for an animated GIF of the snapshots.")
    ] = None,
    mp4: Annotated[
        Path | None, typer.Option("--mp4", readable=False, help="File for an MP4 of the snapshots; needs ffmpeg.")
    ] = None,
    field: Annotated[
        str | None, typer.Option("--field", help="Field to draw. Default: ez, or hz if there is no ez.")
    ] = None,
    plane: Annotated[
        PlaneName, typer.Option("--plane", help="3D: plane to draw, through the first source.")
    ] = PlaneName.xy,
    at: Annotated[
        float | None,
        typer.Option(
            "--at",
            parser=options.duration,
            metavar="TIME",
            help="Time of the --png picture, such as 8ns. Default: half of the run.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            readable=False,
            help="Write a checkpoint to this file at the end and on Ctrl-C; --restart continues from it.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        int,
        typer.Option(
            "--checkpoint-every", min=0, help="With --checkpoint: also write one every N steps; 0 means never."
        ),
    ] = 0,
    restart: Annotated[
        Path | None, typer.Option("--restart", readable=False, help="Continue from this checkpoint of the same scene.")
    ] = None,
    scan: Annotated[bool, typer.Option("--scan", help=r"Run all positions of \[scan], one after the other.")] = False,
    position: Annotated[
        int | None, typer.Option("--position", min=0, help=r"Run one position of \[scan], counted from 0.")
    ] = None,
    roof: Annotated[bool, typer.Option(help="Measure the roof set by memory bandwidth after the run.")] = True,
    as_json: options.JsonOption = False,
) -> None:
    r"""Solve Maxwell's equations in a scene (FDTD).

    HDF5 needs h5py; pictures need matplotlib and pillow.

    Example: headrace grid fdtd examples/radar.toml --png radar.png --traces radar.h5
    """
    ranks = joined()
    with failing_together(ranks):
        scene = read_scene(scene_file)
        require_alike(ranks, "scene", scene.run_digest())
        outputs = Outputs(
            traces=traces,
            snapshots=snapshots,
            png=png,
            gif=gif,
            mp4=mp4,
            field=field,
            plane=str(plane),
            at=at,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            restart=restart,
            roof=roof,
        )
        _check(scene, outputs, scan, position)
        by_speed = cut == "measured"
        layers = layers_of(redundant)
        layout = make_layout(scene, ranks, device or [], "best" if by_speed else cut, layers or 1, push, mode)
        layout = replace(layout, wait_limit=wait_limit, device_memory=device_memory or 0, visit_steps=visit_steps)
        devices = _devices(layout)
        unkept = [f"{scene.path}: [[monitors]] record nothing without --traces FILE.h5"] if scene.monitors else []
        for line in (*scene.warnings, *(() if traces else unkept)) if layout.first else ():
            show.stderr().print(f"headrace: warning: {printable(line)}", markup=False, soft_wrap=True)
        if layout.first:
            _expect(scene, layout, scene.scan.count if scan and scene.scan else 1)
        with show.progress_bar("Setting up", shown=layout.first) as bar:
            count = scene.scan.count if scan and scene.scan else 1
            chosen = choose(
                scene,
                layout,
                redundant=layers,
                push=None if push == Push.automatic else str(push),
                by_speed=by_speed,
                steps=scene.steps * count,
            )
            layout = chosen.layout
            progress = _progress(bar, scene, count)
            if scan:
                done = run_scan(scene, layout, outputs, progress=progress)
            else:
                done = run_one(scene, layout, outputs, position=position or 0, progress=progress)
    if as_json and layout.first:
        typer.echo(json.dumps(grid_show.summary(scene, chosen, devices, done), indent=2))
    elif layout.first:
        grid_show.write(scene, chosen, devices, done, scan)
    finish(done.files, STATUS_INTERRUPTED if done.interrupted else 0)
