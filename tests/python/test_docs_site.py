"""What the site is made of agrees with the sources: pages of commands, environment variables, C++ comments."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from programs import ROOT, load_program

NEW = "_".join(("HEADRACE", "NEW"))  # not written out, as the check would find it here


def test_pages_of_commands_are_current(tmp_path: Path):
    subprocess.run([sys.executable, ROOT / "scripts/commands_pages.py", tmp_path], check=True)
    fresh = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    there = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs/commands").glob("*.md")}
    assert fresh == there, "a command has changed: run scripts/commands_pages.py and commit"
    assert "| `--rate RATE` | Queries per second, such as 20000, 20K or 1.5M. |" in fresh["headrace-load.md"]
    assert "| `light` |" in fresh["headrace-load.md"]  # the default of --operator


def test_every_environment_variable_is_documented():
    assert load_program("scripts/docsite/environment.py").problems(ROOT) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("src/a.cpp", f'const char* on = std::getenv("{NEW}");'),
        ("python/a.py", f'on = os.environ.get("{NEW}", "0")'),
        ("python/b.py", f'on = os.environ["{NEW}"]'),
        ("python/c.py", f'_NAME = "{NEW}"'),
        ("scripts/a.sh", f"echo ${{{NEW}:-1}}"),
    ],
)
def test_a_variable_without_documentation_is_found(tmp_path: Path, file: str, text: str):
    for path, content in {file: text, "docs/environment.md": "| `HEADRACE_OLD` | |\n", "pyproject.toml": ""}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    assert load_program("scripts/docsite/environment.py").problems(tmp_path) == [
        f"docs/environment.md does not name {NEW}, which {file} reads",
        "docs/environment.md names HEADRACE_OLD, which nothing reads",
    ]


def test_a_comment_of_doxygen_becomes_markdown():
    text = load_program("scripts/docsite/doxygen_text.py")
    comment = ElementTree.fromstring(
        "<detaileddescription><para>Waits for <computeroutput>all</computeroutput> of"
        ' <ref refid="r" kindref="member">Stream::wait</ref>, a*b_c&lt;d&gt;.</para>'
        "<para><itemizedlist><listitem><para>one</para></listitem><listitem><para>two</para></listitem></itemizedlist>"
        '<simplesect kind="return"><para>a status</para></simplesect>'
        '<programlisting><codeline><highlight class="normal">a<sp/>=<sp/>1;</highlight></codeline></programlisting>'
        "</para></detaileddescription>"
    )
    assert text.markdown(comment, {"r": "stream.md#wait"}.get) == (
        "Waits for `all` of [Stream::wait](stream.md#wait), a\\*b\\_c&lt;d&gt;.\n\n"
        "-   one\n-   two\n\n**Returns:** a status\n\n```cpp\na = 1;\n```"
    )


def test_what_has_no_text_is_an_error():
    text = load_program("scripts/docsite/doxygen_text.py")
    with pytest.raises(ValueError, match="formula"):
        text.markdown(ElementTree.fromstring("<para><formula/></para>"), {}.get)
