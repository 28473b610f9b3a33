"""How failures inside a verb become an exit status."""

import pytest
import typer

import headrace
from headrace.cli.errors import guarded, report


def status_of(failure: BaseException | None) -> int:
    app = typer.Typer()

    @app.command()
    def verb() -> None:
        if failure is not None:
            raise failure

    return guarded(app, [])


@pytest.mark.parametrize(
    ("failure", "status", "says"),
    [
        (None, 0, ""),
        (headrace.UsageError("no such rung"), 2, "no such rung"),
        (headrace.DataError("cut\nshort"), 1, "cut short"),
        (headrace.DeviceError("lost", "device fault", 719), 1, "lost"),
        (FileNotFoundError(2, "No such file", "x.idx"), 1, "x.idx"),
        (PermissionError(13, "Permission denied", "x.idx"), 1, "error: x.idx: Permission denied"),
        (BlockingIOError(11, "Resource temporarily unavailable"), 1, "cannot start a process: raise the limit"),
        (MemoryError(), 1, "there is not enough memory"),
        (MemoryError("std::bad_alloc"), 1, "there is not enough memory"),
        (MemoryError("Unable to allocate 8 GiB"), 1, "Unable to allocate 8 GiB"),
        (SystemError("error return without exception set"), 1, "there is not enough memory"),
        (ImportError("libx.so: cannot open shared object file"), 1, "libx.so: cannot open"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, ""),
        (typer.Exit(7), 7, ""),
    ],
)
def test_status(failure: BaseException | None, status: int, says: str, capsys: pytest.CaptureFixture[str]):
    assert status_of(failure) == status
    error = capsys.readouterr().err
    assert error == "" if says == "" else says in error
    assert "Traceback" not in error
    assert error.count("\n") <= 1


def test_other_errors_of_the_interpreter_are_its_own():
    with pytest.raises(SystemError, match="bad argument"):
        status_of(SystemError("bad argument to internal function"))


def test_what_would_move_the_cursor_is_not_printed(capsys: pytest.CaptureFixture[str]):
    report("bad title \x1b[31mred\x07 and \u202etext")
    shown = capsys.readouterr().err
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[31mred" in shown
