#!/usr/bin/env bash
# Checks the links of every Markdown page, and builds the documentation in build/site. It needs neither a build of the
# package nor a network; warnings are errors.
source "$(dirname "$0")/common.sh"

.venv/bin/python scripts/check_docs.py
NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --clean --strict --quiet
pages=$(find build/site -name '*.html' | wc -l)
say "$pages pages; open build/site/index.html"
