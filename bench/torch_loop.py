"""The `light` operator as a user of PyTorch would write it: a loop of tensor operations, and the same as a CUDA graph.

    python bench/torch_loop.py [--device cuda|cpu] [--bound 0.5ms] [--json]

A query is 1 KiB: copied to the device, summed, passed through two chains of 64 multiply-adds for 128 lanes, combined to
8 words, copied back; then comes the next. Prints the closed loop's rate and, if there is one, the highest Poisson rate
that keeps p99 within the bound, with latency from the scheduled arrival. Every answer is compared with Headrace's on
the host: bit for bit if PyTorch's multiply-add rounds once; otherwise everything that follows from the query and from
the bits of the chains is compared exactly, and the ends of the chains within a tolerance. Exit status: 0; 2 for wrong
use; 3 when torch is not installed; 1 for wrong answers.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import headrace
from headrace import results
from headrace.cli.options import duration
from headrace.profiles import Json

try:
    import torch
except ModuleNotFoundError:
    torch = None

NO_TORCH = 3
LANES, STEPS, WORDS, ANSWERS = 128, 64, 256, 8
SCALE, SHIFT = 1 - 2.0**-12, (2.0**-13, 0.875)
GOLDEN = 0x9E3779B97F4A7C15
QUERIES = 512
TOLERANCE = 2.0**-16  # for chains of 64 steps, each of which may round twice
_MOST_TRIES = 7
_KEEPS_UP = 0.99

Array = np.ndarray[Any, np.dtype[Any]]


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


class Light:
    """The operator's arithmetic as tensor operations, from one buffer of pinned memory to another."""

    def __init__(self, device: str) -> None:
        pinned = device != "cpu"
        self.device = device
        self.query = torch.zeros(WORDS, dtype=torch.int32, pin_memory=pinned)
        self.answer = torch.zeros(ANSWERS, dtype=torch.int64, pin_memory=pinned)
        self.chains = torch.zeros((2, LANES), device=device)
        lanes = np.arange(LANES, dtype=np.uint64) * 0x9E3779B9 & 0xFFFFFFFF
        self._lanes = torch.from_numpy(lanes.astype(np.int64)).to(device)
        self._scale = torch.tensor([[SCALE], [-SCALE]], device=device).expand(2, LANES).contiguous()
        self._shift = torch.tensor([[SHIFT[0]], [SHIFT[1]]], device=device).expand(2, LANES).contiguous()
        self._words = torch.arange(ANSWERS, device=device)
        self._graph = None
        # NumPy's view of the same memory, so that filling and reading it are not tensor operations.
        self._query_bytes = self.query.numpy().view(np.uint8)
        self._answer_words = self.answer.numpy().view(np.uint64)

    def enqueue(self) -> None:
        """Enqueues copy, compute, copy without waiting."""
        words = self.query.to(self.device, non_blocking=True).to(torch.int64) & 0xFFFFFFFF
        start = ((words[:LANES] ^ self._lanes) >> 8).to(torch.float32) * 2.0**-24
        chains = torch.stack((start, 1 - start))
        for _ in range(STEPS):
            chains = torch.addcmul(self._shift, chains, self._scale)
        self.chains = chains
        bits = chains.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
        checksum = words.sum() + 31 * bits[0].sum() + bits[1].sum()
        self.answer.copy_((checksum + self._words) * _signed(GOLDEN), non_blocking=True)

    def capture(self) -> None:
        """Captures everything in one graph, which ask() then replays."""
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):  # allocates before the capture, as PyTorch's documentation requires
                self.enqueue()
        side.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self.enqueue()

    def ask(self, query: Array, answer: Array) -> None:
        """Asks one query and waits."""
        self._query_bytes[:] = query
        if self._graph is None:
            self.enqueue()
        else:
            self._graph.replay()
        if self.device != "cpu":
            torch.cuda.current_stream().synchronize()
        answer[:] = self._answer_words


class Checker:
    """Compares answers with the host's."""

    def __init__(self) -> None:
        self.operator = headrace.light()
        self.queries = self.operator.sample(QUERIES)
        self._right = self.operator.answer_on_host(self.queries).view(np.uint64).reshape(QUERIES, ANSWERS)
        self.exact = True

    def choose(self, light: Light) -> None:
        """Finds out whether this PyTorch rounds a multiply-add once; if not, checks that it is right otherwise."""
        answer = np.zeros(ANSWERS, dtype=np.uint64)
        for number in range(QUERIES):
            light.ask(self.queries[number], answer)
            if np.array_equal(answer, self._right[number]):
                continue
            self.exact = False
            self._compare_parts(light, self.queries[number])
            self._right[number] = answer  # from now on, the same bits are expected again

    def _compare_parts(self, light: Light, query: Array) -> None:
        """Compares the chains with exact arithmetic within a tolerance, and the answer exactly with their bits."""
        words = query.view(np.uint32).astype(np.uint64)
        lanes = np.arange(LANES, dtype=np.uint64) * 0x9E3779B9 & 0xFFFFFFFF
        a = ((words[:LANES] ^ lanes) >> np.uint64(8)).astype(np.float64) * 2.0**-24
        b = 1 - a
        for _ in range(STEPS):
            a, b = a * SCALE + SHIFT[0], b * -SCALE + SHIFT[1]
        chains = light.chains.cpu().numpy()
        if not np.allclose(chains, np.stack((a, b)), rtol=0, atol=TOLERANCE):
            raise ValueError("the chains of multiply-adds are wrong")
        bits = chains.view(np.uint32).astype(np.uint64)
        checksum = words.sum() + np.uint64(31) * bits[0].sum() + bits[1].sum()
        with np.errstate(over="ignore"):
            expected = (checksum + np.arange(ANSWERS, dtype=np.uint64)) * np.uint64(GOLDEN)
        if not np.array_equal(expected, light.answer.numpy().view(np.uint64)):
            raise ValueError("the checksum is wrong")

    def wrong(self, answers: Array) -> int:
        """How many answers to queries 0, 1, ... differ from the expected ones."""
        expected = self._right[np.arange(len(answers)) % QUERIES]
        return int((~(answers == expected).all(axis=1)).sum())


