# Installs only the programs of the packages named as arguments: their system-wide instances are neither created nor
# started. Run as root. APT_OPTIONS="--simulate" simulates the installation.
set -eu
export DEBIAN_FRONTEND=noninteractive

policy=/usr/sbin/policy-rc.d
policy_is_ours=
cluster=/etc/postgresql-common/createcluster.conf
cluster_copy=

undo() {
    if [ -n "$policy_is_ours" ]; then rm -f "$policy"; fi
    if [ -n "$cluster_copy" ]; then mv -f "$cluster_copy" "$cluster"; fi
}
trap undo EXIT
trap 'exit 130' HUP INT TERM

install() {
    # shellcheck disable=SC2086 # options are words
    apt-get ${APT_OPTIONS:-} install --yes --no-install-recommends "$@"
}

# Old package lists may be sufficient.
apt-get update || echo "warning: apt-get update failed, going on with the lists at hand" >&2

# Maintainer scripts ask this program whether they may start a service.
if [ ! -e "$policy" ]; then
    policy_is_ours=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

for package in "$@"; do
    case $package in
    postgresql*)
        # The package creates a cluster `main` unless this file, which another package installs, disables it.
        install postgresql-common
        if [ -e "$cluster" ]; then
            cp -p "$cluster" "$cluster.earshot"
            cluster_copy=$cluster.earshot
            echo 'create_main_cluster = false' >>"$cluster"
        fi
        ;;
    esac
done

install "$@"

# Otherwise the service would start with the machine from now on.
for package in "$@"; do
    if [ "$package" = rabbitmq-server ] && [ -z "${APT_OPTIONS:-}" ] && command -v systemctl >/dev/null; then
        systemctl disable --quiet rabbitmq-server 2>/dev/null || true
    fi
done
