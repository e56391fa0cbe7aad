#!/usr/bin/env python3
"""Cuts the power under the service and the client again and again, and checks that they kept their word.

    power_cut.py --binary PATH [--part service|client|both|postgres] [--images N] [--seed S] [--seconds T]
                 [--mutant NAME] [--keep DIRECTORY] [--file-system ext4|xfs|btrfs]

One run is recorded block by block on a real file system. Then, for many moments of it, an image is made
of what a disk may hold after a cut: everything flushed, and any part of the rest. The program is started
on each image and held to what it had acknowledged.

A seed decides what is asked for and which cuts are made; threads and the kernel decide the exact order of
writes, so another run of the same seed comes close, and --keep saves the first broken image itself.

Ends with 0 when all promises were kept, 3 when not, 2 when the test itself failed, and 77 when this
system does not permit it.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from types import FrameType

from disks import FILE_SYSTEMS, Unavailable, require_everything
from program import Program
from rounds import Task, Totals, client_round, postgres_round, service_round

PARTS = {
    "service": [service_round], "client": [client_round], "both": [service_round, client_round],
    "postgres": [postgres_round],
}
MUTANTS = (
    "no-fdatasync", "no-directory-sync", "no-database-sync", "no-promotion-sync", "late",
)


def read_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--part", choices=PARTS, default="both")
    parser.add_argument("--images", type=int, default=20, help="cuts of each recording")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0, help="go on with new seeds for so long")
    parser.add_argument("--mutant", choices=MUTANTS, help="leave this out; the test should fail")
    parser.add_argument("--keep", type=Path, help="where the first broken image is kept")
    parser.add_argument("--file-system", choices=FILE_SYSTEMS, default="ext4")
    return parser.parse_args()


def end_on_signals() -> None:
    """Makes a signal an exception, so that mounts and devices are let go on every way out."""

    def end(number: int, _: FrameType | None) -> None:
        for other in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)


def build_mutants(scratch: Path) -> Path:
    """Compiles the library that leaves out syncs."""
    compiler = shutil.which("clang") or shutil.which("cc")
    if compiler is None:
        raise Unavailable("a C compiler")
    library = scratch / "mutants.so"
    source = Path(__file__).with_name("mutants.c")
    flags = ["-std=c17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    subprocess.run([compiler, *flags, "-o", library, source, "-ldl"], check=True)
    return library


def run_seed(arguments: argparse.Namespace, seed: int, totals: Totals) -> None:
    """Records and checks once, in a directory that is gone afterwards."""
    for play in PARTS[arguments.part]:
        with tempfile.TemporaryDirectory(prefix="kedge-power-cut-") as directory:
            scratch = Path(directory)
            library = build_mutants(scratch) if arguments.mutant else None
            program = Program(arguments.binary.resolve(), scratch)
            task = Task(
                program, arguments.images, str(seed), library, arguments.mutant, arguments.keep,
                FILE_SYSTEMS[arguments.file_system],
            )
            play(task, scratch, totals)


def main() -> int:
    """Runs seed after seed until the time is over or a promise was broken."""
    arguments = read_arguments()
    end_on_signals()
    totals, seed, begun = Totals(), arguments.seed, time.monotonic()
    try:
        require_everything(FILE_SYSTEMS[arguments.file_system])
        while True:
            run_seed(arguments, seed, totals)
            seed += 1
            if totals.violations or time.monotonic() - begun >= arguments.seconds:
                break
    except Unavailable as error:
        print(f"power cuts cannot be tested here; missing: {error}", file=sys.stderr)
        return 77
    except Exception:
        traceback.print_exc()
        return 2
    name = " under PostgreSQL" if arguments.part == "postgres" else ""
    name += "" if arguments.file_system == "ext4" else f" on {arguments.file_system}"
    print(
        f"power cuts{name}: {totals.images} images, {totals.promises} promises,"
        f" {totals.violations} violations, {time.monotonic() - begun:.0f} s"
    )
    return 3 if totals.violations else 0


if __name__ == "__main__":
    sys.exit(main())
