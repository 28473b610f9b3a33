"""The runner of the pages' examples runs marked blocks and complete tutorials, and fails when one of them fails."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "doc_examples.py"
CPP = "<!-- ci: run -->\n```cpp\nint main() { return 0; }\n```\n"


def run(tmp_path: Path, readme: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "README.md").write_text(readme, encoding="utf-8")
    command = [sys.executable, SCRIPT, tmp_path / "work", tmp_path / "nowhere", tmp_path / "README.md"]
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


def run_tutorial(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "README.md").write_text("", encoding="utf-8")
    (tmp_path / "first.md").write_text(text, encoding="utf-8")
    command = [sys.executable, SCRIPT, tmp_path / "work", tmp_path / "nowhere", tmp_path / "README.md"]
    return subprocess.run([*command, tmp_path / "first.md"], capture_output=True, text=True, check=False)


STEPS = """
```toml title="a.toml"
x = 1
```

```sh
cp a.toml b.toml
```

```python
import os
print(open("b.toml").read().strip(), os.environ["HEADRACE_DEVICES"])
```

<!-- ci: output -->
```text
x = 1 cpu
```
"""


def test_blocks_of_a_tutorial_share_a_folder_on_the_cpu(tmp_path: Path):
    result = run_tutorial(tmp_path, STEPS)
    assert "first.md" not in result.stderr
    assert "2 passed, 1 failed" in result.stdout, "the README, which has no example, is the one that fails"


def test_another_output_than_the_page_says_fails(tmp_path: Path):
    result = run_tutorial(tmp_path, STEPS.replace("x = 1 cpu", "x = 2 cpu"))
    assert "it prints\nx = 1 cpu\nbut the page says\nx = 2 cpu" in result.stderr
    assert "2 passed, 2 failed" in result.stdout


def test_a_tutorial_without_examples_fails(tmp_path: Path):
    result = run_tutorial(tmp_path, "# First\n")
    assert "no example" in result.stderr
    assert "0 passed, 2 failed" in result.stdout


def test_a_failing_block_ends_its_tutorial(tmp_path: Path):
    result = run_tutorial(tmp_path, "```sh\nfalse\n```\n\n```sh\ntouch later\n```\n")
    assert "first.md example 1 (sh) failed" in result.stderr
    assert not (tmp_path / "work" / "first" / "later").exists()
