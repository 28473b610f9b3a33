"""Sums the JUnit files in a folder and prints "N passed, N failed". Exits 1 if a test failed or none passed."""

import sys
from pathlib import Path
from xml.etree import ElementTree


def count(folder: Path) -> tuple[int, int, int]:
    """Tests passed, failed and skipped, over every *.xml under the folder."""
    passed = failed = skipped = 0
    for path in sorted(folder.rglob("*.xml")):
        for case in ElementTree.parse(path).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
                failed += 1
            elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
                skipped += 1
            else:
                passed += 1
    return passed, failed, skipped


def main() -> int:
    """Runs on the folder that the command line names."""
    passed, failed, skipped = count(Path(sys.argv[1]))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
