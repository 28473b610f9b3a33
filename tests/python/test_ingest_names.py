"""An option of `headrace ingest` has the name of the Python argument that it sets."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from headrace import ingest
from headrace.cli import app
from headrace.cli.grouped import grouped
from headrace.ingest.receiving import Numbering

# What the commands do with frames besides receiving them.
OUTPUT = {"sha256", "out", "out_files", "out_bytes", "keep_streams", "duration", "frames", "streams", "interval"} | {
    "prometheus",
    "as_json",
    "answer",
    "help",
}
# Python keeps units in names, and cannot use the names in the first column.
OTHER_NAMES = {
    "from": "from_senders",
    "idle": "idle_seconds",
    "first_byte": "first_byte_seconds",
    "payload": "payload_bytes",
    "rate": "packets_per_second",
    "little_endian": "big_endian",
}


def options(command: str) -> set[str]:
    """The options of a command in Python's spelling."""
    found = typer.main.get_command(app).commands["ingest"].commands[command]  # type: ignore[attr-defined]
    longest = [max(parameter.opts, key=len) for parameter in found.params if parameter.param_type_name == "option"]
    return {name.removeprefix("--").replace("-", "_") for name in longest} - {"json"}


@pytest.mark.parametrize("receive", [ingest.tcp, ingest.udp, ingest.pcap, ingest.synthetic], ids=lambda f: f.__name__)
def test_options_are_arguments(receive: Callable[..., ingest.Receiver]):
    arguments = set(inspect.signature(receive).parameters)
    arguments |= set(Numbering.__annotations__)
    named = {OTHER_NAMES.get(name, name) for name in options(receive.__name__) - OUTPUT}
    assert named - arguments == set()


@dataclass(frozen=True)
class _Group:
    """Things."""

    size: Annotated[int, typer.Option("--size", help="A size.")] = 3
    word: Annotated[str | None, typer.Option("--word", help="A word.")] = None


def test_a_group_of_options_comes_as_one_argument():
    found: list[object] = []

    @grouped
    def command(
        name: Annotated[str, typer.Argument(help="A name.")],
        own: Annotated[bool, typer.Option("--own", help="Its own.")] = False,
        *,
        size: _Group,  # has the name of one of its options
    ) -> None:
        found.extend([name, own, size])

    small = typer.Typer()
    small.command()(command)
    assert CliRunner().invoke(small, ["it", "--own", "--size", "5"]).exit_code == 0
    assert found == ["it", True, _Group(5, None)]
    assert "Things" in CliRunner().invoke(small, ["--help"]).output
    assert CliRunner().invoke(small, ["it", "--size", "many"]).exit_code == 2


def test_groups_with_the_same_option_are_refused():
    def command(first: _Group, second: _Group) -> None: ...

    with pytest.raises(TypeError, match="two options named size"):
        grouped(command)


def test_a_field_without_an_option_is_refused():
    @dataclass(frozen=True)
    class Bare:
        size: int = 3

    def command(group: Bare) -> None: ...

    command.__annotations__["group"] = Bare
    with pytest.raises(TypeError, match=r"Bare\.size is not annotated"):
        grouped(command)
