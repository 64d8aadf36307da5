#!/usr/bin/env bash
# Builds the images of Containerfile, proctor-evaluator and proctor-agent, with podman or docker. Called by `make image`.
#   scripts/image.sh [TARGET]...   evaluator and agent if none is given
# Variables:
#   BASE            the image to start from (debian:bookworm-slim); Debian or Ubuntu with Python 3.11 or newer
#   EXTRAS          the extras of the evaluator (sim,chat)
#   ENGINE          podman or docker
#   DEBIAN_MIRROR   where debootstrap gets its packages
# If the default base cannot be pulled, root makes the image proctor-base with debootstrap and starts from that.
# apt and pip in the build use the configuration of this machine. It does not become part of the images, except that
# proctor-base keeps the address of Debian's packages that it was made from.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/package_sources.sh
source scripts/package_sources.sh
default_base=debian:bookworm-slim
base=${BASE:-$default_base}
extras=${EXTRAS:-sim,chat}
python=${PYTHON:-python3}

has_command() { command -v "$1" >/dev/null; }

fail() {
    printf '%s\n' "$@" >&2
    exit 2
}

# The client of docker alone cannot build.
find_engine() {
    if [ -n "${ENGINE:-}" ]; then
        has_command "$ENGINE" || fail "ENGINE=$ENGINE: there is no such command"
        engine=$ENGINE
    elif has_command podman; then
        engine=podman
    elif has_command docker && docker info >/dev/null 2>&1; then
        engine=docker
    else
        fail "make image needs podman or docker, and found neither (or a docker whose daemon does not answer)." \
            "Please run: sudo apt-get update && sudo apt-get install -y --no-install-recommends podman uidmap slirp4netns"
    fi
    case $("$engine" --version) in
    podman*) is_podman=1 ;;
    *) is_podman= ;;
    esac
}

has_image() { "$engine" image inspect "$1" >/dev/null 2>&1; }

make_base() {
    local root=$work/root
    echo "Making the image proctor-base with debootstrap (Debian bookworm, a minute or two)"
    # shellcheck disable=SC2046  # no mirror is no argument
    debootstrap --variant=minbase bookworm "$root" $(mirror) >"$work/debootstrap.log" 2>&1 ||
        { tail "$work/debootstrap.log" >&2 && fail "debootstrap failed; see the lines above"; }
    # Not in the image: package lists, archives, logs, and what nobody reads in a container.
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/log/* \
        "$root"/usr/share/{doc,man,info,locale}/*
    tar --one-file-system --exclude './dev/*' --exclude './proc/*' --exclude './sys/*' -C "$root" -c . |
        "$engine" import - proctor-base:latest >/dev/null
    rm -rf --one-file-system "$root"
}

choose_base() {
    if has_image "$base"; then return; fi
    echo "Pulling $base"
    if "$engine" pull --quiet "$base" >"$work/pull.log" 2>&1; then return; fi
    if [ "$base" != "$default_base" ]; then
        tail -n 3 "$work/pull.log" >&2
        fail "BASE=$base: there is no such image here, and it cannot be pulled"
    fi
    echo "It cannot be pulled: $(tail -n 1 "$work/pull.log")"
    base=proctor-base
    if has_image "$base"; then
        echo "Using the image proctor-base that an earlier build made"
    elif [ "$(id -u)" != 0 ] || ! has_command debootstrap; then
        fail "Without a base image, debootstrap can make one: sudo apt-get install -y debootstrap && sudo make image" \
            "Or load an image and name it: make image BASE=NAME"
    else
        make_base
    fi
}

# One pip.conf with all that pip's files and variables on this machine say about where packages come from, and the
# certificates that they name.
write_pip_conf() {
    touch "$work/pip.conf" "$work/ca.crt"
    has_command "$python" || return 0
    pip_settings | "$python" -c '
import ast, shutil, sys
from pathlib import Path
folder = Path(sys.argv[1])
wanted = "index-url extra-index-url find-links no-index trusted-host proxy cert timeout default-timeout retries".split()
lines = [line.rstrip("\n").split("=", 1) for line in sys.stdin]
lines.sort(key=lambda line: line[0].startswith(":env:"))  # variables override files
found = {}
for name, value in lines:
    key = name.rpartition(".")[2]
    if key in wanted:
        found[key.removeprefix("default-")] = " ".join(ast.literal_eval(value).split())
if "cert" in found:
    shutil.copy(Path(found["cert"]).expanduser(), folder / "ca.crt")
    found["cert"] = "/run/secrets/ca.crt"
settings = [f"{key} = {value}" for key, value in found.items()]
(folder / "pip.conf").write_text("\n".join(["[global]", *settings, ""]))
' "$work"
}

collect_settings() {
    write_pip_conf
    apt_settings >"$work/apt.conf"
    local id folder name
    for id in apt.conf pip.conf ca.crt; do settings+=(--secret "id=$id,src=$work/$id"); done
    for folder in $(pip_folders); do
        if [ -n "$is_podman" ]; then
            folders+=(--volume "$folder:$folder:ro")
        else
            echo "docker build cannot read $folder, which pip's configuration names; podman can" >&2
        fi
    done
    # Podman takes these by itself. Both know them, and store them nowhere.
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        if [ -n "${!name:-}" ] && [ -z "$is_podman" ]; then settings+=(--build-arg "$name"); fi
    done
    # Else each layer has the time of its build.
    if [ -n "$is_podman" ]; then
        settings+=(--timestamp "$(git log -1 --format=%ct 2>/dev/null || echo 0)")
    fi
}

# Shows what a build says only if it fails.
run_build() { # TARGET OPTION...
    local target=$1
    shift
    "$engine" build --network host --build-arg "BASE=$base" --build-arg "EXTRAS=$extras" "${settings[@]}" "$@" \
        --target "$target" --file Containerfile . >"$work/build.log" 2>&1 ||
        { tail -n 20 "$work/build.log" >&2 && fail "$target: the build failed; its last lines are above"; }
}

build() {
    local target=$1 version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
    echo "Building proctor-$target from $base"
    # A folder that is mounted leaves an empty one in the layer: the layers that stay are made before, without.
    if [ ${#folders[@]} != 0 ]; then
        case $target in
        evaluator) run_build rendering ;;
        agent) run_build python ;;
        esac
    fi
    run_build "$target" "${folders[@]}" --tag "proctor-$target:$version" --tag "proctor-$target:latest"
    printf 'proctor-%s:%s  %s MB\n' "$target" "$version" \
        "$("$engine" image inspect --format '{{.Size}}' "proctor-$target:$version" | awk '{ printf "%.0f", $1 / 1e6 }')"
}

if [ $# = 0 ]; then set -- evaluator agent; fi
for target in "$@"; do
    case $target in
    evaluator | agent) ;;
    *) fail "expected evaluator or agent, found '$target'" ;;
    esac
done
find_engine
work=$(mktemp -d "${TMPDIR:-/var/tmp}/proctor-image-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
choose_base
settings=() folders=()
collect_settings
for target in "$@"; do build "$target"; done
