"""`headrace serve --shm` and `headrace load --url shm://`: one serves the other, and both count the same."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Run

from headrace import Client, Error, _core
from headrace.cli import load_url
from headrace.cli.load_security import RemoteSecurity

if not _core.built_with_wire:
    pytest.skip("built without the libraries of wire", allow_module_level=True)

from ring_serving import behind_shm, fresh, until
from test_load_url import ended, loading
from test_wire_command import command, get
from test_wire_metrics import outcomes, scrape, value
from wire_serving import halve, third


def loaded(run: Run, url: str, *arguments: object, status: int = 0) -> dict[str, Any]:
    """The JSON output of a load."""
    done = run("load", "--url", url, "--json", *arguments)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def test_a_server_says_where_it_is_and_counts_what_it_is_asked():
    name = fresh()
    with command("light", "--shm", name, "--prometheus", "0") as (process, said):
        assert said["shm"] == f"shm://{name}"
        query = np.ones(256, np.uint32)
        with Client(f"shm://{name}/light") as client:
            assert client.query_dtype == np.dtype(("<u4", (256,)))
            assert client.ask(query).dtype == np.uint64
        found = scrape(said["prometheus"])
        labels = {"model": "light", "version": "1", "protocol": "shm"}
        assert outcomes(found, "headrace_serve_model_queries_total", **labels) == {"answered": 1}
        assert outcomes(found, "headrace_serve_requests_total", protocol="shm") == {"answered": 1}
        assert value(found, "headrace_serve_model_request_duration_seconds_count", **labels) == 1
        assert value(found, "nv_inference_count", model="light", version="1") == 1
        status = get(said["url"] + "/status.json")
        assert status["requests"]["shm"]["answered"] == 1
        assert status["models"][0]["shm"]["queries"]["answered"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        with pytest.raises(Error, match="no server of this user has this name"):
            Client(f"shm://{name}/light")


def test_counts_of_a_load_are_those_of_the_server(run: Run):
    with behind_shm(halve(), shm_threads=2) as (server, url):
        said = loaded(run, f"{url}/halve", "--rate", "2K", "--duration", "0.3s", "--generators", 2)
        counted = ended(said)
        assert set(counted) == {"answered"}
        assert counted["answered"] == server.statistics().shm.answered > 300
        assert said["connections"] == 2
        assert said["model"] == "halve"
        assert said["load"]["latency_us"]["p50"] > 0


def test_a_load_asks_what_files_say(run: Run, tmp_path: Any):
    np.save(tmp_path / "n.npy", np.array([7, 8], np.int64))
    with behind_shm(halve()) as (server, url):
        queries: list[bytes] = []
        load_rings = _core.load_rings

        def load(url: str, made: list[bytes], **options: Any) -> Any:
            queries.extend(made)
            return load_rings(url, made, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_core, "load_rings", load)
            remote = load_url.Remote(url, inputs=[f"n={tmp_path / 'n.npy'}"], patience=10.0)
            windows = {"windows_max": 1, "window": 0.1, "warm_up": 0.01, "stable_windows": 1}
            load_url.run(
                remote,
                RemoteSecurity(),
                arrivals="poisson",
                rate=1000,
                trace=[],
                seed=3,
                generators=1,
                windows=windows,
                progress=lambda _window: None,
            )
        asked = {(one[:12] == bytes(12), int(np.frombuffer(one[12:], "<i8")[0])) for one in queries}
        assert asked == {(False, 7), (False, 8)}  # x is random, n comes from the file
        assert server.statistics().shm.answered > 0
        wrong = run("load", "--url", url, "--rate", "1K", "--input", f"m={tmp_path / 'n.npy'}")
        assert wrong.returncode == 2
        assert "no input 'm'" in wrong.stderr


def test_queries_with_a_deadline_end_late_or_are_refused(run: Run):
    with behind_shm(third()) as (server, url):
        said = loaded(run, url, "--rate", "1K", "--duration", "0.2s", "--deadline", "1ns", status=1)
        counted = ended(said)
        assert set(counted) <= {"late", "refused"}
        assert sum(counted.values()) > 100
        assert server.statistics().shm.answered == 0


def test_a_load_outlives_a_server_that_is_started_again():
    name = fresh()
    arguments = ("light", "--shm", name)
    with command(*arguments) as (first, _):
        words = ("--rate", "1K", "--duration", "4s", "--patience", "20s")
        with loading(f"shm://{name}/light", *words) as load:
            until(lambda: _is_loaded(first))
            first.kill()
            first.wait()
            with command(*arguments):
                out, error = load.communicate(timeout=120)
        assert load.returncode == 0, error
        said = json.loads(out)
        assert said["connections_lost"] == 1
        assert said["requests"]["answered"] > 1000


def _is_loaded(process: Any) -> bool:
    """Whether a client that asks has its ring; one that only asks for a description has one slot."""
    rings = [line for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines() if "headrace-ring" in line]
    sizes = [int(end, 16) - int(begin, 16) for begin, end in (line.split()[0].split("-") for line in rings)]
    return max(sizes, default=0) > 1 << 17


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--url", "shm://nothing/light", "--rate", "1K"), "headrace serve ... --shm nothing"),
        (("--url", "shm:///light", "--rate", "1K"), "a server's name must have"),
        (("--url", "shm://x/light", "--rate", "1K", "--queries-per-request", "2"), "each request is a query"),
        (("--url", "shm://x/light", "--rate", "1K", "--connections", "3"), "each generator has one connection"),
    ],
)
def test_mistakes_of_a_load_are_one_line(run: Run, arguments: tuple[str, ...], says: str):
    done = run("load", *arguments)
    assert done.returncode in {1, 2}
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--shm", "a/b"), "letters"),
        (("--shm-threads", "2"), "--shm-threads is for clients of shared memory: it needs --shm NAME"),
        (("--shm-clients", "2"), "--shm-clients is"),
    ],
)
def test_mistakes_of_a_server_are_one_line(run: Run, arguments: tuple[str, ...], says: str):
    done = run("serve", "light", "--http", "0", "--grpc", "none", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
