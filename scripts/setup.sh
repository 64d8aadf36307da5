#!/usr/bin/env bash
# Sets up .venv and what rendering needs. Called by make; may be run as often as you like.
#   scripts/setup.sh EXTRAS       e.g. dev or dev,bench
#   scripts/setup.sh --browser    Chromium, in which the report is tested
#   scripts/setup.sh --node       Node, in which the JavaScript agent is tested
#   scripts/setup.sh --compiler   CMake and a C++ compiler, for ROS 2's messages
set -euo pipefail
cd "$(dirname "$0")/.."
extras=${1:-dev}
python=${PYTHON:-python3}

# Installs Debian packages when it can, otherwise says the command.
need() {
    if ! command -v apt-get >/dev/null; then
        echo "Proctor needs the equivalent of these Debian packages: $*" >&2
        return 1
    fi
    local sudo=()
    if [ "$(id -u)" != 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            echo "Please run: sudo apt-get install -y $*" >&2
            return 1
        fi
        sudo=(sudo)
    fi
    echo "Installing $*"
    "${sudo[@]}" apt-get update -qq
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

if [ "$extras" = --browser ]; then
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null; then exit 0; fi
    done
    need chromium || true  # without it the tests of the report say so themselves
    exit 0
fi
if [ "$extras" = --node ]; then
    if command -v node >/dev/null && command -v npm >/dev/null; then exit 0; fi
    need nodejs npm || true  # without them the tests of the agent say so themselves
    exit 0
fi

if [ "$extras" = --compiler ]; then
    if command -v cmake >/dev/null && command -v g++ >/dev/null && command -v make >/dev/null; then exit 0; fi
    need cmake g++ make
    exit 0
fi

# Asks the loader itself: ldconfig is not in every user's PATH.
has_library() { "$python" -c "import ctypes; ctypes.CDLL('$1')" 2>/dev/null; }

command -v "$python" >/dev/null || need python3 python3-venv
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "Proctor needs Python 3.11 or newer, found $("$python" --version). Set PYTHON=/path/to/python3.11." >&2
    exit 2
fi
"$python" -c 'import ensurepip, venv' 2>/dev/null || need python3-venv
if ! has_library libEGL.so.1 && ! has_library libOSMesa.so.8; then
    need libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri
fi

# A venv that an interrupt left half-made has no pip.
.venv/bin/python -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear .venv
echo "Installing Python packages into .venv"
# Another distribution of the same package: Proctor's own under its former name, or the other project on PyPI.
# Removing it later would remove the command, too.
.venv/bin/python -m pip uninstall --quiet --quiet --yes proctor
rm -rf src/proctor.egg-info
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$extras]"
