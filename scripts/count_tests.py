"""Sums the JUnit files in a folder; prints the name of each failure and the end of its message.

The last line is "N passed, N failed".

A file NAME-again.xml holds a second run of the tests that failed in NAME.xml. A test that passed there counts as
passed; its first failure is still printed and counted, so that a test which needs a second run is not overlooked. A
crash is a failure whatever the second run gives.

Exits 1 if a test failed or none passed.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

# Number of lines of a failed test's output to repeat at the end of a long log.
SHOWN_LINES = 40


def outcome(case: ElementTree.Element) -> str:
    """One of passed, failed and skipped; pytest and GoogleTest write them differently."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return "skipped"
    return "passed"


# Messages of a first run in which a process crashed or a sanitizer stopped it.
CRASH = re.compile(r"crashed while running|Sanitizer|SIGSEGV|SIGABRT|SIGBUS|(returncode|rc|status)\D{1,6}-(6|7|11)\b")
# A second run of NAME.xml.
AGAIN = "-again"

# The suite's file name without its extension, and the name of a test in it.
Key = tuple[str, str]


def said(case: ElementTree.Element) -> str:
    """The messages of a failed test."""
    return "\n".join(part.text or part.get("message", "") for kind in ("failure", "error") for part in case.iter(kind))


def report(word: str, key: Key, message: str) -> str:
    """The name of a failed test and the last lines of its message."""
    lines = message.strip().splitlines()[-SHOWN_LINES:]
    return "\n".join([f"{word} {key[0]}: {key[1]}", *(f"    {line}" for line in lines)])


def main() -> int:
    """Processes the folder given on the command line."""
    counts: Counter[str] = Counter()
    failures: list[tuple[Key, str]] = []
    again: Counter[Key] = Counter()
    folder = Path(sys.argv[1])
    for path in sorted(folder.rglob("*.xml")):
        suite = str(path.relative_to(folder).with_suffix(""))
        for case in ElementTree.parse(path).iter("testcase"):
            key = (
                suite.removesuffix(AGAIN),
                f"{case.get('classname', '')}.{case.get('name', 'a test without a name')}",
            )
            if suite.endswith(AGAIN):
                again[key] += outcome(case) == "passed"
                continue
            counts[outcome(case)] += 1
            if outcome(case) == "failed":
                failures.append((key, said(case)))
    for key, message in failures:
        if again[key] and not CRASH.search(message):
            again[key] -= 1
            counts.update({"failed": -1, "passed": 1, "again": 1})
            print(report("PASSED ONLY WHEN RUN AGAIN", key, message))
        else:
            print(report("FAILED", key, message))
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    repeated = f", {counts['again']} of the passed only when run again" if counts["again"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}{repeated}")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
