"""Checks that every relative link and #anchor in the project's Markdown files has a target."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.*?)\s*$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a Markdown page, as code hosts derive them from its headings."""
    headings = HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    """Describes each broken link of the page."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{page}: {link}: there is no {target}"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{page}: {link}: {target} has no heading '{anchor}'"


def main() -> int:
    """Checks the pages known to git."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        check=True,
        capture_output=True,
        text=True,
    )
    pages = [page for page in map(Path, listed.stdout.splitlines()) if page.exists()]
    broken = [problem for page in pages for problem in broken_links(page)]
    print("\n".join(broken) if broken else f"{len(pages)} pages, and every link has a target")
    return 1 if broken or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
