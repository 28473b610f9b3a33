"""The committed stub matches the interface of the built extension."""

import subprocess
from pathlib import Path

STUB = Path(__file__).parents[2] / "python/headrace/_core.pyi"


def test_stub_is_current(tmp_path: Path):
    fresh = tmp_path / "_core.pyi"
    script = Path(__file__).parents[2] / "scripts" / "update_stub.sh"
    subprocess.run(["bash", script, fresh], check=True)
    assert fresh.read_text() == STUB.read_text(), "the extension has changed: run scripts/update_stub.sh and commit"
