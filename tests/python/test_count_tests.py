"""The count that ends a test run must not report an empty run, or a failure, as a pass."""

import subprocess
import sys
from pathlib import Path

import pytest

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


FAILED = "<testcase classname='t' name='one'><failure>assert 1 == 2</failure></testcase>"
PASSED = "<testcase classname='t' name='one'/>"


def count_twice(folder: Path, first: str, again: str) -> tuple[int, list[str]]:
    (folder / "python.xml").write_text(f"<testsuites><testsuite>{first}</testsuite></testsuites>")
    (folder / "python-again.xml").write_text(f"<testsuites><testsuite>{again}</testsuite></testsuites>")
    code, printed = count(folder)
    return code, printed.splitlines()


def test_a_pass_in_the_second_run_is_reported_with_the_first_failure(tmp_path: Path):
    code, lines = count_twice(tmp_path, FAILED + "<testcase/>", PASSED)
    assert code == 0
    assert lines == [
        "PASSED ONLY WHEN RUN AGAIN python: t.one",
        "    assert 1 == 2",
        "2 passed, 0 failed, 1 of the passed only when run again",
    ]


def test_a_second_failure_is_a_failure_and_counted_once(tmp_path: Path):
    code, lines = count_twice(tmp_path, FAILED, FAILED)
    assert (code, lines[0], lines[-1]) == (1, "FAILED python: t.one", "0 passed, 1 failed")


def test_a_second_run_of_other_tests_pardons_nothing(tmp_path: Path):
    code, lines = count_twice(tmp_path, FAILED, PASSED.replace("one", "two"))
    assert (code, lines[-1]) == (1, "0 passed, 1 failed")
    code, lines = count_twice(tmp_path, FAILED, "<testcase classname='t' name='one'><skipped/></testcase>")
    assert (code, lines[-1]) == (1, "0 passed, 1 failed")


@pytest.mark.parametrize(
    "crash",
    [
        "worker 'gw0' crashed while running 'tests/python/test_x.py::one'",
        "assert result.returncode == 0 where -11 = CompletedProcess(returncode=-11).returncode",
        "SUMMARY: AddressSanitizer: heap-use-after-free",
    ],
)
def test_a_crash_is_a_failure_whatever_the_second_run_says(tmp_path: Path, crash: str):
    code, lines = count_twice(tmp_path, FAILED.replace("assert 1 == 2", crash), PASSED)
    assert (code, lines[-1]) == (1, "0 passed, 1 failed")
