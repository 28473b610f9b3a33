"""Attacks on `headrace ingest` while honest clients run: which succeed, how long they take, how much memory they cost.

    python bench/ingest_attacks.py [--attack syn,churn,...] [--rounds 3] [--seconds 10] [--save F]

Three servers run in their own network namespace: plain TCP to files, `--answer http` and `--answer iperf3`. Honest
clients are unmodified sockets: near ones for each server, and far ones for the plain server, behind a simulated wire
with 25 ms each way. Each attack (bench/attackers.py) runs for --seconds, after the same time with honest clients alone;
then all attacks run together:

    silent   64 connections that never say anything            plain
    flood    400 such connections a second                     plain
    closes   2,000 such connections that close at once, again  plain
    syn      3,000 SYNs a second from forged addresses         plain
    churn    200,000 connections that are reset at once        plain
    garbage  connections that wrong segments seem to keep      plain
    json     hostile JSON in conversations of iperf3           iperf3
    heads    hostile heads of HTTP, and heads byte by byte     http

ingest.attack.<attack>.p99 is the 99th percentile of the honest clients' times during an attack divided by that before
it, for the worst of the clients whose server is attacked; .memory is the resident memory of that server after the
attack divided by that before. A row is verified if every honest client succeeded, every upload is in a file byte for
byte, and every server is still running. Needs root (namespaces, TUN devices, raw sockets) and the ip command. Exit
status: 0; 1 when an error ended it, or some row was not verified; 2 for wrong use; 130 after Ctrl-C, with the rows so
far.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median

import headrace
from attack_clients import content
from attack_network import Network
from attackers import ATTACKS
from headrace import Device, results
from headrace.profiles import Json
from row_by_row import run, say
from veth_pair import Namespace

_BENCH = Path(__file__).parent
_ONE_WAY_SECONDS = 0.025
_SETTLE_SECONDS = 2.0
_CHURN_GUARD_SECONDS = 240.0
_GUARD_SECONDS = 60.0
_IDLE_SECONDS = 4
_SERVER_OPTIONS = ("--to", "cpu", "--frame", "64KiB", "--ring", "16MiB", "--keep-streams", "100")
_ATTACKED = {
    "silent": "plain",
    "flood": "plain",
    "closes": "plain",
    "syn": "plain",
    "churn": "plain",
    "garbage": "plain",
    "json": "iperf3",
    "heads": "http",
}
_GARBAGE = b"!"
_NUMBERS_APART = 1_000_000


@dataclass(frozen=True)
class _Honest:
    """Clients that arrive at a fixed rate."""

    server: str
    rate: float
    far: bool = False

    @property
    def name(self) -> str:
        return f"{self.server}.far" if self.far else self.server


_HONEST = (_Honest("plain", 30), _Honest("plain", 10, far=True), _Honest("http", 30), _Honest("iperf3", 8))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attack", default=",".join([*ATTACKS, "all"]), help="attacks, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="duration of each attack, and of the time before it"
    )
    parser.add_argument(
        "--churn", type=int, default=200_000, help="maximum number of connections of an attack by churn"
    )
    parser.add_argument("--save", type=Path, help="write the results file ingest-attacks.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print only JSON on stdout")
    given = parser.parse_args()
    given.device = "cpu"
    given.attacks = given.attack.split(",")
    unknown = set(given.attacks) - {*ATTACKS, "all"}
    if unknown or given.rounds < 1 or given.seconds <= 0 or given.churn < 1:
        parser.error(f"--attack takes {', '.join(ATTACKS)} and all; --rounds, --seconds and --churn must be above 0")
    return given


class _Server:
    """`headrace ingest` as a process in the near namespace."""

    def __init__(self, network: Network, address: str, *options: object) -> None:
        self.address = address
        words = ["ingest", "tcp", address, *_SERVER_OPTIONS, *map(str, options)]
        command = [sys.executable, "-m", "headrace", *words]
        self._process = network.near.run(
            subprocess.Popen, command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        title = self._process.stderr.readline()
        if not title.startswith("Listening on "):
            self._process.kill()
            raise headrace.Error(f"the server did not start: {title}{self._process.stderr.read()}")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def resident(self) -> int:
        """Resident memory in bytes."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])

    def close(self) -> None:
        if self.alive:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.communicate(timeout=_GUARD_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


class _Program:
    """A program of this folder that runs until its standard input ends, and prints a JSON object."""

    def __init__(self, side: Namespace, name: str, *words: object) -> None:
        command = [sys.executable, str(_BENCH / name), *map(str, words)]
        self.process = side.run(subprocess.Popen, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_ready(self) -> None:
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "ready\n":
            raise headrace.Error(f"{self.process.args} did not start")

    def finish(self) -> Json:
        out, _ = self.process.communicate(timeout=_GUARD_SECONDS)
        if self.process.returncode != 0:
            raise headrace.Error(f"{self.process.args} ended with status {self.process.returncode}")
        found: Json = json.loads(out)
        return found


@dataclass
class _Phase:
    """Observations of honest clients in one time span."""

    p99: dict[str, float] = field(default_factory=dict)
    tried: int = 0
    failures: list[str] = field(default_factory=list)
    attacks: Json = field(default_factory=dict)

    @property
    def right(self) -> bool:
        return not self.failures


def _percentile_99(times: list[float]) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


class Bench:
    """The servers, and the phases of the benchmark."""

    def __init__(self, given: argparse.Namespace, stack: ExitStack) -> None:
        self._given = given
        self._numbers = count(1)
        self._out = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-attacks-")))
        self._network = Network(_ONE_WAY_SECONDS)
        stack.callback(self._network.close)
        self._servers: dict[str, _Server] = {}
        limits = ("--idle", f"{_IDLE_SECONDS}s", "--out-files", 1_000_000)
        for name, address, options in (
            ("plain", "10.77.1.2:9000", (*limits, "--out", self._out / "plain")),
            ("http", "10.77.2.2:8080", (*limits, "--out", self._out / "http", "--answer", "http")),
            ("iperf3", "10.77.3.2:5201", ("--answer", "iperf3")),
        ):
            self._servers[name] = _Server(self._network, address, *options)
            stack.callback(self._servers[name].close)

    def phase(self, seconds: float, attacks: tuple[str, ...] = ()) -> _Phase:
        """Runs honest clients for this long, with attackers."""
        attackers = {
            kind: _Program(
                self._network.near,
                "attackers.py",
                kind,
                self._servers[_ATTACKED[kind]].address,
                self._given.churn,
            )
            for kind in attacks
        }
        honest = {}
        for clients in _HONEST:
            side = self._network.far if clients.far else self._network.near
            first = next(self._numbers) * _NUMBERS_APART
            server = self._servers[clients.server].address
            honest[clients] = _Program(side, "attack_clients.py", clients.server, server, clients.rate, first)
        for program in (*attackers.values(), *honest.values()):
            program.wait_ready()
        time.sleep(seconds)
        if "churn" in attackers:  # it ends by its own count
            attackers["churn"].process.wait(_CHURN_GUARD_SECONDS)
        found = _Phase()
        uploaded: dict[str, list[int]] = {"plain": [], "http": []}
        for clients, program in honest.items():
            said = program.finish()
            found.tried += said["tried"]
            found.p99[clients.name] = _percentile_99(said["times"])
            if len(said["succeeded"]) != said["tried"]:
                found.failures.append(f"{clients.name}: {len(said['succeeded'])} of {said['tried']}: {said['failure']}")
            if clients.server in uploaded:
                uploaded[clients.server] += said["succeeded"]
        found.attacks = {kind: program.finish() for kind, program in attackers.items()}
        time.sleep(_SETTLE_SECONDS)
        found.failures += [f"the server {name} ended" for name, server in self._servers.items() if not server.alive]
        for name, numbers in uploaded.items():
            found.failures += self._compare(name, numbers)
        return found

    def _compare(self, name: str, numbers: list[int]) -> list[str]:
        """Problems with the files of a server, which are then removed: each honest upload must be one of the files."""
        wanted = {content(number) for number in numbers}
        for path in self._out.glob(f"{name}*"):
            held = path.read_bytes()
            if held in wanted:
                wanted.remove(held)
            if path.name != name:
                path.unlink()
        return [f"{name}: {len(wanted)} of {len(numbers)} uploads are in no file"] if wanted else []

    def resident(self, attack: str) -> dict[str, int]:
        """Resident memory of the servers under attack."""
        names = set(_ATTACKED.values()) if attack == "all" else {_ATTACKED[attack]}
        return {name: self._servers[name].resident() for name in names}

    def rows(self, attack: str) -> Iterator[Json]:
        """p99 and memory for one attack."""
        kinds = tuple(ATTACKS) if attack == "all" else (attack,)
        servers = {_ATTACKED[kind] for kind in kinds}
        ratios, growth, failures, tried = [], [], [], 0
        quiet: list[dict[str, float]] = []
        loud: list[dict[str, float]] = []
        attacks: Json = {}
        for _ in range(self._given.rounds):
            before = self.phase(self._given.seconds)
            resident = self.resident(attack)
            during = self.phase(self._given.seconds, kinds)
            after = self.resident(attack)
            names = [clients.name for clients in _HONEST if clients.server in servers]
            ratios.append(max(during.p99[name] / before.p99[name] for name in names))
            growth.append(max(after[name] / resident[name] for name in servers))
            failures += before.failures + during.failures
            tried += during.tried
            quiet.append(before.p99)
            loud.append(during.p99)
            attacks = during.attacks
        for failure in failures:
            say(f"{attack}: {failure}")
        conditions = {
            "honest_clients": tried,
            "p99_ms_before": _medians(quiet),
            "p99_ms_during": _medians(loud),
            "attackers": attacks,
            "idle_seconds": _IDLE_SECONDS,
            "verified": not failures,
        }
        yield results.row(f"ingest.attack.{attack}.p99", ratios, "ratio", None, conditions)
        yield results.row(f"ingest.attack.{attack}.memory", growth, "ratio", None, {"verified": not failures})


def _medians(phases: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(median(phase[name] for phase in phases), 2) for name in phases[0]}


def _measure(given: argparse.Namespace) -> Iterator[Json]:
    with ExitStack() as stack:
        bench = Bench(given, stack)
        bench.phase(given.seconds)  # after this, everything has been touched once
        for attack in given.attacks:
            for row in bench.rows(attack):
                say(f"{row['id']}: {row['value']:.3f} {row['conditions']}")
                yield row


def main() -> int:
    """Runs the program."""
    given = _parse()

    def measure(_: Device) -> Iterator[Json]:
        return _measure(given)

    return run("ingest-attacks", given, measure)


if __name__ == "__main__":
    sys.exit(main())
