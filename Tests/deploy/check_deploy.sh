#!/usr/bin/env bash
# Checks what is in deploy/ with the tools that will read it: systemd, nginx, kustomize where there is a
# kubectl, and kedge itself when its path is given. What no tool sees is in check_fleet.py; check_metrics.py
# does the same for alerts and the dashboard, and check_scrape.py lets Prometheus scrape a service.
#
#   check_deploy.sh [PATH_TO_KEDGE]
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH="$PATH:/usr/sbin:/sbin"
source Tests/support/skip.sh

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Neither the binary nor its manual is installed here; a unit that is right in everything else must verify without a word.
sed 's|^ExecStart=/usr/bin/kedge|ExecStart=/bin/true|' deploy/kedge.service >"$scratch/kedge.service"
complaint=$(systemd-analyze verify --man=no "$scratch/kedge.service" 2>&1) && [[ -z $complaint ]] || {
    echo "kedge.service: $complaint" >&2
    exit 1
}
# Exposure from 0 to 10 as systemd counts it, times ten. The bound keeps the hardening from eroding.
systemd-analyze security --offline=true --no-pager --threshold=20 "$scratch/kedge.service" \
    >"$scratch/security" || {
    cat "$scratch/security" >&2
    exit 1
}
echo "kedge.service: $(tail -n 1 "$scratch/security")"

# A stop must leave more time than the drain, and the 15 seconds for saving, take.
drain=$(sed -nE 's/^ *drainSeconds: *([0-9]+).*/\1/p' deploy/kedge.example.yaml)
stop=$(sed -nE 's/^TimeoutStopSec=([0-9]+)$/\1/p' deploy/kedge.service)
if ((stop <= drain + 15)); then
    echo "kedge.service: TimeoutStopSec=$stop leaves too little for drainSeconds=$drain" >&2
    exit 1
fi

Tests/support/render_nginx.sh 127.0.0.1:8081 127.0.0.1:8080 "$scratch" >"$scratch/nginx.conf"
nginx -t -q -c "$scratch/nginx.conf" -e "$scratch/error.log"
for setting in "proxy_request_buffering off" "proxy_buffering off" "client_max_body_size 0"; do
    grep -q "$setting;" deploy/nginx.conf || {
        echo "nginx.conf: \"$setting\" is gone" >&2
        exit 1
    }
done
echo "nginx.conf: $(nginx -v 2>&1 | sed 's/.*: //') takes it"

python=.build-venv/bin/python
[[ -x $python ]] || {
    echo "PyYAML is missing; make test-deps brings it" >&2
    exit 1
}
"$python" Tests/deploy/check_fleet.py
"$python" Tests/deploy/check_metrics.py

# As the container's entry point does: the token is filled in, nginx's own variables stay.
for place in compose kubernetes; do
    sed -e 's|\${KEDGE_TOKEN}|'"$(printf '0123456789abcdef%.0s' 1 2 3 4)"'|g' -e "s|/tmp/|$scratch/|g" \
        -e "s|/dev/stdout|$scratch/access.log|; s|/dev/stderr|$scratch/error.log|" \
        "deploy/$place/nginx.conf" >"$scratch/$place.conf"
    nginx -t -q -c "$scratch/$place.conf" -e "$scratch/error.log" || {
        cat "$scratch/error.log" >&2
        exit 1
    }
    echo "$place/nginx.conf: nginx takes it"
done

if command -v kubectl >/dev/null; then
    kubectl kustomize deploy/kubernetes >"$scratch/objects.yaml"
    echo "kubernetes: $(grep -c '^kind:' "$scratch/objects.yaml") objects"
else
    (skip kubectl "not installed, so deploy/kubernetes was not put together")
fi

# Each configuration is one that kedge reads.
if (($# > 0)); then
    "$python" Tests/deploy/check_scrape.py "$1"
    for file in deploy/compose/kedge.yaml deploy/kubernetes/kedge.yaml deploy/examples/kedge.*.yaml \
        deploy/proxies/kedge.*.yaml; do
        env --ignore-environment PATH="$PATH" "$1" serve --print-config --config "$file" >"$scratch/settings"
        # Quoted or not, every value of the file is in force.
        "$python" - "$file" "$scratch/settings" <<'PYTHON'
import sys, yaml
given, printed = (yaml.safe_load(open(name, encoding="utf-8")) for name in sys.argv[1:])
def missing(given, printed, path=""):
    for key, value in given.items():
        if isinstance(value, dict):
            yield from missing(value, printed[key], f"{path}{key}.")
        elif str(printed[key]) != str(value):
            yield f"{path}{key} is {printed[key]}, not {value}"
wrong = list(missing(given, printed))
if wrong:
    sys.exit(f"{sys.argv[1]}: {wrong}")
PYTHON
        echo "$file: kedge reads it"
    done
fi

# The example shows every setting at its default.
if (($# > 0)); then
    settings() { env --ignore-environment PATH="$PATH" "$@" | grep -v '^ *#'; }
    diff <(settings "$1" serve --print-config) \
        <(settings "$1" serve --print-config --config deploy/kedge.example.yaml) || {
        echo "kedge.example.yaml differs from the defaults" >&2
        exit 1
    }
    # Every setting is in the file, not only those that differ.
    count() { grep -cE '^ *[A-Za-z]+: *[^ ]' "$1"; }
    settings "$1" serve --print-config >"$scratch/settings"
    if (($(count "$scratch/settings") != $(count deploy/kedge.example.yaml))); then
        echo "kedge.example.yaml does not show every setting" >&2
        exit 1
    fi
    echo "kedge.example.yaml: the defaults"
fi

if (($# > 0)); then Tests/deploy/check_backup.sh "$1"; fi
