#!/usr/bin/env bash
# Prints deploy/nginx.conf with ports and places fit for a test.
#
#   render_nginx.sh LISTEN UPSTREAM DIRECTORY
#
# LISTEN and UPSTREAM are host:port. Everything nginx writes goes below DIRECTORY. Run the result with
# `nginx -c FILE -e DIRECTORY/error.log`; it stays in the foreground.
set -euo pipefail

listen=$1 upstream=$2 directory=$3
root=$(cd "$(dirname "$0")/../.." && pwd)

# Started by root, workers would become another user who cannot enter the test's directory.
user=""
if [[ $(id -u) == 0 ]]; then user="user root;"; fi

global="daemon off; pid $directory/nginx.pid; $user"
paths="access_log off;"
for kind in client_body proxy fastcgi uwsgi scgi; do
    paths+=" ${kind}_temp_path $directory/$kind;"
done

sed -E \
    -e "s|^([[:space:]]*)listen [^;]*;([[:space:]]*# \[listen\])|\1listen $listen;\2|" \
    -e "s|^([[:space:]]*)server [^;]*;([[:space:]]*# \[upstream\])|\1server $upstream;\2|" \
    -e "s|# \[global\]|$global|" \
    -e "s|^.*# \[paths\]|$paths|" \
    "$root/deploy/nginx.conf"
