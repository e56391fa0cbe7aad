#!/usr/bin/env bash
# Proves that the Debian package of a release binary is sound, and that no step of its life loses a file:
# installation, service, upload, upgrade with changed settings, removal, purge, and installation again.
#
#   check_deb.sh BINARY
#
# The package is installed into a copy of this machine's root that exists in memory only, in a network
# without other machines. The service runs there with the command line of its unit, as the user of the
# package. Needs root and mounts.
set -euo pipefail

binary=$(realpath "${1:?usage: check_deb.sh BINARY}")
cd "$(dirname "$0")/../.."
PATH="$PATH:/usr/sbin:/sbin"
source Tests/support/skip.sh

# The second part runs in namespaces of its own, whose mounts disappear with it.
if [[ ${2:-} != --inside ]]; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    mkdir "$scratch"/{packages,memory,root}
else
    scratch=$3
fi
packages=$scratch/packages root=$scratch/root

fail() {
    echo "$*" >&2
    exit 1
}

# A package twice, to compare them; compression is not tested, so it is the fastest one.
check_package() {
    local first second
    export DPKG_DEB_OPTIONS="-Zgzip -z1"
    first=$(.ci/build-deb "$binary" "$packages")
    second=$(.ci/build-deb "$binary" "$scratch/second")
    cmp "$first" "$second" || fail "two packages of one binary differ"
    lintian --allow-root --fail-on error,warning "$first" || fail "lintian finds faults"

    local version
    version=$("$binary" --version)
    [[ $(dpkg-deb --field "$first" Version) == "$version-1" ]] || fail "the version is not $version-1"
    [[ $(dpkg-deb --field "$first" Architecture) == "$(dpkg --print-architecture)" ]] ||
        fail "the architecture is not that of this machine"
    # Each library that the binary names has a package among the dependencies.
    local library package multiarch
    multiarch=$(dpkg-architecture --query DEB_HOST_MULTIARCH)
    for library in $(LC_ALL=C readelf --dynamic "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        package=$(dpkg-query --search "*/$multiarch/$library" | head -n 1 | cut -d : -f 1)
        dpkg-deb --field "$first" Depends | tr ',|' '\n' | awk '{ print $1 }' | grep -qxF "$package" ||
            fail "$library is of $package, which is no dependency"
    done
    # The copyright file names each package of Swift that is linked into the binary.
    for package in $(sed -nE 's|.*url: "https://github.com/[^/]*/([^"]*)".*|\1|p' Package.swift); do
        grep -q "^Files: $package/" deploy/debian/copyright || fail "the copyright file lacks $package"
    done

    # The next version: other settings are delivered, and a file in it shows which one is installed.
    dpkg-deb --raw-extract "$first" "$scratch/next"
    sed -i "s/^Version: .*/Version: $version-2/" "$scratch/next/DEBIAN/control"
    echo "# A line of the next version." >>"$scratch/next/etc/kedge/kedge.yaml"
    dpkg-deb $DPKG_DEB_OPTIONS --root-owner-group --build "$scratch/next" "$packages/next.deb" >/dev/null
    mv "$first" "$packages/first.deb"
}

in_root() { chroot "$root" env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
dpkg_in_root() {
    in_root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 dpkg --force-unsafe-io "$@" \
        >"$scratch/dpkg.log" 2>&1 </dev/null || {
        cat "$scratch/dpkg.log" >&2
        fail "dpkg $* failed"
    }
}

mount_root() {
    mount -t tmpfs tmpfs "$scratch/memory"
    mkdir "$scratch"/memory/{upper,work}
    mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/memory/upper,workdir=$scratch/memory/work" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    # No systemd runs there, whatever this machine has.
    mount -t tmpfs tmpfs "$root/run"
    mount -t tmpfs tmpfs "$root/tmp"
    ip link set lo up
    # This machine may have the package: in the copy it is not there.
    in_root sh -c 'dpkg --purge kedge; rm -rf /etc/kedge /var/lib/kedge; userdel kedge' >/dev/null 2>&1 || true
    mkdir "$root/packages"
    cp "$packages"/*.deb "$root/packages"
}

# setting NAME: the value in the installed unit and its drop-ins, of which the last one counts.
setting() {
    cat "$root"/usr/lib/systemd/system/kedge.service "$root"/usr/lib/systemd/system/kedge.service.d/*.conf |
        sed -n "s/^$1=//p" | tail -n 1
}

service=""
# Does as systemd would: makes the state directory and runs the command line as the user of the unit.
start_service() {
    local user directory arguments
    user=$(setting User)
    directory=/var/lib/$(setting StateDirectory)
    [[ $user == kedge && $(setting DynamicUser) == no ]] || fail "the unit does not run as the user kedge"
    in_root install -d -m "$(setting StateDirectoryMode)" -o "$user" -g "$(setting Group)" "$directory"
    arguments=$(setting ExecStart)
    read -ra arguments <<<"${arguments//'${STATE_DIRECTORY}'/$directory}"
    [[ ${arguments[0]} == /usr/bin/kedge ]] || fail "the unit does not start /usr/bin/kedge"
    chroot --userspec="$user:$(setting Group)" "$root" env --ignore-environment PATH=/usr/bin:/bin \
        sh -c "umask $(setting UMask); exec \"\$@\"" sh "${arguments[@]}" >"$scratch/service.log" 2>&1 &
    service=$!
    for _ in $(seq 100); do
        if curl --silent --fail --max-time 1 "$url/readyz" >/dev/null; then return; fi
        kill -0 "$service" 2>/dev/null || break
        sleep 0.1
    done
    cat "$scratch/service.log" >&2
    fail "the service did not start"
}
stop_service() {
    local pid=$service status=0
    [[ -n $pid ]] || return 0
    service=""
    kill -TERM "$pid"
    timeout 60 tail --pid="$pid" -f /dev/null || kill -KILL "$pid"
    wait "$pid" || status=$?
    ((status == 0)) || fail "the service ended with status $status"
}

# The command, as a user who has nothing to do with the service.
client() {
    chroot --userspec=nobody:nogroup "$root" env --ignore-environment PATH=/usr/bin:/bin HOME=/tmp/client \
        KEDGE_SERVER="$url" timeout 60s kedge "$@"
}
check_download() {
    rm -f "$root/tmp/client/copy"
    client download "$id" --output /tmp/client/copy --quiet >/dev/null
    cmp "$root/tmp/client/file" "$root/tmp/client/copy" || fail "$1: the download is not the upload"
}
data_digest() { (cd "$root/var/lib/kedge" && find . -type f -print0 | sort -z | xargs -0 sha256sum) | sha256sum; }
installed_version() { in_root dpkg-query --show --showformat='${Version}' kedge; }

check_life() {
    local settings=$root/etc/kedge/kedge.yaml before
    dpkg_in_root --install /packages/first.deb
    local complaint
    complaint=$(in_root systemd-analyze verify kedge.service 2>&1) && [[ -z $complaint ]] ||
        fail "systemd refuses the installed unit: $complaint"
    [[ -L $root/etc/systemd/system/multi-user.target.wants/kedge.service ]] || fail "the service is not enabled"
    [[ -e $root/usr/lib/systemd/user/kedge-resume.service ]] || fail "the unit for users is not installed"
    in_root getent passwd kedge | grep -q ':/usr/sbin/nologin$' || fail "no user kedge, or one that can log in"
    in_root man --where kedge-upload >/dev/null || fail "man does not find kedge-upload(1)"
    in_root dpkg --verify kedge || fail "installed files differ from those of the package"

    start_service
    in_root install -d -o nobody -g nogroup /tmp/client
    head --bytes=5000001 /dev/urandom >"$root/tmp/client/file"
    id=$(client upload /tmp/client/file --quiet)
    check_download "after the installation"
    # The administrator changes a setting, and the upgrade comes while the service runs.
    sed -i 's/^  format: text$/  format: json/' "$settings"
    dpkg_in_root --force-confold --install /packages/next.deb
    [[ $(installed_version) == *-2 ]] || fail "the upgrade did not take place"
    grep -q '^  format: json$' "$settings" || fail "the upgrade changed the administrator's settings"
    grep -q '^# A line of the next version' "$settings.dpkg-dist" || fail "the new settings are not beside the old"
    stop_service
    start_service
    check_download "after the upgrade"
    stop_service
    grep -q '^{' "$scratch/service.log" || fail "the changed setting is not in force after the upgrade"
    # The user of the service may check its data, with the settings of the package.
    chroot --userspec=kedge:kedge "$root" /usr/bin/kedge fsck --config /etc/kedge/kedge.yaml >/dev/null ||
        fail "kedge fsck fails with the settings of the package"

    before=$(data_digest)
    dpkg_in_root --remove kedge
    [[ ! -e $root/usr/bin/kedge && -e $settings ]] || fail "a removal keeps the command, or takes the settings"
    echo KEDGE_LOG_LEVEL=debug >"$root/etc/kedge/kedge.env"
    dpkg_in_root --purge kedge
    [[ ! -e $root/etc/kedge ]] || fail "a purge leaves /etc/kedge"
    grep -q /var/lib/kedge "$scratch/dpkg.log" || fail "a purge does not say where the files are"
    [[ $(data_digest) == "$before" ]] || fail "a purge changes the files of users"
    [[ -z $(find "$root/usr" "$root/etc/systemd" "$root/var/lib/systemd" -name '*kedge*') ]] ||
        fail "a purge leaves files of the package"

    # An unchanged settings file is replaced without a question, and the files are still there.
    dpkg_in_root --install /packages/first.deb
    dpkg_in_root --install /packages/next.deb
    grep -q '^# A line of the next version' "$settings" || fail "unchanged settings are not replaced"
    start_service
    check_download "after a purge and an installation"
    stop_service
    rm -rf "$root"/var/lib/kedge/* "$root"/var/lib/kedge/.[!.]*
    dpkg_in_root --purge kedge
    [[ ! -e $root/var/lib/kedge ]] || fail "a purge leaves an empty data directory"
}

if [[ ${2:-} == --inside ]]; then
    url=http://127.0.0.1:8080 id=""
    trap 'if [[ -n $service ]]; then kill -KILL "$service" || true; fi' EXIT
    mount_root
    check_life
    exit
fi

began=$SECONDS
check_package
may_install() {
    [[ $(id -u) == 0 ]] && unshare --mount --net --propagation private bash -c '
        mount -t tmpfs tmpfs "$0/memory" && mkdir "$0"/memory/{upper,work} &&
        mount -t overlay overlay -o "lowerdir=/,upperdir=$0/memory/upper,workdir=$0/memory/work" "$0/root"' \
        "$scratch" 2>/dev/null
}
if ! may_install; then skip mounts "not permitted, so the package was not installed"; fi
unshare --mount --net --propagation private "$0" "$binary" --inside "$scratch"
echo "the package installs, upgrades and goes, and the files stay; $((SECONDS - began)) s"
