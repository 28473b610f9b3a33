"""The check of imports finds circles of every kind, and the package has none."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_imports.py"


def test_no_modules_import_each_other():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_circle_through_late_and_typed_imports_is_found(tmp_path: Path):
    (tmp_path / "headrace" / "sub").mkdir(parents=True)
    files = {
        "__init__.py": "",
        "sub/__init__.py": "",
        "sub/one.py": "from headrace.sub import two\n",
        "sub/two.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from headrace.three import Three\n",
        "three.py": "def late():\n    import headrace.sub.one\n",
    }
    for name, text in files.items():
        (tmp_path / "headrace" / name).write_text(text)
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "headrace.sub.one -> headrace.sub.two -> headrace.three -> headrace.sub.one" in done.stdout
