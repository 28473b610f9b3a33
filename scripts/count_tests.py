"""Sums the JUnit files in a folder; prints each failure's name and the end of what it said, then "N passed, N failed".

Exits 1 if a test failed or none passed.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

# Lines of a failed test's output that are shown again here, where a long log ends.
SHOWN_LINES = 40


def outcome(case: ElementTree.Element) -> str:
    """One of passed, failed and skipped; pytest and GoogleTest write them differently."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return "skipped"
    return "passed"


def report(file: Path, case: ElementTree.Element) -> str:
    """The name of a failed test and the last lines of its message."""
    said = [part.text or part.get("message", "") for kind in ("failure", "error") for part in case.iter(kind)]
    lines = "\n".join(said).strip().splitlines()[-SHOWN_LINES:]
    name = f"{case.get('classname', '')}.{case.get('name', 'a test without a name')}"
    return "\n".join([f"FAILED {file.with_suffix('')}: {name}", *(f"    {line}" for line in lines)])


def main() -> int:
    """Runs on the folder that the command line names."""
    counts: Counter[str] = Counter()
    folder = Path(sys.argv[1])
    for path in sorted(folder.rglob("*.xml")):
        for case in ElementTree.parse(path).iter("testcase"):
            counts[outcome(case)] += 1
            if outcome(case) == "failed":
                print(report(path.relative_to(folder), case))
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
