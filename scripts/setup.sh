#!/usr/bin/env bash
# Usage: scripts/setup.sh run|test|lint|sanitize|docs|wheel
# Installs missing requirements of that target: system packages (Debian 12, Ubuntu 24.04) and Python packages in .venv,
# in the versions and with the hashes of requirements/*.lock. If nothing is missing, it uses no network and takes no
# time.
# HEADRACE_SKIP_APT=1 leaves the system packages to you.
source "$(dirname "$0")/common.sh"

purpose=${1:-run}
packages=(g++ cmake ninja-build ccache pkg-config python3 python3-venv python3-dev libhwloc-dev libfmt-dev libxxhash-dev libicu-dev libstemmer-dev libboost-dev nlohmann-json3-dev libnghttp2-dev libssl-dev libtbb-dev libxdp-dev libbpf-dev zlib1g-dev libzstd-dev)
locks=(run)
case $purpose in
  run) packages+=(wordnet-base) ;;
  test)
    packages+=(wordnet-base libgtest-dev libgmock-dev libopenmpi-dev openmpi-bin iproute2 iperf3 curl openssl netcat-openbsd)
    # A browser for tests of pages. Ubuntu has it only as a snap, and the tests are skipped there.
    ! grep -qs '^ID=debian$' /etc/os-release || packages+=(chromium-headless-shell)
    locks+=(test)
    ;;
  lint)
    packages+=(libgtest-dev libgmock-dev libopenmpi-dev shellcheck)
    locks+=(test lint)
    ;;
  sanitize) packages+=(libgtest-dev libgmock-dev libopenmpi-dev openmpi-bin clang libclang-rt-dev) ;;
  docs)
    packages=(doxygen python3 python3-venv python3-dev)
    locks+=(docs)
    ;;
  wheel) locks+=(wheel) ;;
  *) die "setup.sh does not know '$purpose'; it knows run, test, lint, sanitize, docs and wheel" ;;
esac

missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null ||
    die "this system is not Debian or Ubuntu: install the counterparts of '${packages[*]}' and set HEADRACE_SKIP_APT=1"
  local missing as_root=()
  mapfile -t missing < <(missing_packages "${packages[@]}")
  ((${#missing[@]} > 0)) || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "packages are missing, and installing them needs root or sudo: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  "${apt[@]}" update || say "apt-get update failed; trying with the existing package lists"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >build/apt.log 2>&1 || {
    tail -n 20 build/apt.log >&2
    die "apt-get could not install: ${missing[*]}"
  }
}

# Prints one line that says why this Python is unusable, or nothing if it is usable.
python_lack() {
  "$1" - 2>&1 <<'PYTHON' | tail -n 1 || true
import pathlib, sys, sysconfig
if sys.version_info < (3, 11):
    sys.exit("is Python %d.%d, and Headrace needs 3.11 or later" % sys.version_info[:2])
try:
    import ensurepip, venv
except ImportError as error:
    sys.exit("cannot make virtual environments (%s)" % error)
if not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
    sys.exit("has no headers (Python.h)")
PYTHON
}

pick_python() {
  local python lack lacks=()
  for python in "$(command -v python3 || true)" /usr/bin/python3; do
    [[ -x $python ]] || continue
    lack=$(python_lack "$python")
    if [[ -z $lack ]]; then
      echo "$python"
      return
    fi
    lacks+=("$python $lack;")
  done
  die "no usable Python: ${lacks[*]:-there is no python3}"
}

install_python_packages() {
  local python stamp wanted
  if ! .venv/bin/python -c '' 2>/dev/null; then
    python=$(pick_python)
    say "making .venv with $python"
    rm -rf .venv
    "$python" -m venv .venv
  fi
  stamp=.venv/.headrace-$purpose
  local files=("${locks[@]/#/requirements/}")
  files=("${files[@]/%/.lock}")
  wanted=$(cat "${files[@]}" | sha256sum)
  [[ $(cat "$stamp" 2>/dev/null) != "$wanted" ]] || return 0
  say "installing Python packages: ${files[*]}"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes "${files[@]/#/--requirement=}"
  echo "$wanted" >"$stamp"
}

[[ ${HEADRACE_SKIP_APT:-0} == 1 ]] || install_packages
install_python_packages