def closed_loop(light: Light, checker: Checker, seconds: float) -> tuple[float, int]:
    """Queries per second in a closed loop, and the number of wrong answers."""
    answers = np.zeros((1 << 20, ANSWERS), dtype=np.uint64)
    began = time.perf_counter()
    count = 0
    while time.perf_counter() - began < seconds and count < len(answers):
        light.ask(checker.queries[count % QUERIES], answers[count])
        count += 1
    elapsed = time.perf_counter() - began
    return count / elapsed, checker.wrong(answers[:count])


def poisson(light: Light, checker: Checker, rate: float, seconds: float) -> tuple[float, float, int]:
    """Measured rate, p99 from the scheduled arrival, and wrong answers; queries are asked in order of arrival."""
    dice = random.Random(1)
    count = max(200, int(rate * seconds))
    due = np.cumsum([dice.expovariate(rate) for _ in range(count)])
    late = np.zeros(count)
    answers = np.zeros((count, ANSWERS), dtype=np.uint64)
    began = time.perf_counter()
    for number in range(count):
        while time.perf_counter() - began < due[number]:
            pass
        light.ask(checker.queries[number % QUERIES], answers[number])
        late[number] = time.perf_counter() - began - due[number]
    elapsed = time.perf_counter() - began
    p99 = float(np.sort(late)[int(np.ceil(0.99 * count)) - 1])
    return count / max(elapsed, float(due[-1])), p99, checker.wrong(answers)


def highest_poisson(light: Light, checker: Checker, closed: float, bound: float, seconds: float) -> tuple[float, float]:
    """The highest tried rate with p99 within the bound, and that p99; zeros if there is none."""
    good, bad, best_p99 = 0.0, closed, 0.0
    rate = 0.5 * closed
    for _ in range(_MOST_TRIES):
        measured, p99, wrong = poisson(light, checker, rate, seconds)
        if p99 <= bound and measured >= _KEEPS_UP * rate and wrong == 0:
            good, best_p99 = rate, p99
        else:
            bad = rate
        rate = (good + bad) / 2 if good else bad / 2
    return good, best_p99


def measure(identity: str, device: str, bound: float, seconds: float, samples: int, *, graph: bool) -> Json:
    """One row.

    Raises:
        ValueError: when an answer is wrong.
    """
    light, checker = Light(device), Checker()
    if graph:
        light.capture()
    checker.choose(light)
    runs = [closed_loop(light, checker, seconds) for _ in range(samples)]
    if any(wrong for _, wrong in runs):
        raise ValueError(f"{sum(wrong for _, wrong in runs)} answers are wrong")
    rates = [rate for rate, _ in runs]
    good, p99 = highest_poisson(light, checker, median(rates), bound, seconds)
    checked = "bit for bit" if checker.exact else f"checksum bit for bit, chains within {TOLERANCE:.1g}"
    conditions = {
        "torch": torch.__version__,
        "device": device,
        "arrivals": "closed loop, one query after the other",
        "bound_us": bound * 1e6,
        "poisson_qps": good or "no rate keeps p99 within the bound",
        "poisson_p99_us": p99 * 1e6,
        "checked": checked,
        "verified": True,
    }
    return results.row(identity, rates, "queries/s", None, conditions)


def rows(device: str, bound: float, seconds: float, samples: int, report: Callable[[str], None]) -> list[Json]:
    """Both rows; the second only on a GPU, because the CPU has no graphs."""
    made = [measure("ladder.torch.qps", device, bound, seconds, samples, graph=False)]
    if device == "cpu":
        report("ladder.torch_graph.qps: CUDA graphs need a GPU")
    else:
        made.append(measure("ladder.torch_graph.qps", device, bound, seconds, samples, graph=True))
    return made


def main() -> int:
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="", help="cuda or cpu; default: cuda if present")
    parser.add_argument("--bound", type=duration, default=0.5e-3, help="bound on p99, such as 0.5ms")
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of each measurement")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print only JSON (the rows) on stdout")
    given = parser.parse_args()
    if torch is None:
        print(
            "torch_loop.py: torch is not installed (pip install torch), so there is nothing to compare with",
            file=sys.stderr,
        )
        return NO_TORCH
    device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        made = rows(device, given.bound, given.seconds, given.samples, lambda text: print(text, file=sys.stderr))
    except ValueError as error:
        print(f"torch_loop.py: {error}", file=sys.stderr)
        return 1
    if given.json:
        print(json.dumps(made))
        return 0
    for row in made:
        print(f"{row['id']}: {row['value']:,.0f} queries/s; " + results.describe(row["conditions"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
