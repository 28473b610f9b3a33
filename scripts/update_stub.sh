#!/usr/bin/env bash
# Writes python/headrace/_core.pyi from the built extension. A change to the Python surface then shows in review.
source "$(dirname "$0")/common.sh"

stub=${1:-python/headrace/_core.pyi}
.venv/bin/python -m nanobind.stubgen --quiet --exclude-values -m headrace._core -o "$stub"
# The additions of headrace.display to classes are not part of the extension; the generator would import that module.
sed -i '/^from headrace\.display import/,/^)$/d' "$stub"
# nanobind omits the type parameter of paths.
sed -i 's/os\.PathLike |/os.PathLike[str] |/g' "$stub"
# The form in which typeshed marks a mutable object as unhashable.
sed -i 's/^    __hash__: None = \.\.\.$/    __hash__: None  # type: ignore[assignment]/' "$stub"
