# Where this machine gets its packages from. Sourced by fresh_machine.sh and image.sh.

# The address of Debian's packages, if this machine is a Debian; else debootstrap knows one.
mirror() {
    if [ -n "${DEBIAN_MIRROR:-}" ]; then
        echo "$DEBIAN_MIRROR"
    elif grep -q '^ID=debian$' /etc/os-release && command -v apt-get >/dev/null; then
        apt-get indextargets --format '$(REPO_URI)' "Created-By: Packages" | grep -v -e security -e '^file:' | sort | uniq -c |
            sort -rn | awk 'NR == 1 { print $2 }'
    fi
}

# pip's settings, from its files and variables; nothing if there is no pip.
pip_settings() { "${PYTHON:-python3}" -m pip config list 2>/dev/null || true; }

# Folders on this machine that these settings name: wheels, and package indexes with the files beside them.
pip_folders() {
    pip_settings | tr "'\" =" '\n' | sed -n 's#^\(file://\)\?\(/.*\)#\2#p' |
        while read -r path; do
            if [ "$(basename "$path")" = simple ]; then path=$(dirname "$path"); fi
            if [ -d "$path" ]; then echo "$path"; fi
        done | sort -u
}

# The settings of apt that concern downloads, such as proxies.
apt_settings() {
    if command -v apt-config >/dev/null; then apt-config dump | grep '^Acquire::' || true; fi
}
