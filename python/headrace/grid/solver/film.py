"""Writes moving pictures as MP4, encoded by ffmpeg."""

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from headrace import outputs
from headrace.errors import SystemError, UsageError, how_to_install  # noqa: A004
from headrace.grid.solver import pictures
from headrace.grid.solver.pictures import Frame, Plane


def encoder() -> str:
    """The ffmpeg of the machine, or the one of imageio-ffmpeg.

    Raises:
        UsageError: when neither is installed.
    """
    found = shutil.which("ffmpeg")
    if found:
        return found
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        raise UsageError(
            f"MP4 needs ffmpeg: {how_to_install('imageio-ffmpeg')}, or install ffmpeg; --gif needs neither"
        )
    import imageio_ffmpeg  # noqa: PLC0415 - optional

    return str(imageio_ffmpeg.get_ffmpeg_exe())


def check(path: Path) -> None:
    """Checks that a film can be written to this path, before the work for it starts.

    Raises:
        UsageError: when matplotlib or ffmpeg is missing.
        SystemError: when the file cannot be written.
    """
    pictures.check(path)
    encoder()


def write(path: Path, plane: Plane, field: str, frames: Sequence[Frame]) -> None:
    """Writes frames as MP4 (H.264, which browsers play) with the same colours throughout.

    Raises:
        UsageError: when there are no frames.
        SystemError: with ffmpeg's message, when it fails.
    """
    images = pictures.drawn(path, plane, field, frames)
    first = next(images)
    rows, columns, _ = first.shape
    # Two pixels along each axis share a colour, so their number must be even.
    even = "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white"
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{columns}x{rows}", "-r", str(pictures.FRAMES_PER_SECOND)]
    target = ["-vf", even, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4"]
    with outputs.replacing(path) as written, tempfile.TemporaryFile() as said:
        command = [encoder(), "-loglevel", "error", "-y", *source, "-i", "-", *target, str(written)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said) as process:
            assert process.stdin is not None
            try:
                for image in (first, *images):
                    process.stdin.write(image.tobytes())
                process.stdin.close()
            except BrokenPipeError:
                pass  # its output tells why
        if process.returncode != 0:
            said.seek(0)
            reason = said.read().decode(errors="replace").strip() or f"status {process.returncode}"
            raise SystemError(f"{path}: ffmpeg could not encode it: {reason}")
