#!/usr/bin/env bash
# Installs the library that scripts/test.sh built into a separate folder; then builds and runs the programs in examples/ and
# the examples of the README, the tutorials, docs/wire.md, docs/wire-security.md, docs/shm.md,
# docs/source-operators.md, docs/operator-libraries.md and docs/shipped-operators.md
# against that copy, as a user would. Also compiles the examples at the top of its public headers.
source "$(dirname "$0")/common.sh"

[[ -f build/test/build.ninja ]] || die "build/test does not exist: run scripts/test.sh first, which builds the library to install"
prefix=$PWD/build/installed
rm -rf "$prefix" build/examples
cmake --install build/test --prefix "$prefix" >build/install.log || die "cmake --install failed; see build/install.log"
.venv/bin/python scripts/header_examples.py "$prefix/include"
for mpi in ON OFF; do
  cmake -S tests/package -B "build/package-$mpi" --fresh -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DMPI="$mpi" --log-level=WARNING
  cmake --build "build/package-$mpi"
done
cmake -S examples -B build/examples -G Ninja -DCMAKE_PREFIX_PATH="$prefix" --log-level=WARNING
cmake --build build/examples
shopt -s nullglob
programs=(build/examples/example_*)
((${#programs[@]} > 0)) || die "no example was built"
for program in "${programs[@]}"; do
  say "$(basename "$program")"
  "$program"
done
.venv/bin/python scripts/doc_examples.py build/doc-examples "$prefix" README.md docs/tutorials/*.md docs/wire.md docs/wire-security.md docs/shm.md docs/source-operators.md docs/operator-libraries.md \
  docs/shipped-operators.md
