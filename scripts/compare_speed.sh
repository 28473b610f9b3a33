#!/usr/bin/env bash
# Usage: scripts/compare_speed.sh [BASE [OPTION...]]   (BASE: a commit; default: the branch point from main)
# Builds the working tree and a base commit without CUDA, each in its own folder, and compares the processor time of the
# same work in both with scripts/compare_speed.py, whose options follow BASE. The script only reports: slower code does
# not make it fail.
source "$(dirname "$0")/common.sh"

base=$(git rev-parse --verify --quiet "${1:-$(git merge-base HEAD main)}^{commit}") || die "'${1:-main}' is not a commit"
shift $(($# > 0 ? 1 : 0))
[[ -x .venv/bin/python ]] || die "there is no .venv: run scripts/setup.sh run"
python=$PWD/.venv/bin/python
work=$PWD/build/compare
tree=$work/base
mkdir -p "$work"

# build_tree FOLDER SITE: installs the package of a working tree into the folder SITE.
build_tree() {
  rm -rf "$2"
  (cd "$1" && HEADRACE_CUDA=OFF CCACHE_BASEDIR=$1 "$python" -m pip install . --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --target "$2" --config-settings=build-dir=build/compare-speed) >"$2.log" 2>&1 || {
    tail -n 40 "$2.log" >&2
    die "$1 could not be built; $2.log has the full output of the build"
  }
}

[[ -e $tree/.git ]] || git worktree add --quiet --force --detach "$tree" "$base"
git -C "$tree" checkout --quiet --detach "$base"
say "building the base, $(git log -1 --format='%h %s' "$base")"
build_tree "$tree" "$work/site-base"
say "building the working tree"
build_tree "$PWD" "$work/site-change"
git worktree remove --force "$tree"
"$python" scripts/compare_speed.py "$work/site-base" "$work/site-change" "$@"
