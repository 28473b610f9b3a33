"""The content of the site matches the sources: pages of commands, environment variables, C++ comments."""

import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from programs import ROOT, load_program

NEW = "_".join(("HEADRACE", "NEW"))  # assembled here, because the check would find the full name in this file


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


HEADER = """
#pragma once
namespace headrace {
/// Kinds.
enum class Kind { one, two  ///< The second.
};
struct Bare {};
/// A queue.
class Queue {
 public:
  explicit Queue(int size);
  Queue(const Queue& other);
  Queue(Queue&&) noexcept;
  Queue& operator=(Queue&&) noexcept;
  Queue(const char* name) = delete;
  virtual ~Queue();
  /// Takes one.
  virtual int take() = 0;
  int size() const;
  bool operator==(const Queue& other) const;
  int limit = 0;
  int most = 0;  ///< The most.
 private:
  int hidden_;
};
/// A queue that waits.
class Waiting : public Queue {
 public:
  int take() override;
};
using Alias = Queue;
int free_function(int a);
inline constexpr int kFive = 5;
namespace detail {
int for_itself();
}
}
"""


@pytest.mark.skipif(shutil.which("doxygen") is None, reason="there is no doxygen")
def test_public_symbols_without_a_comment_are_found(tmp_path: Path):
    include = tmp_path / "include/headrace"
    (include / "base/detail").mkdir(parents=True)
    (tmp_path / "scripts/docsite").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/docsite/Doxyfile", tmp_path / "scripts/docsite")
    (include / "base/queue.hpp").write_text(HEADER, encoding="utf-8")
    (include / "base/detail/own.hpp").write_text("namespace headrace {\nint own();\n}\n", encoding="utf-8")
    check = load_program("scripts/docsite/undocumented.py")
    symbols = check.read_symbols(check.run_doxygen(tmp_path, tmp_path / "out"))
    assert sorted(problem.split(" ", 1)[1] for problem in check.problems(symbols)) == [
        "function Queue::Queue has no comment",
        "function Queue::size has no comment",
        "function free_function has no comment",
        "struct Bare has no comment",
        "typedef Alias has no comment",
        "value Kind::one has no comment",
        "variable Queue::limit has no comment",
        "variable kFive has no comment",
    ]
    assert "include/headrace/base/queue.hpp:19: function Queue::size has no comment" in check.problems(symbols)
    with pytest.raises(RuntimeError, match=r"queue\.hpp:7: struct Bare has no comment"):
        check.check(symbols)


def test_what_is_commented_is_no_problem():
    check = load_program("scripts/docsite/undocumented.py")
    member = ElementTree.fromstring(
        "<memberdef><briefdescription><para>Takes one.</para></briefdescription><detaileddescription/></memberdef>"
    )
    bare = ElementTree.fromstring(
        "<memberdef><briefdescription/><detaileddescription> </detaileddescription></memberdef>"
    )
    symbol = check.Symbol(member, "take", "headrace/queue.hpp", 5, "function", "take")
    assert check.problems({"headrace/queue.hpp": [symbol]}) == []
    symbol.element = bare
    assert check.problems({"headrace/queue.hpp": [symbol]}) == [
        "include/headrace/queue.hpp:5: function take has no comment"
    ]
    assert check.problems({"headrace/detail/queue.hpp": [symbol]}) == []


def test_python_names_without_a_docstring_are_found(tmp_path: Path):
    griffe = pytest.importorskip("griffe")
    (tmp_path / "shelf.py").write_text(
        'class Box:\n    """A box."""\n\n    size = 1\n\n    def open(self): ...\n\n    def _hidden(self): ...\n',
        encoding="utf-8",
    )
    module = griffe.load("shelf", search_paths=[str(tmp_path)])
    found = list(load_program("scripts/docsite/python_reference.py").undocumented(module["Box"]))
    assert found == [f"{tmp_path}/shelf.py:6: shelf.Box.open has no docstring"]
