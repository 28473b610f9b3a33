"""What set-up installs, and when a build starts over."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PURPOSES = ("run", "test", "lint", "docs", "wheel")
APART = {frozenset(("test", "docs")), frozenset(("lint", "docs"))}  # setup.sh does not install these together


def locked() -> dict[str, str]:
    """The locked version of each package; each has a hash."""
    found: dict[str, str] = {}
    where: dict[str, str] = {}
    for purpose in PURPOSES:
        text = (ROOT / "requirements" / f"{purpose}.lock").read_text(encoding="utf-8")
        for block in re.split(r"\n(?=\S)", text):
            if block.startswith("#"):
                continue
            name, _, rest = block.partition("==")
            version = rest.split()[0]
            if name in found:
                assert frozenset((where[name], purpose)) in APART, f"{name} is locked twice"
                assert found[name] == version, f"{name} is locked in two versions"
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", rest), f"{name} has no hash"
            found[name], where[name] = version, purpose
    return found


def test_every_requirement_is_locked():
    """If one is missing, run scripts/lock_requirements.py."""
    versions = locked()
    for purpose in PURPOSES:
        for line in (ROOT / "requirements" / f"{purpose}.txt").read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                name, version = re.sub(r"\[.*?\]", "", line).split("==")
                assert versions.get(name.lower().replace("_", "-")) == version, line


def test_a_changed_file_is_refused(tmp_path: Path):
    python = shutil.which("python3", path=ROOT / ".venv" / "bin")
    if python is None:
        pytest.skip("there is no .venv")
    package = tmp_path / "evil-1.0.tar.gz"
    package.write_bytes(b"not what was locked")
    (tmp_path / "lock").write_text(f"evil @ file://{package} --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    command = [python, "-m", "pip", "install", "--dry-run", "--no-index", "--require-hashes", "-r", tmp_path / "lock"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


def installed(path: str) -> str:
    command = ["bash", "-c", "source scripts/common.sh; installed"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_build_knows_what_is_installed(tmp_path: Path):
    """If MPI is installed between two builds, the second starts over."""
    compiler = tmp_path / "mpicxx"
    compiler.write_text("#!/bin/sh\necho an MPI 9.9\n", encoding="utf-8")
    compiler.chmod(0o755)
    path = os.environ["PATH"]
    before, after = installed(path), installed(f"{tmp_path}:{path}")
    assert before == installed(path)
    assert before != after
    assert "mpicxx an MPI 9.9" in after
