"""The folder of a run: the output of every input, and the job log that lets a later run resume."""

import fcntl
import json
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from headrace.errors import DataError, Errc, SystemError, UsageError  # noqa: A004
from headrace.text import parse_json

JOB_LOG = "jobs.jsonl"
_NAME_CHARACTERS = 60


class Again(StrEnum):
    """What to do with the logs of an earlier run."""

    refuse = "refuse"
    resume = "resume"  # run the inputs that have not succeeded there
    overwrite = "overwrite"


def log_name(index: int, count: int, text: str) -> str:
    """A file name for an input: its number, which makes it unique, and the harmless characters of its text."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", text[-_NAME_CHARACTERS:]).strip("_")
    return f"{index:0{len(str(count - 1))}d}-{safe}" if safe else f"{index:0{len(str(count - 1))}d}"


def disk_is_full(path: Path) -> bool:
    """Whether the file system of `path` is full."""
    found = os.statvfs(path)
    return (found.f_bfree if os.geteuid() == 0 else found.f_bavail) == 0


class Logs:
    """A folder, locked for this run until close().

    Its file `jobs.jsonl` has one line that identifies the command, then one line per completed input. The files of an
    input are named by its number and text.
    """

    def __init__(
        self, folder: Path, command: Sequence[str], inputs: Sequence[tuple[str, ...]], again: Again = Again.refuse
    ) -> None:
        """Creates the folder if it does not exist.

        Raises:
            UsageError: when files cannot be created in it, another run is writing to it, it has logs of an earlier run
                and `again` is `refuse`, or the run to resume has another command or other inputs.
        """
        self.folder = folder
        self.path = folder / JOB_LOG
        self._inputs = inputs
        self._header = {"headrace": "each", "command": list(command), "inputs": len(inputs)}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            left = any(file.exists() for index in range(len(inputs)) for file in self.files(index))
            # Non-blocking, because a FIFO may have no reader; unbuffered, so that nothing is left to be written at the
            # end.
            opened = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                os.close(opened)
                raise UsageError(f"cannot write logs to {folder}: {JOB_LOG} in it is not a regular file")
            self._file = os.fdopen(opened, "a+b", buffering=0)
        except UsageError:
            raise
        except OSError as error:
            raise UsageError(
                f"cannot write logs to {folder}: {error.strerror}", Errc.system, error.errno or 0
            ) from error
        try:
            self.succeeded = self._begin(again, left=left)
        except BaseException:
            self._file.close()
            raise

    def files(self, index: int) -> tuple[Path, Path]:
        """Files for stdout and stderr of an input."""
        name = log_name(index, len(self._inputs), " ".join(self._inputs[index]))
        return self.folder / f"{name}.out", self.folder / f"{name}.err"

    def _begin(self, again: Again, *, left: bool) -> dict[int, dict[str, Any]]:
        """Takes the lock and writes the first line; returns the records of inputs that succeeded before."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another run writes its logs to {self.folder}: give another --logs") from None
        self._file.seek(0)
        content = self._file.read()
        if again is Again.refuse and (content or left):
            if not content:
                self.path.unlink()
            raise UsageError(
                f"{self.folder} has the logs of an earlier run: --resume runs what has not succeeded there, "
                "--overwrite replaces them, or give another --logs"
            )
        if again is Again.resume and content:
            return self._read(content)
        self._remove_files_of(content)
        self._file.truncate(0)
        self._write(self._header)
        return {}

    def _read(self, content: bytes) -> dict[int, dict[str, Any]]:
        """Reads what an earlier run has written. A truncated last line, as after a kill, is dropped."""
        whole = content[: content.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        if not whole:
            self._write(self._header)
            return {}
        try:
            header, *records = (parse_json(line, self.path) for line in whole.splitlines())
            of_each = header["headrace"] == "each"
            same_command = header["command"] == self._header["command"]
            before = {int(record["index"]): tuple(record["input"]) for record in records}
            succeeded = {int(record["index"]): record for record in records if record["status"] == "ok"}
        except (TypeError, ValueError, OverflowError, KeyError, DataError) as error:
            raise DataError(f"{self.path} is not a job log of headrace each ({error!r})") from error
        if not of_each:
            raise DataError(f"{self.path} is not a job log of headrace each")
        if not same_command:
            raise UsageError(f"{self.path} belongs to another command: resume with that one, or give another --logs")
        now = dict(enumerate(self._inputs))
        if header["inputs"] != len(now) or any(now.get(index) != parts for index, parts in before.items()):
            raise UsageError(f"{self.path} belongs to other inputs: resume with those, or give another --logs")
        return succeeded

    def _remove_files_of(self, content: bytes) -> None:
        """Removes the output files that the job log of an earlier run names."""
        for line in content.splitlines():
            try:
                record = parse_json(line, self.path)
                names = [Path(record[key]).name for key in ("stdout", "stderr")]
            except (TypeError, KeyError, DataError):
                continue
            for name in names:
                if name.endswith((".out", ".err")) and "\0" not in name:
                    (self.folder / name).unlink(missing_ok=True)

    def record(self, record: dict[str, Any]) -> None:
        """Appends the outcome of an input.

        Raises:
            SystemError: when it cannot be written, for example because the disk is full.
        """
        self._write(record)

    def _write(self, line: dict[str, Any]) -> None:
        """Writes a complete line, or nothing of it."""
        before = os.fstat(self._file.fileno()).st_size
        left = memoryview(json.dumps(line).encode() + b"\n")
        try:
            while left:
                left = left[os.write(self._file.fileno(), left) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(before)
            raise SystemError(f"writing {self.path}: {error.strerror or error}", native=error.errno or 0) from error

    def close(self) -> None:
        """Unlocks the folder for other runs."""
        self._file.close()
