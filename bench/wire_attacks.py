"""Attacks on `headrace serve` while honest clients ask it: whether they are answered, how late, and what stays behind.

    python bench/wire_attacks.py [--attack silent,resets,...] [--rounds 3] [--seconds 5] [--save F]

Two servers of `light` on the CPU device, with default limits but for silence (3 s): one of HTTP, gRPC and shared
memory, and one of gRPC over TLS. Honest clients of all four ways are open loads of Poisson arrivals
(`headrace load --url`), so that a latency counts from the scheduled arrival; others compare every answer with the
host's. Each attack (bench/wire_attackers.py) runs for so many seconds, after as many seconds of honest clients alone,
and then all attacks run together:

    silent      1,000 connections that say nothing
    trickle     200 requests that come byte by byte (slow loris): heads, bodies and gRPC messages
    half_open   200 connections a second whose client vanishes without a FIN
    garbage     random bytes, also behind a right beginning
    oversized   heads, bodies, JSON and messages beyond every limit
    headers     floods of header fields, CONTINUATION frames and HPACK references
    resets      gRPC calls that are cancelled as fast as they open (rapid resets)
    pings       PING and SETTINGS frames whose answers nobody reads
    unread      clients that ask and take no answer; gRPC windows of 0 bytes
    handshakes  TLS handshakes that stop half way or are none
    rings       clients of shared memory that are killed with queries in flight, and wrong messages

wire.attack.<attack>.p99 is the 99th percentile of the honest clients' latency during an attack over the one before it,
the worst of the four ways; .memory, the servers' resident memory once the attack is over and its connections have been
given up, over before. A row is verified where every honest request was answered, every compared answer was right, both
servers still run, and each has as many open descriptors as before. Attackers share the machine's processors with the
servers. `half_open` needs root. Exit status: 0; 1 when an error ended it, or some row was not verified; 2 for wrong
use; 130 after Ctrl-C, with the rows so far.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from headrace import Device, UsageError, results
from headrace.profiles import Json
from row_by_row import run, say
from wire_attackers import ATTACKS
from wire_served import Comparer, Server

_HERE = Path(__file__).parent
_IDLE_SECONDS = 3.0
_SETTLE_SECONDS = 20.0  # that a server may take to give up what an attack left


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    file, key = folder / "server.pem", folder / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-keyout", str(key), "-out", str(file), "-subj", "/CN=localhost", "-days", "30"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageError(f"openssl made no certificate: {done.stderr.strip()}")
    return file, key


@dataclass
class _Phase:
    """What honest clients saw in one span of time."""

    p99: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    compared: int = 0
    failures: list[str] = field(default_factory=list)
    attacks: Json = field(default_factory=dict)


class Bench:
    """The servers, and what is done to them."""

    def __init__(self, given: argparse.Namespace, stack: ExitStack) -> None:
        self._given = given
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-attacks-")))
        self._shm = f"headrace-attacks-{os.getpid()}"
        self._authority, key = _certificate(folder)
        silence = ("--idle", f"{_IDLE_SECONDS:g}s", "--request-time", f"{_IDLE_SECONDS:g}s")
        self._plain = Server(folder, *silence, "--shm", self._shm)
        stack.callback(self._plain.close)
        self._tls = Server(folder, *silence, "--tls-certificate", str(self._authority), "--tls-key", str(key))
        stack.callback(self._tls.close)
        self._servers = (self._plain, self._tls)

    def _load(self, way: str) -> "subprocess.Popen[str]":
        place, options = {
            "http": (f"http://127.0.0.1:{self._plain.http}", ("--connections", "8")),
            "grpc": (f"grpc://127.0.0.1:{self._plain.grpc}", ()),
            "tls": (f"grpcs://127.0.0.1:{self._tls.grpc}", ("--tls-authority", str(self._authority))),
            "shm": (f"shm://{self._shm}", ()),
        }[way]
        command = [sys.executable, "-m", "headrace", "load", "--url", f"{place}/light", "--json", *options]
        command += ["--rate", f"{self._given.rate:g}", "--duration", f"{self._given.seconds:g}s"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def phase(self, attacks: tuple[str, ...] = ()) -> _Phase:
        """Honest clients for --seconds, with attackers who are there before and after them."""
        found = _Phase()
        places = (self._plain.http, self._plain.grpc, self._tls.grpc, self._shm)
        attackers = {
            kind: subprocess.Popen(
                [sys.executable, str(_HERE / "wire_attackers.py"), kind, *map(str, places)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for kind in attacks
        }
        for process in attackers.values():
            assert process.stdout is not None
            process.stdout.readline()
        comparer = Comparer(self._plain.http, f"shm://{self._shm}/light")
        comparer.start()
        loads = {way: self._load(way) for way in ("http", "grpc", "tls", "shm")}
        for way, process in loads.items():
            out, err = process.communicate()
            if not out.startswith("{"):
                found.failures.append(f"{way}: {err.strip() or out.strip()}")
                continue
            said = json.loads(out)
            found.p99[way] = said["load"]["latency_us"]["p99"]
            asked = sum(said["requests"].values())
            found.asked += asked
            if said["requests"]["answered"] != asked:
                found.failures.append(f"{way}: {said['requests']}")
        comparer.finish()
        found.compared = 2 * comparer.compared
        found.failures += comparer.failures
        for kind, process in attackers.items():
            out, _ = process.communicate()
            if not out.startswith("{"):
                raise UsageError(f"the attack {kind} ended by itself")
            found.attacks[kind] = json.loads(out)
        found.failures += ["a server ended" for server in self._servers if not server.alive]
        return found

    def settled(self, descriptors: list[int]) -> list[int]:
        """The servers' memory once they have no more descriptors than these, or after a while."""
        for server, most in zip(self._servers, descriptors, strict=True):
            server.settle(most, _SETTLE_SECONDS)
        return [server.resident for server in self._servers]

    def rows(self, attack: str) -> Iterator[Json]:
        """p99 and memory of one attack."""
        kinds = tuple(ATTACKS) if attack == "all" else (attack,)
        phases: list[tuple[_Phase, _Phase]] = []
        growth: list[float] = []
        failures: list[str] = []
        for _ in range(self._given.rounds):
            before = self.phase()
            descriptors = [one.descriptors for one in self._servers]
            resident = self.settled(descriptors)
            during = self.phase(kinds)
            after = self.settled(descriptors)
            growth.append(max(new / old for new, old in zip(after, resident, strict=True)))
            left = [one.descriptors - most for one, most in zip(self._servers, descriptors, strict=True)]
            failures += before.failures + during.failures
            failures += [f"{more} descriptors are left" for more in left if more > 0]
            phases.append((before, during))
        for failure in failures:
            say(f"{attack}: {failure}")
        ratios = [
            max(during.p99[way] / before.p99[way] for way in before.p99.keys() & during.p99.keys())
            for before, during in phases
            if before.p99.keys() & during.p99.keys()
        ]
        conditions: Json = {
            "requests": sum(during.asked for _, during in phases),
            "compared": sum(during.compared for _, during in phases),
            "rate": self._given.rate,
            "p99_us_before": _medians([before for before, _ in phases]),
            "p99_us_during": _medians([during for _, during in phases]),
            "attackers": phases[-1][1].attacks,
            "idle_seconds": _IDLE_SECONDS,
            "verified": not failures,
        }
        if ratios:
            yield results.row(f"wire.attack.{attack}.p99", ratios, "ratio", None, conditions)
        yield results.row(f"wire.attack.{attack}.memory", growth, "ratio", None, {"verified": not failures})


