"""The runner of the README's examples: it runs what is marked and fails when that fails."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "readme_examples.py"
CPP = "<!-- ci: run -->\n```cpp\nint main() { return 0; }\n```\n"


def run(tmp_path: Path, readme: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "README.md").write_text(readme, encoding="utf-8")
    command = [sys.executable, SCRIPT, tmp_path / "README.md", tmp_path / "work", tmp_path / "nowhere"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_both_languages_must_be_there(tmp_path: Path):
    result = run(tmp_path, "<!-- ci: run -->\n```python\nprint(1)\n```\n")
    assert result.returncode == 1
    assert "no runnable example in cpp" in result.stderr


def test_unmarked_blocks_are_not_run(tmp_path: Path):
    result = run(tmp_path, "```python\nprint(1)\n```\n" + CPP)
    assert result.returncode == 1
    assert "no runnable example in python" in result.stderr


def test_a_failing_example_fails(tmp_path: Path):
    result = run(tmp_path, CPP + "\n<!-- ci: run -->\n```python\nraise SystemExit(3)\n```\n")
    assert result.returncode == 1
    assert "README example 2 failed" in result.stderr
    assert "0 passed, 2 failed" in result.stdout, "there is no installed library for the first one"
