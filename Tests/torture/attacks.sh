#!/usr/bin/env bash
# Attacks a service in every way that there is a script for, and fails when one of them costs others too much.
#
#   attacks.sh BINARY short|long
set -euo pipefail
cd "$(dirname "$0")"

binary=${1:?where is kedge?}
case ${2:?short or long?} in
# Bare heads are close to their bar, which is lower here: other work may keep this machine busy.
short) writers=8 readers=60 descriptors=6 memory=75 heads=300 head_seconds=4 head_loss=0.6 ;;
long) writers=30 readers=180 descriptors=30 memory=75 heads=500 head_seconds=30 head_loss=0.3 ;;
*) exit 2 ;;
esac

python3 descriptors.py --binary "$binary" --seconds "$descriptors"
python3 memory.py --binary "$binary" --seconds "$memory"
python3 slow_readers.py --binary "$binary" --seconds "$readers"
python3 slow_writers.py --binary "$binary" --seconds "$writers"
python3 slow_writers.py --binary "$binary" --seconds "$head_seconds" --writers 20 --heads "$heads" --loss "$head_loss"
echo "attacks survived, violations 0"
