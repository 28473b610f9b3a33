#!/usr/bin/env bash
# Writes python/headrace/_core.pyi from the built extension. A change to the Python surface then shows in review.
source "$(dirname "$0")/common.sh"

stub=${1:-python/headrace/_core.pyi}
.venv/bin/python -m nanobind.stubgen --quiet --exclude-values -m headrace._core -o "$stub"
# What headrace.display adds to classes is none of the extension's own; the generator would import it into the module.
sed -i '/^from headrace\.display import/,/^)$/d' "$stub"
# nanobind leaves out of what kind the paths are.
sed -i 's/os\.PathLike |/os.PathLike[str] |/g' "$stub"
# As typeshed writes that an object that can be changed has no hash.
sed -i 's/^    __hash__: None = \.\.\.$/    __hash__: None  # type: ignore[assignment]/' "$stub"
