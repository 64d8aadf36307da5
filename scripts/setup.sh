#!/usr/bin/env bash
# Sets up .venv and the Debian packages that Proctor needs. Called by make; may be run as often as you like.
#   scripts/setup.sh EXTRAS             .venv with these extras, e.g. dev or dev,bench, and what rendering needs
#   scripts/setup.sh --packages TARGET  all Debian packages that `make TARGET` needs: ros, test or slow
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
missing=()

has_command() {
    local name
    for name in "$@"; do command -v "$name" >/dev/null || return 1; done
}

# Whether the Python is Debian's own, so that apt can complete it: pythonX.Y-venv, pythonX.Y-dev.
is_debian_python() { "$python" -c 'import sys; sys.exit(sys.base_prefix != "/usr")'; }
python_package() { "$python" -c 'import sys; print("python{}.{}-{}".format(*sys.version_info[:2], sys.argv[1]))' "$1"; }

need_python() {
    if ! has_command "$python"; then
        missing+=(python3 python3-venv)
        return
    fi
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "Proctor needs Python 3.11 or newer, found $("$python" --version). Set PYTHON=/path/to/python3.11." >&2
        exit 2
    fi
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then return; fi
    if ! is_debian_python; then
        echo "$("$python" -c 'import sys; print(sys.executable)') lacks the module venv or ensurepip." >&2
        exit 2
    fi
    missing+=("$(python_package venv)")
}

# The list is said once, in the module that renders; it needs no other package.
need_rendering() {
    has_command "$python" || return 0
    local packages
    packages=$(PYTHONPATH=src "$python" -c 'from proctor.worlds.mujoco.render.gl import missing_packages; print(*missing_packages())')
    # shellcheck disable=SC2206  # one word per package
    missing+=($packages)
}

# ROS 2's messages are compiled against the headers of the Python that makes the venv.
need_compiler() {
    has_command cmake || missing+=(cmake)
    has_command g++ || missing+=(g++)
    has_command make || missing+=(make)
    local maker=$python
    if [ -x .venv/bin/python ]; then maker=.venv/bin/python; fi
    has_command "$maker" || { missing+=(python3-dev) && return; }
    local header
    header=$("$maker" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h
    if [ -e "$header" ]; then return; fi
    if ! python=$maker is_debian_python; then
        echo "The headers of Python are missing: $header does not exist. Install them, or set PYTHON." >&2
        exit 2
    fi
    missing+=("$(python=$maker python_package dev)")
}

need_browser() {
    has_command chromium || has_command chromium-browser || has_command google-chrome || missing+=(chromium)
}

# For a cluster of this one machine, with a network of its own.
need_slurm() {
    has_command sbatch || missing+=(slurm-wlm)
    has_command munge || missing+=(munge)
    has_command ip || missing+=(iproute2)
}

# Runs containers and makes their base. apt would choose crun, which fails where cgroups are in hybrid mode.
need_podman() {
    has_command podman || missing+=(podman)
    has_command runc || missing+=(runc)
    has_command debootstrap || missing+=(debootstrap)
}

need_node() { has_command node npm || missing+=(nodejs npm); }

# Installs what is missing, all at once; where it may not, says the command.
install_missing() {
    if [ ${#missing[@]} = 0 ]; then return; fi
    if ! has_command apt-get; then
        echo "Proctor needs the equivalent of these Debian packages: ${missing[*]}" >&2
        exit 1
    fi
    local sudo=()
    if [ "$(id -u)" != 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            echo "Please run: sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
            exit 1
        fi
        sudo=(sudo)
    fi
    echo "Installing ${missing[*]}"
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

need_python
need_rendering
if [ "${1:-}" = --packages ]; then
    case ${2:-} in
    ros) need_compiler ;;
    test) need_compiler && need_browser && need_node ;;
    slow) need_compiler && need_browser && need_node && need_slurm && need_podman ;;
    *) echo "expected ros, test or slow after --packages, found '${2:-}'" >&2 && exit 2 ;;
    esac
    install_missing
    exit 0
fi
install_missing

# A venv that an interrupt left half-made has no pip.
.venv/bin/python -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear .venv
echo "Installing Python packages into .venv"
# Another distribution of the same package: Proctor's own under its former name, or the other project on PyPI.
# Removing it later would remove the command, too.
.venv/bin/python -m pip uninstall --quiet --quiet --yes proctor
rm -rf src/proctor.egg-info
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[${1:-dev}]"
