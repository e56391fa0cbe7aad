#!/usr/bin/env bash
# Attacks a service in every way that there is a script for, and fails when one of them costs others too much.
#
#   attacks.sh BINARY short|long
set -euo pipefail
cd "$(dirname "$0")"

binary=${1:?where is kedge?}
case ${2:?short or long?} in
# What is close to its bar is for a machine that does nothing else.
short) writers=8 readers=60 descriptors=6 memory=75 heads=0 ;;
long) writers=30 readers=180 descriptors=30 memory=75 heads=500 ;;
*) exit 2 ;;
esac

python3 descriptors.py --binary "$binary" --seconds "$descriptors"
python3 memory.py --binary "$binary" --seconds "$memory"
python3 slow_readers.py --binary "$binary" --seconds "$readers"
python3 slow_writers.py --binary "$binary" --seconds "$writers"
if ((heads)); then
    python3 slow_writers.py --binary "$binary" --seconds "$writers" --writers 20 --heads "$heads"
fi
echo "attacks survived, violations 0"
