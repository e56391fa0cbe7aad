"""Shows that zsync completes an old copy of a file from the service, by many small ranges.

    zsync.py --binary PATH_TO_KEDGE [--seed N]
"""

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(TESTS / name) for name in ("servers", "fleet")]

from processes import Scratch, Unavailable
from service import Service, Source, Violation, expect

MEBIBYTES = 16
CHANGE_COUNT = 150


def make_old_copy(source: Source, path: Path, seed: int) -> None:
    """The file with some bytes changed in many places."""
    chooser = random.Random(seed)
    content = bytearray(source.read(0))
    for place in range(CHANGE_COUNT):
        first = place * len(content) // CHANGE_COUNT + chooser.randrange(4096)
        content[first:first + 64] = chooser.randbytes(64)
    path.write_bytes(content)


def upload(service: Service, source: Source) -> str:
    done = subprocess.run(
        ["curl", "--silent", "--fail-with-body", "--data-binary", f"@{source.path}",
         "--header", "Content-Disposition: attachment; filename=source.bin", f"{service.url}/files"],
        check=True, capture_output=True, text=True, timeout=60)
    return f"{service.url}/files/{json.loads(done.stdout)['remoteFileId']}"


def run(binary: Path, directory: Path, seed: int) -> None:
    source = Source(directory / "source.bin", seed, MEBIBYTES)
    old = directory / "old.bin"
    make_old_copy(source, old, seed)
    service = Service(binary, directory)
    service.start()
    try:
        control = directory / "source.zsync"
        subprocess.run(["zsyncmake", "-u", upload(service, source), "-o", control, source.path],
                       check=True, capture_output=True, timeout=60)
        done = subprocess.run(
            ["zsync", "-i", old, "-o", directory / "new.bin", control], cwd=directory,
            capture_output=True, text=True, timeout=60)
        said = done.stdout + done.stderr
        expect(done.returncode == 0, f"zsync ended with {done.returncode}: {said}")
        digest = hashlib.sha256((directory / "new.bin").read_bytes()).hexdigest()
        expect(digest == source.sha256, "zsync made another file")
        counts = re.search(r"used (\d+) local, fetched (\d+)", said)
        expect(counts is not None, f"zsync printed no counts: {said}")
        fetched = int(counts.group(2))
        expect(0 < fetched < source.byte_count // 2, f"{fetched} bytes were fetched")
        print(f"zsync: {fetched} of {source.byte_count} bytes fetched")
    finally:
        service.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    options = parser.parse_args()
    scratch = Scratch("zsync")
    try:
        run(options.binary.resolve(), scratch.path, options.seed)
    except (Violation, Unavailable) as error:
        print(f"zsync, seed {options.seed}: {error}", file=sys.stderr)
        return 1
    finally:
        scratch.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
