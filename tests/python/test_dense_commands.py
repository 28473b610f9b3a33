"""mlp, topk and lookup on the command line: their files and options."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import headrace
from headrace import Error
from headrace.cli import app
from headrace.operators import check as check_module

RUN = CliRunner()


@pytest.fixture
def network(tmp_path: Path) -> Path:
    random = np.random.default_rng(3)
    path = tmp_path / "network.npz"
    np.savez(
        path, weights0=random.normal(0, 0.2, (12, 20)), biases0=random.normal(0, 0.2, 12), weights1=np.ones((3, 12))
    )
    return path


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of a check with a long hang limit, because the machine may be busy."""
    made = check_module._plans

    def plans(*, inline: bool) -> Iterator[tuple[headrace.Plan, str]]:
        for plan, name in made(inline=inline):
            plan.hang_after = 3600.0
            yield plan, name

    monkeypatch.setattr(check_module, "_plans", plans)


@pytest.mark.usefixtures("patient")
def test_check_compares_every_plan_with_numpy(network: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.npy"
    np.save(rows, np.random.default_rng(4).normal(0, 1, (300, 6)))
    counts = tmp_path / "counts.npy"
    np.save(counts, np.arange(300))
    for words in (
        ["mlp", "--weights", network, "--dtype", "float32"],
        ["topk", "--matrix", rows, "--k", 2],
        ["lookup", "--table", rows, "--most", 5, "--pooling", "mean", "--device-bytes", "1KiB", "--counts", counts],
        ["lookup", "--table", rows, "--weighted", "--exponent", 0, "--device-bytes", "0"],
    ):
        done = RUN.invoke(app, ["check", *map(str, words), "--queries", "20", "--json"])
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert found["operator"] == words[0]
        assert {one["plan"] for one in found["plans"]} >= {"single", "graph", "persistent", "dispatched, inline"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["load", "--rate", "1000", "--operator", "light", "--k", "3"], "operator light has no --k"),
        (["load", "--rate", "1000", "--operator", "mlp", "--metric", "l2"], "operator mlp has no --metric"),
        (["ladder", "--operator", "topk", "--steps", "3"], "operator topk has no --steps"),
        (["serve", "light", "--k", "3"], "--k is for topk, which is not served"),
        (["serve", "light", "--dtype", "float32"], "--dtype is for mlp, topk and lookup, which is not served"),
        (["serve", "topk", "--device-bytes", "0"], "--device-bytes is for lookup, which is not served"),
        (["load", "--rate", "1000", "--operator", "topk", "--weighted"], "operator topk has no --weighted"),
        (["ladder", "--operator", "mlp", "--device-bytes", "1GiB"], "operator mlp has no --device-bytes"),
        (["check", "lookup", "--matrix", "rows.npy"], "operator lookup has no --matrix"),
        (["check", "lookup", "--counts", "nothing.npy"], "there is no file nothing.npy"),
        (["check", "lookup", "--most", "5000"], "lookup: most must be 1 to 1024, not 5000"),
        (["check", "lookup", "--pooling", "mean", "--weighted"], "lookup: weights are possible only with sum pooling"),
        (["check", "topk", "--matrix", "nothing.npy"], "there is no file nothing.npy"),
        (["check", "topk", "--k", "300"], "topk: k must be 1 to 256, not 300"),
        (["check", "mlp", "--activation", "tanh"], "an activation must be relu or identity, not 'tanh'"),
    ],
)
def test_options_that_an_operator_does_not_have(words: list[str], message: str) -> None:
    done = RUN.invoke(app, words)
    assert isinstance(done.exception, Error)
    assert str(done.exception) == message


def test_files_that_are_no_arrays(network: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.npy"
    text.write_text("no array")
    names = tmp_path / "names.npz"
    np.savez(names, w=np.ones((2, 2)))
    for words, message in (
        (["check", "topk", "--matrix", network], f"{network} has several arrays: give an .npy file with the matrix"),
        (["check", "lookup", "--table", network], f"{network} has several arrays: give an .npy file with the table"),
        (["check", "lookup", "--counts", text], f"{text} is not an .npy file with an array of numbers: "),
        (["check", "topk", "--matrix", text], f"{text} is not an .npy file with an array of numbers: "),
        (["check", "mlp", "--weights", text], f"{text} is not an .npz file with arrays of numbers: "),
        (
            ["check", "mlp", "--weights", names],
            f"{names} has w, and not weights0, biases0, weights1, ... for the layers",
        ),
    ):
        done = RUN.invoke(app, [str(word) for word in words])
        assert isinstance(done.exception, Error)
        assert str(done.exception).startswith(message)
