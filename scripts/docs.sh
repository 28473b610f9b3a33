#!/usr/bin/env bash
# Checks the links of every Markdown page, and builds the documentation in build/site. It needs no build of the
# package and no network. Warnings are errors, and so are public symbols without a comment or docstring.
source "$(dirname "$0")/common.sh"

.venv/bin/python scripts/check_docs.py
# --quiet is left out because it turns warnings off before --strict counts them.
NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --clean --strict >build/docs.log 2>&1 || {
  grep -v '^INFO' build/docs.log >&2
  die "the site was not built; build/docs.log has the full output"
}
pages=$(find build/site -name '*.html' | wc -l)
say "$pages pages; open build/site/index.html"
