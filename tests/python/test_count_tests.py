"""The count that ends a test run: it must not call nothing, or a failure, a pass."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "count_tests.py"


def count(folder: Path, *suites: str) -> tuple[int, str]:
    for number, cases in enumerate(suites):
        (folder / f"{number}.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    result = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
    return result.returncode, result.stdout.strip()


def test_passes_are_summed(tmp_path: Path):
    assert count(tmp_path, "<testcase/><testcase status='run'/>", "<testcase/>") == (0, "3 passed, 0 failed")


def test_a_failure_of_either_kind_fails(tmp_path: Path):
    suite = "<testcase/><testcase><failure/></testcase><testcase><error/></testcase>"
    code, said = count(tmp_path, suite)
    assert (code, said.splitlines()[-1]) == (1, "1 passed, 2 failed")


def test_a_failure_is_named_with_the_end_of_what_it_said(tmp_path: Path):
    long = "".join(f"line {i}\n" for i in range(100))
    suite = f"<testcase name='slow' classname='Speed'><failure message=''>{long}</failure></testcase>"
    _, said = count(
        tmp_path,
        suite,
        "<testcase name='wrong' classname='t'><failure message='short'>assert 1 == 2</failure></testcase>",
    )
    lines = said.splitlines()
    assert lines[0] == "FAILED 0: Speed.slow"
    assert "    line 99" in lines
    assert "    line 50" not in lines
    assert lines[-3:] == ["FAILED 1: t.wrong", "    assert 1 == 2", "0 passed, 2 failed"]


def test_nothing_run_is_a_failure(tmp_path: Path):
    assert count(tmp_path) == (1, "0 passed, 0 failed")
    assert count(tmp_path, "<testcase><skipped/></testcase>") == (1, "0 passed, 0 failed, 1 skipped")
