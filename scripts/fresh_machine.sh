#!/usr/bin/env bash
# Runs the two commands of the README on fresh Debian machines: minimal roots that debootstrap makes, with python3,
# python3-venv, git, make and ca-certificates. Fails if a command fails. Called by `make slow`; needs root.
#   scripts/fresh_machine.sh [-c COMMAND]... [RELEASE]...
#     RELEASE      Debian's name of it; bookworm (12) and trixie (13) if none is given
#     -c COMMAND   run this instead of the README's commands; may be given several times
# The clone is of the last commit, in root's home. A user who may not install packages comes first: each missing one must
# be named at once, and with these, and no others, `make run` and `make ros` must work for that user.
# apt and pip in the roots use the configuration of this machine. FRESH_DIR is where the roots are made (/var/tmp).
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
packages=python3,python3-venv,git,make,ca-certificates

if [ "$(id -u)" != 0 ]; then
    echo "scripts/fresh_machine.sh needs root, for debootstrap and chroot: sudo scripts/fresh_machine.sh" >&2
    exit 2
fi
if ! command -v debootstrap >/dev/null && command -v apt-get >/dev/null; then
    echo "Installing debootstrap"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
fi
command -v debootstrap >/dev/null || { echo "scripts/fresh_machine.sh needs the program debootstrap" >&2 && exit 2; }
# In namespaces of their own, mounts and processes end with this script.
if [ -z "${FRESH_NAMESPACE:-}" ]; then
    export FRESH_NAMESPACE=1
    exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc "$0" "$@"
fi

commands=()
while getopts c: option; do
    case $option in
    c) commands+=("$OPTARG") ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ ${#commands[@]} = 0 ]; then
    mapfile -t commands < <(sed -n '/^## Two commands/,/^## /s/^\(make [a-z]*\) .*/\1/p' README.md)
    [ ${#commands[@]} = 2 ] || { echo "README.md: expected two commands, found ${#commands[@]}" >&2 && exit 1; }
fi
if [ $# = 0 ]; then set -- bookworm trixie; fi

work=$(mktemp -d "${FRESH_DIR:-/var/tmp}/fresh-machine-XXXXXX")
# Some mounts are folders of this machine: nothing is removed while one is left.
remove() {
    { grep -o " $1[^ ]* " /proc/self/mountinfo || true; } | sort -r | xargs -r -n 1 umount --lazy
    if grep -q " $1" /proc/self/mountinfo; then
        echo "$1 is left: something is still mounted in it" >&2
        return 1
    fi
    rm -rf --one-file-system "$1"
}
trap 'remove "$work"' EXIT
# The first process of a namespace ignores signals that it does not handle.
trap 'exit 130' INT
trap 'exit 143' TERM

# shellcheck source=scripts/package_sources.sh
source scripts/package_sources.sh

copy() { # a file of this machine to the same place in the root
    if [ -e "$1" ]; then
        mkdir -p "$2$(dirname "$1")"
        cp -L "$1" "$2$1"
    fi
}

make_root() {
    local release=$1 root=$2
    echo "Making a minimal Debian $release"
    # shellcheck disable=SC2046  # no mirror is no argument
    debootstrap --variant=minbase --include="$packages" "$release" "$root" $(mirror) >"$work/debootstrap.log" 2>&1 ||
        { tail "$work/debootstrap.log" >&2 && return 1; }
    apt_settings >"$root/etc/apt/apt.conf.d/90host"
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt \
        /root/.config/pip/pip.conf /root/.pip/pip.conf; do
        copy "$file" "$root"
    done
    useradd --root "$root" --create-home guest
    for home in /root /home/guest; do
        git clone --quiet --no-local "$repository" "$root$home/proctor"
    done
    if [ -e "$root/root/.config" ]; then cp -r "$root/root/.config" "$root/home/guest"; fi
    chroot "$root" chown -R guest: /home/guest
}

mount_root() {
    local root=$1
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    # ROS 2 uses the network, which is this machine's: two tests must not take the same domain.
    local locks=/tmp/proctor-ros-domains-0
    mkdir -p -m 700 "$locks" "$root$locks"
    mount --bind "$locks" "$root$locks"
    pip_folders | while read -r folder; do
        mkdir -p "$root$folder"
        mount --bind "$folder" "$root$folder"
        mount -o remount,bind,ro "$root$folder"
    done
}

within() { # ROOT USER COMMAND: as that user, in the clone in the user's home
    local root=$1 user=$2 command=$3 home=/root kept=()
    if [ "$user" != root ]; then home=/home/$user; fi
    mapfile -t kept < <(env | grep -E '^(PIP_[A-Z_]*|https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS)=' || true)
    chroot --userspec="$user:$user" "$root" env -i HOME="$home" USER="$user" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${kept[@]}" \
        bash -c "cd ~/proctor && $command" </dev/null
}

failed=()
run() { # RELEASE ROOT USER COMMAND
    echo "=== Debian $1, as $3: $4"
    local begin=$SECONDS
    if within "$2" "$3" "$4"; then
        echo "=== Debian $1, as $3: $4: done in $((SECONDS - begin)) s"
    else
        echo "=== Debian $1, as $3: $4: FAILED after $((SECONDS - begin)) s" >&2
        failed+=("Debian $1, as $3: $4")
        return 1
    fi
}

# Without the right to install, each command says what is missing: all of it, in one line that can be pasted.
try_as_guest() {
    local release=$1 root=$2 command told
    for command in "make run" "make ros" "make test"; do
        echo "=== Debian $release, as guest: $command"
        if within "$root" guest "$command" >"$work/out" 2>&1 ||
            [ "$(grep -c '^Please run: sudo apt-get update && sudo apt-get install -y --no-install-recommends ' "$work/out")" != 1 ]; then
            cat "$work/out" >&2
            echo "=== Debian $release, as guest: $command: did not end with the one line that names what is missing" >&2
            failed+=("Debian $release, as guest: $command")
            return
        fi
        told=$(grep '^Please run: ' "$work/out")
        echo "$told"
    done
    told=${told#Please run: }
    run "$release" "$root" root "export DEBIAN_FRONTEND=noninteractive; (${told//sudo /}) >/dev/null" || return
    run "$release" "$root" guest "make run" || return
    run "$release" "$root" guest "make ros && scripts/setup.sh --packages test" || return
}

for release in "$@"; do
    make_root "$release" "$work/$release"
    cp -a "$work/$release" "$work/$release-guest"
    mount_root "$work/$release-guest"
    try_as_guest "$release" "$work/$release-guest"
    remove "$work/$release-guest"
    mount_root "$work/$release"
    for command in "${commands[@]}"; do
        run "$release" "$work/$release" root "$command" || true
    done
    remove "$work/$release"
done
if [ ${#failed[@]} != 0 ]; then
    printf 'failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
echo "The commands of the README work on fresh machines: Debian $*."
