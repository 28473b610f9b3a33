"""Compares the processor time of the same work with two copies of the package, run in turn.

Usage: python scripts/compare_speed.py BASE CHANGE [--rounds N] [--only NAME...]

BASE and CHANGE are folders that contain the package headrace (pip install --target). Each round runs a piece of work
once with each copy, in direct succession, and every second round in the opposite order, so that other activity of the
machine affects both alike. A ratio is the change's time divided by the base's in the same round: below 1 the change is
faster. The table has the median of the ratios and their range. A difference is significant if the range excludes 1.

This is a report for the reader of a change, not a test: the exit status only says whether the work could be done.
"""

import argparse
import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from statistics import median

# Commands with a fixed amount of work, on the CPU device, with a fixed number of threads.
PREPARE = (
    "index synthetic words.hridx --documents 300K --terms 50K --threads 2",
    "taxi generate --rows 500K --out rides.parquet",
)
WORK = {
    "start": "devices",
    "index": "index synthetic made.hridx --documents 2M --terms 100K --threads 2",
    "query": "query words.hridx {word} --all",
    "fetch": "fetch rides.parquet --to cpu --runs 10 --threads 2 --json",
    "ingest": "ingest synthetic 1400 --packets 400000 --json",
    "grid": "grid fdtd scene.toml --device cpu",
}
WORD = "w00001 OR w00002 OR w00003"
SCENE = """title = "A pulse in a box"
[domain]
size = [0.5, 0.5]
spacing = 0.001
cpml = 10
[time]
window = 4e-9
[[sources]]
id = "pulse"
position = [0.25, 0.25]
waveform = "ricker"
frequency = 1.5e9
amplitude = 1.0
"""


def run(site: Path, words: list[str], folder: Path) -> tuple[float, str]:
    """Processor seconds of a command with the package in `site`, with its threads and children; and its failure."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-S", "-m", "headrace", *words],  # without -S an editable package would precede PYTHONPATH
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": f"{site}:{sysconfig.get_path('purelib')}",
            "XDG_CACHE_HOME": str(folder),
            "HEADRACE_DEVICES": "cpu",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return took, "" if done.returncode == 0 else (done.stderr.strip() or done.stdout.strip()).split("\n")[-1]


def command(name: str) -> list[str]:
    """The words of a piece of work."""
    return [WORD if word == "{word}" else word for word in WORK[name].split()]


def compare(sites: tuple[Path, Path], names: list[str], rounds: int) -> list[str]:
    """Prints the table line by line. Returns the names of the work that failed with one of the copies."""
    failed = []
    print(f"{'work':8} {'base':>8} {'change':>8} {'ratio':>7}  from   to     of {rounds} rounds; processor seconds")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scene.toml").write_text(SCENE, encoding="utf-8")
        for words in PREPARE:
            _, wrong = run(sites[0], words.split(), folder)
            if wrong:
                raise SystemExit(f"headrace {words}: {wrong}")
        for work in names:
            times: tuple[list[float], list[float]] = ([], [])
            wrong = ""
            for number in range(rounds):
                for which in (0, 1) if number % 2 == 0 else (1, 0):
                    took, said = run(sites[which], command(work), folder)
                    times[which].append(took)
                    wrong = wrong or (f"{('base', 'change')[which]}: {said}" if said else "")
                if wrong:
                    break
            if wrong:
                failed.append(work)
                print(f"{work:8} {wrong}")
                continue
            ratios = sorted(change / base for base, change in zip(*times, strict=True))
            print(
                f"{work:8} {median(times[0]):8.2f} {median(times[1]):8.2f} {median(ratios):7.3f}"
                f"  {ratios[0]:.3f}  {ratios[-1]:.3f}",
                flush=True,
            )
    return failed


def main() -> int:
    """Prints the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("change", type=Path)
    parser.add_argument("--rounds", type=int, default=7, help="number of rounds (7)")
    parser.add_argument("--only", nargs="*", choices=list(WORK), default=list(WORK), help="pieces of work to run (all)")
    options = parser.parse_args()
    sites = (options.base.resolve(), options.change.resolve())
    for site in sites:
        if not (site / "headrace/__init__.py").is_file():
            parser.error(f"{site} has no package headrace")
    busy = os.getloadavg()[0]
    print(f"{len(os.sched_getaffinity(0))} processors, {busy:.1f} tasks waited or ran in the last minute")
    return 1 if compare(sites, options.only, options.rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