def _medians(phases: list[_Phase]) -> dict[str, float]:
    ways = set.intersection(*(set(phase.p99) for phase in phases))
    return {way: round(median(phase.p99[way] for phase in phases), 1) for way in sorted(ways)}


def _measure(given: argparse.Namespace) -> Iterator[Json]:
    with ExitStack() as stack:
        bench = Bench(given, stack)
        bench.phase()  # the servers have touched what they use
        for attack in given.attacks:
            for row in bench.rows(attack):
                say(f"{row['id']}: {row['value']:.3f} {row['conditions']}")
                yield row


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attack", default=",".join([*ATTACKS, "all"]), help="which, by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each attack, and of the time before it")
    parser.add_argument("--rate", type=float, default=1000.0, help="honest requests a second, of each way")
    parser.add_argument("--save", type=Path, help="write the results file wire-attacks.<machine>.json")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")
    given = parser.parse_args()
    given.device = "cpu"
    given.attacks = given.attack.split(",")
    unknown = set(given.attacks) - {*ATTACKS, "all"}
    if unknown or given.rounds < 1 or given.seconds <= 0 or given.rate <= 0:
        parser.error(f"--attack is of {', '.join(ATTACKS)}, all; --rounds, --seconds and --rate are more than 0")
    return given


def main() -> int:
    """Runs the program."""
    given = _parse()

    def measure(_: Device) -> Iterator[Json]:
        return _measure(given)

    return run("wire-attacks", given, measure)


if __name__ == "__main__":
    sys.exit(main())
