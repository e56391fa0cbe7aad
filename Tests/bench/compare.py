#!/usr/bin/env python3
"""Compares a report of kedge-bench with the stored one of the same kind of processor, by ratio.

    compare.py REPORT BASELINES                    print both
    compare.py REPORT BASELINES --check -- BENCH…  fail when a ratio fell clearly; BENCH… measures again
    compare.py REPORT BASELINES --store            make the report the baseline of its kind

A row with a peer was measured in turn with it, so its ratio means the same on a quiet and on a busy
machine. Values in seconds or bytes do not, and are never judged. BASELINES is a directory with one file
for each way to compute SHA-256, which names the kind of processor better than its model does.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from skipping import skipped  # noqa: E402

# A ratio below this share of the stored one is a regression. Two runs on a shared machine differ by a
# third; so much less is no accident when it happens three times.
SHARE = 0.4
TRIES = 3


def read(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def ratios(report):
    """Returns the ratio of each row whose larger value is better."""
    return {
        row["id"]: row["ratio"]
        for row in report["rows"]
        if row.get("ratio") and row["unit"] in ("MiB/s", "1/s")
    }


def scale(report):
    return "smoke" if report["isSmoke"] else "full"


def store(report, path):
    baseline = read(path) if path.exists() else {}
    machine = report["machine"]
    kept = baseline.get(scale(report), {}).get("ratios", {})
    baseline[scale(report)] = {
        "machine": f"{machine['cores']} cores, {machine['processor']}",
        "ratios": {
            name: round(ratio, 3) for name, ratio in sorted({**kept, **ratios(report)}.items())
        },
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(baseline, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def fallen(measured, baseline):
    return {
        name
        for name, ratio in measured.items()
        if name in baseline and ratio < SHARE * baseline[name]
    }


def measure_again(command, measurements):
    with tempfile.TemporaryDirectory() as scratch:
        output = os.path.join(scratch, "report.json")
        subprocess.run(
            [*command, "--only", ",".join(sorted(measurements)), "--output", output],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return ratios(read(output))


def check(report, baseline, command):
    """Returns the rows that fell clearly in every try, with their best ratio."""
    best = ratios(report)
    owners = {row["id"]: row["measurement"] for row in report["rows"]}
    for _ in range(TRIES - 1):
        low = fallen(best, baseline)
        if not low:
            break
        print(f"measured again: {', '.join(sorted(low))}")
        for name, ratio in measure_again(command, {owners[row] for row in low}).items():
            best[name] = max(best.get(name, 0), ratio)
    return {name: best[name] for name in sorted(fallen(best, baseline))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report")
    parser.add_argument("baselines", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--store", action="store_true")
    # Split here: argparse before Python 3.13 has its own idea of -- after an option.
    words, command = sys.argv[1:], []
    if "--" in words:
        place = words.index("--")
        words, command = words[:place], words[place + 1 :]
    options = parser.parse_args(words)
    report = read(options.report)
    path = options.baselines / f"{report['hashPath']}.json"
    if options.store:
        store(report, path)
        return 0
    baseline = read(path).get(scale(report)) if path.exists() else None
    if not baseline:
        reason = f"no stored ones for {scale(report)} with {report['hashPath']}"
        if options.check:
            return skipped("ratios", reason)
        print(f"ratios: {reason}")
        return 0
    print(f"ratios, beside those of {baseline['machine']}, SHA-256 with {report['hashPath']}:")
    for name, ratio in ratios(report).items():
        if name in baseline["ratios"]:
            print(f"  {name:32} {ratio:6.2f}  {baseline['ratios'][name]:6.2f}")
    low = check(report, baseline["ratios"], command) if options.check else {}
    for name, ratio in low.items():
        print(
            f"{name}: {ratio:.2f} at best of {TRIES} tries, stored {baseline['ratios'][name]:.2f}",
            file=sys.stderr,
        )
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
